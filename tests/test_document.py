"""`fathom report`: a document whose every number is measured and stands in its JSON.

The script is small: its trials take a part of a second each. test_cases.py looks at the documents of the case studies.
"""

import itertools
import json
import os
import re
import shlex
import signal
import subprocess
import time

import documents
import pytest
import test_schemas
from conftest import FATHOM, PYTHON, ROOT, environment
from small_runs import assert_refused
from test_smi import tools  # noqa: F401

SCRIPT = """
import sys, torch
from net import Block
text = dict(line.split(": ") for line in open(sys.argv[2]).read().splitlines() if ": " in line)
batch, groups, width = (int(text[name]) for name in ("batch_size", "num_groups", "width"))
torch.manual_seed(0)
model = torch.nn.Sequential(*(Block(width) for _ in range(4))).to("cuda")
optimizer = torch.optim.AdamW(model.parameters())
for step in range(10):
    x = torch.randn(batch * 2 * groups, width, device="cuda")
    loss = model(x).square().mean()
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
"""
# Python names an imported file by its whole path, and a script as it was typed.
NET = """
import torch

class Block(torch.nn.Module):
    def __init__(self, width):
        super().__init__()
        self.linear = torch.nn.Linear(width, width)

    def forward(self, x):
        return torch.nn.functional.gelu(self.linear(x))
"""
CONFIG = "batch_size: 128\nnum_groups: 64\nwidth: 256\nnum_heads: 8\nuse_nothing: true\n"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    path = tmp_path_factory.mktemp("document")
    (path / "train.py").write_text(SCRIPT)
    (path / "net.py").write_text(NET)
    (path / "small.yaml").write_text(CONFIG)
    return path


COMMAND = (PYTHON, "train.py", "--config", "small.yaml")


@pytest.fixture(scope="module")
def written(warm, folder):
    """The finished process, the text and the JSON of a document about a GPU that is too small."""
    flags = ("--memory", "570MiB,16GB", "-o", "MEMORY.md", "--compare", f"{PYTHON} train.py --config small.yaml")
    done = warm.command("report", *flags, "--", *COMMAND, cwd=folder, timeout=400)
    assert done.returncode == 0, done.stderr
    return done, (folder / "MEMORY.md").read_text(), json.loads((folder / "MEMORY.json").read_text())


def test_every_number_of_the_text_stands_in_the_json(written):
    _, text, document = written
    assert document["schema"] == "fathom.document/1"
    assert documents.unknown_sizes(text, document) == []
    # The check is one that can fail.
    assert documents.unknown_sizes(text + " 123.45 GiB", document) == ["123.45 GiB"]


def test_the_sections(written):
    _, text, document = written
    titles = re.findall(r"^## (.*)$", text, re.M)
    assert titles == [
        "Answer", "Anatomy", "Where", "Why", "Compared", "Scaling", "What was tried", "Configurations", "The change",
        "How this is known",
    ]  # fmt: skip
    assert document["answer"]["judgement"] == "does_not_fit" and "**DOES NOT FIT**" in text


def test_the_json_is_valid(written, folder, tools):
    assert test_schemas.problems(tools, "document", folder / "MEMORY.json") == []


def test_components_add_up_to_what_the_gpu_shows(written):
    anatomy = written[2]["anatomy"]
    assert sum(row["bytes"] for row in anatomy["components"]) == anatomy["device_bytes"]
    outside = ("cached", "cached_later", "context", "nccl", "other")
    held = [row["bytes"] for row in anatomy["components"] if row["name"] not in outside]
    assert sum(held) == anatomy["allocated_bytes"]


def test_arithmetic_gives_the_bytes(written):
    rows = [row for place in written[2]["places"] for row in place["tensors"] if row["arithmetic"]]
    assert rows
    for row in rows:
        product = 1
        for factor in re.findall(r"[\d,]+", row["arithmetic"]):
            product *= int(factor.replace(",", ""))
        assert product == row["bytes"], row


