"""Inside of compiled code: what each allocation stands for, and the same causes as without a compiler."""

import functools
import json

import pytest
from conftest import PYTHON

IS_WARM = True
MIB = 1 << 20
ROWS, WORDS, WIDTH = 8 * 512, 8192, 256

SCRIPT = """
import sys, torch
from torch import nn
from torch.nn import functional as F


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.fc, self.out = nn.LayerNorm(width), nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.out(F.gelu(self.fc(self.norm(x))))  # BLOCK


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(8192, 256), nn.Linear(256, 8192)
        self.blocks = nn.ModuleList(Block(256) for _ in range(3))

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = block(x)
        logits = self.head(x)  # HEAD
        return logits, F.cross_entropy(logits.view(-1, 8192), ids.view(-1))  # LOSS


how, net = sys.argv[1], Net().cuda()
optimizer = torch.optim.AdamW(net.parameters())
run = torch.compile(net, mode="reduce-overhead" if how == "graphs" else None) if how in ("whole", "graphs") else net
if how == "blocks":
    for block in net.blocks:
        block.compile()
if how == "function":
    run = torch.compile(lambda ids: net(ids))
for _ in range(3):
    run(torch.randint(0, 8192, (8, 512)).cuda())[1].backward()
    optimizer.step()
    optimizer.zero_grad()
"""
PLACES = {word: number for number, line in enumerate(SCRIPT.splitlines(), 1) for word in ("BLOCK", "HEAD", "LOSS") if f"# {word}" in line}
SAVED = ROWS * WIDTH * 4  # bytes of what has the width of the model


@pytest.fixture(scope="module")
def seen(fathom, tmp_path_factory):
    @functools.cache
    def run(how):
        script = tmp_path_factory.mktemp(how) / "train.py"
        script.write_text(SCRIPT)
        report, done = fathom(PYTHON, script, how, flags=("--gpu", "a100-40g", "--whole", "off", "--verify", "off"))
        assert done.returncode == 0, done.stderr
        return report

    return run


def causes(report):
    """Bytes by what is found, of what is counted."""
    found = {}
    for row in report["findings"]:
        if row["counted"]:
            found[row["id"]] = found.get(row["id"], 0) + row["bytes"]
    return found


def check(report):
    """The logits, their gradient, and zeros for that of the logits that are given out; the blocks by their modules."""
    found = causes(report)
    assert found["loss-logits"] == 3 * ROWS * WORDS * 4
    assert "_orig_mod" not in json.dumps(report)
    [blocks] = [row for row in report["findings"] if row["id"] == "activations" and "blocks of blocks" in row["title"]]
    assert "the 3 blocks of" in blocks["title"]
    # Of each block the input, its normed form and two of the width of its middle; a graph may drop one of the first.
    assert 3 * 9 * SAVED <= blocks["bytes"] <= 3 * 11 * SAVED
    lines = {(row["line"], (row["operator"] or "").split(" ")[0]) for finding in report["findings"] for row in finding["evidence"]}
    assert (PLACES["HEAD"], "addmm") in lines and (PLACES["BLOCK"], "addmm") in lines
    assert any(line == PLACES["LOSS"] and operator.startswith("_log_softmax") for line, operator in lines)
    assert sum(found.values()) >= 0.9 * report["peak"]["allocated_bytes"]


def test_a_compiled_model_has_the_causes_of_the_model(seen):
    report = seen("whole")
    check(report)
    first = [row["id"] for row in seen("eager")["findings"] if row["counted"]][:3]
    assert [row["id"] for row in report["findings"] if row["counted"]][:3] == first == ["loss-logits", "activations", "model-state"]


@pytest.mark.matrix
def test_a_compiled_function_knows_the_modules_in_it(seen):
    check(seen("function"))


@pytest.mark.matrix
def test_compiled_blocks_are_told_apart(seen):
    report = seen("blocks")
    [blocks] = [row for row in report["findings"] if row["id"] == "activations" and "blocks" in row["title"]]
    assert "the 3 blocks of blocks" in blocks["title"]