def test_sizes_are_traced_to_the_settings_that_make_them(written):
    sizes = {row["size"]: row["made_of"] for row in written[2]["why"]["sizes"]}
    assert sizes[128 * 2 * 64] == "batch_size 128 × num_groups 64 × 2"
    assert sizes[256] == "width 256"


def test_growth_is_measured_and_settings_that_do_nothing_are_named(written):
    scaling = written[2]["scaling"]
    batch = next(knob for knob in scaling["knobs"] if knob["name"] == "batch_size")
    assert [point["value"] for point in batch["points"]] == ["32", "64", "128", "256"]
    assert batch["growth"][0]["exponent"] == pytest.approx(1, abs=0.1)
    # Weights and AdamW's two moments of four layers stay.
    assert batch["rest_bytes"] >= 3 * 4 * (256 * 256 + 256) * 4
    assert scaling["idle"] == ["num_heads 8"]
    # What a cause grows with is said by these runs.
    first = written[2]["why"]["causes"][0]["id"].replace("-", " ")
    assert ["batch_size", "linear"] in written[2]["why"]["growth"]
    row = next(row for row in batch["growth"] if row["cause"] == first)
    assert row["to_bytes"] == pytest.approx(8 * row["from_bytes"], rel=0.1)
    assert "linear with `batch_size`" in written[1]


def test_remedies_that_do_nothing_are_there_too(written):
    tried = written[2]["tried"]
    names = {row["name"] for row in tried["remedies"]}
    assert {"checkpoint", "amp-bf16", "sgd", "use_nothing false"} <= names
    nothing = next(row for row in tried["remedies"] if row["name"] == "use_nothing false")
    assert nothing["allocated_bytes"] == tried["allocated_bytes"]
    assert [name for name, _ in tried["asked"]] == ["empty_cache"]


def test_the_change_lowers_the_peak_and_fits(written):
    document = written[2]
    change, gain = document["change"], document["answer"]["gain"]
    assert change["after"]["device_bytes"] == gain["after_bytes"] < gain["before_bytes"] and gain["fits"]
    assert change["edit"]["text"]


def test_the_change_is_what_it_says_when_it_is_applied(cold, folder, written):
    change = written[2]["change"]
    assert change["edit"]["language"] == "diff" and change["in_the_way"] == [], change
    assert "BatchNorm" not in change["edit"]["text"], "there is none"
    texts = {path: path.read_text() for path in folder.glob("*.*") if path.suffix in (".py", ".yaml")}
    if change["edit"]["text"]:
        words = ["git", "apply", "-"]
        patched = subprocess.run(words, input=change["edit"]["text"], text=True, cwd=folder, capture_output=True)
        assert patched.returncode == 0, patched.stderr
    words = shlex.split(change["edit"]["command"]) or [str(word) for word in COMMAND]
    variables = dict(word.split("=", 1) for word in itertools.takewhile(lambda word: "=" in word, words))
    try:
        report, done = cold(*words[len(variables) :], flags=("--memory", "570MiB"), cwd=folder, env=variables)
        assert report["verdict"] == "fits", done.stderr
        assert report["peak"]["allocated_bytes"] == change["after"]["allocated_bytes"]
        assert report["peak"]["reserved_bytes"] == change["after"]["reserved_bytes"]
    finally:
        for path, text in texts.items():
            path.write_text(text)


def test_what_is_a_cause_is_no_alibi(written):
    why = written[2]["why"]
    causes, alibis = {row["id"] for row in why["causes"]}, {row["name"] for row in why["alibis"]}
    assert "inputs" in causes and "inputs" not in alibis
    assert "attention matrices" in alibis


def test_settings_that_fit_are_diffs_that_apply(cold, folder, written):
    small, large = written[2]["configurations"]
    assert (small["as_it_is"], large["as_it_is"]) == ("does_not_fit", "fits")
    row = next(row for row in small["settings"] if row["what"].startswith("batch_size"))
    value = re.search(r"batch_size (\d+)", row["what"])[1]
    patched = subprocess.run(["git", "apply", "-"], input=row["edit"]["text"], text=True, cwd=folder, capture_output=True)
    assert patched.returncode == 0, patched.stderr
    try:
        assert (folder / "small.yaml").read_text() == CONFIG.replace("batch_size: 128", f"batch_size: {value}")
        report, _ = cold(*COMMAND, flags=("--memory", "570MiB"), cwd=folder)
        assert report["verdict"] == "fits"
    finally:
        (folder / "small.yaml").write_text(CONFIG)


def test_the_answer_is_that_of_run(warm, folder, written):
    report, _ = warm(*COMMAND, flags=("--memory", "570MiB"), cwd=folder)
    assert report["headline"].split("  ")[0] == written[2]["answer"]["word"]
    whole, _ = warm(*COMMAND, cwd=folder)
    assert whole["peak"]["allocated_bytes"] == written[2]["anatomy"]["allocated_bytes"]
    assert whole["peak"]["reserved_bytes"] == written[2]["anatomy"]["reserved_bytes"]


def test_files_of_others_stay(cold, folder):
    (folder / "OTHER.md").write_text("mine")
    done = cold.command("report", "-o", "OTHER.md", "--", *COMMAND, cwd=folder)
    assert_refused(done, "`OTHER.md` is there and is not a document of Fathom", "name another place")
    assert (folder / "OTHER.md").read_text() == "mine"


@pytest.mark.parametrize(
    ("flags", "message", "hint"),
    [
        (("-o", "MEMORY.txt"), "is no name of a Markdown file", "`-o MEMORY.md`"),
        (("--vary", "batch_size=1..8"), "is a range", "name the values"),
        (("--compare", " "), "names no command", "`--compare"),
        (("--gpu", "t4,rtx3090", "--memory", "8GB,16GB"), "several GPUs and several memories", "name one GPU"),
        (("--vary", "nothing=1,2"), "is neither a flag", "say how it is set"),
    ],
)
def test_bad_input(cold, folder, tmp_path, flags, message, hint):
    where = () if "-o" in flags else ("-o", tmp_path / "M.md")
    done = cold.command("report", *flags, *where, "--", *COMMAND, cwd=folder)
    assert_refused(done, message, hint)


def test_a_script_that_fails_gets_a_short_document(cold, tmp_path):
    done = cold.command("report", "-o", "M.md", "--", PYTHON, "-c", "raise ValueError('no data')", cwd=tmp_path)
    assert done.returncode == 3, done.stderr
    text = (tmp_path / "M.md").read_text()
    assert "**SCRIPT FAILED**" in text and "no data" in text and "## Scaling" not in text
    assert "Allocated and reserved bytes" not in text and "before it used the GPU" in text, "nothing was measured"
    assert "trials were run" not in text


def test_what_is_known_when_a_signal_comes_is_written(cold, folder, tmp_path):
    path = tmp_path / "M.md"
    words = [FATHOM, "report", "--fresh", "-o", path, "--", *COMMAND]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    process = subprocess.Popen(words, cwd=folder, env=environment(), **pipes)
    for line in process.stderr:
        if "how the peak grows" in line:
            break
    time.sleep(0.2)
    os.killpg(process.pid, signal.SIGINT)
    process.communicate(timeout=60)
    assert process.returncode == 4
    text = path.read_text()
    assert "> **Unfinished:** SIGINT ended it after" in text and "## Anatomy" in text and "## The change" not in text
    assert json.loads(path.with_suffix(".json").read_text())["unfinished"]
    assert "stays the same" not in text, "what was cut off says nothing of its setting"


# -- the documents of the examples --------------------------------------------------------------------


@pytest.mark.parametrize("case", documents.written())
def test_the_document_of_an_example_is_not_stale(case):
    assert documents.stale(case) == [], "hint: make documents"


@pytest.mark.parametrize("case", documents.written())
def test_every_number_of_an_example_stands_in_its_json(case):
    folder = ROOT / "examples" / case
    text, document = (folder / "MEMORY.md").read_text(), json.loads((folder / "MEMORY.json").read_text())
    assert documents.unknown_sizes(text, document) == []
