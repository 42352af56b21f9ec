"""Settings of the script's own are found by their names and values, with what sets them; what only looks alike is left alone."""

import argparse
import json

import pytest
import torch
from fathom._doorway import levers
from fathom._doorway.edits.source import Source
from fathom._doorway.own_settings import constants, kinds


@pytest.fixture
def settings(monkeypatch):
    """`settings(run)`: those that are found while it runs, by how they are written."""

    def found(run, words=()):
        monkeypatch.setattr("sys.argv", ["train.py", *words])
        monkeypatch.setattr(constants, "of_files", lambda note: None)
        undo = levers.install([{"lever": "own-setting"}])
        run()
        (facts,) = undo()
        return {each["shown"]: each for each in facts["settings"]}

    return found


def truth(text):
    return text.lower() in ("yes", "true", "1")


FLAGS = [
    (("--amp",), {"action": "store_true"}, {"--amp": "amp-fp16"}),
    (("--use-bf16",), {"action": argparse.BooleanOptionalAction, "default": False}, {"--use-bf16": "amp-bf16"}),
    (("--grad_ckpt",), {"type": truth, "default": False}, {"--grad_ckpt True": "gradient-checkpointing"}),
    (("--gradient-checkpointing",), {"type": bool, "default": False}, {"--gradient-checkpointing True": "gradient-checkpointing"}),
    (("-c", "--with-cp"), {"nargs": "?", "const": True, "default": False, "type": truth}, {"--with-cp True": "gradient-checkpointing"}),
    (("--precision",), {"choices": ["fp32", "bf16"], "default": "fp32"}, {"--precision bf16": "amp-bf16"}),
    (("--mixed_precision",), {"default": "no"}, {"--mixed_precision bf16": "amp-bf16", "--mixed_precision fp16": "amp-fp16"}),
    (("--attn",), {"default": "eager"}, {}),
    (("--attn-implementation",), {"default": "eager"}, {"--attn-implementation sdpa": "fused-attention"}),
    (("--opt",), {"choices": ["adamw", "adafactor", "adamw8bit"], "default": "adamw"},
     {"--opt adafactor": "adafactor", "--opt adamw8bit": "8bit-optimizer"}),
    (("--opt",), {"default": "adamw"}, {}),
    # Not what they look like, or on already.
    (("--checkpoint",), {"default": "last.pt"}, {}),
    (("--save-checkpoint",), {"action": "store_true"}, {}),
    (("--resume-checkpoint",), {"default": False, "type": truth}, {}),
    (("--no-amp",), {"action": "store_true"}, {}),
    (("--amp",), {"action": "store_true", "default": True}, {}),
    (("--sample-steps",), {"type": int, "default": 4}, {}),
]  # fmt: skip


@pytest.mark.parametrize("names, options, expected", FLAGS, ids=[" ".join(row[0]) + str(at) for at, row in enumerate(FLAGS)])
def test_flags(names, options, expected, settings):
    def run():
        parser = argparse.ArgumentParser()
        parser.add_argument(*names, **options)
        parser.parse_args()

    found = settings(run)
    assert {shown: each["like"] for shown, each in found.items()} == expected
    for shown, each in found.items():
        assert " ".join(each["words"]) == shown


def test_a_pair_of_accumulation_and_batch_size(settings):
    def run():
        parser = argparse.ArgumentParser()
        parser.add_argument("--batch_size", type=int, default=64)
        parser.add_argument("--eval-batch-size", type=int, default=7)
        parser.add_argument("--accum_iter", type=int, default=1)
        parser.parse_args()

    found = settings(run, ("--batch_size", "12", "--accum_iter", "3"))
    assert list(found) == ["--accum_iter 6 --batch_size 6", "--accum_iter 12 --batch_size 3"]
    assert [(each["parts"], each["batch"]) for each in found.values()] == [(6, 6), (12, 3)]


def test_keys_of_files(settings, tmp_path):
    yaml = pytest.importorskip("yaml")
    path = tmp_path / "é.yaml"
    train = "train: {use_checkpoint: False, 'batch_size': 16, accumulate: 1}\n"
    path.write_text(f'# é\n{train}amp:\n  enabled: no  # yet\n  dtype: "float32"\n')

    def run():
        with open(path, encoding="utf-8") as file:
            yaml.safe_load(file)

    found = settings(run)
    text = {shown: edited(path, each["edits"]) for shown, each in found.items()}
    assert "use_checkpoint: True," in text["é.yaml: train.use_checkpoint: True"]
    assert "enabled: yes  # yet" in text["é.yaml: amp.enabled: yes"]
    assert 'dtype: "bfloat16"' in text["é.yaml: amp.dtype: \"bfloat16\""]
    both = text["é.yaml: train.accumulate: 4, é.yaml: train.batch_size: 4"]
    assert "'batch_size': 4, accumulate: 4}" in both


def test_keys_of_json(settings, tmp_path):
    path = tmp_path / "config.json"
    path.write_text('{"model": {"use_checkpoint": false, "dropout": 0.1}, "a": {"amp": false}, "b": {"amp": false}}')

    def run():
        with open(path) as file:
            json.load(file)

    found = settings(run)
    assert [edited(path, each["edits"])[:36] for each in found.values()] == ['{"model": {"use_checkpoint": true, "']


def edited(path, edits):
    raw = path.read_bytes()
    for edit in sorted(edits, key=lambda edit: -edit["begin"]):
        raw = raw[: edit["begin"]] + edit["text"].encode() + raw[edit["end"] :]
    return raw.decode()


TEXT = """
from dataclasses import dataclass
gradient_accumulation_steps = 5 * 8
batch_size = 12
precision = "fp32"

@dataclass
class Config:
    use_checkpoint: bool = False
    lr: float = 1e-3

_C.TRAIN.AMP_ENABLE = False
options = {"grad_ckpt": False, "checkpoint_every": 0}

def build(depth, use_flash=False, *, mixed_precision=False):
    return Net(depth, memory_efficient=False)
"""


def test_constants():
    found = []
    constants.of_source(Source("train.py", TEXT.encode()), found.append)
    shown = {made["shown"]: made for one in found for value, like in kinds.proposals(one) if (made := one.to(value, like))}
    assert set(shown) == {
        'train.py: precision = "bf16"', 'train.py: precision = "fp16"', "train.py: use_checkpoint = True",
        "train.py: grad_ckpt = True", "train.py: use_flash = True", "train.py: mixed_precision = True",
        "train.py: memory_efficient = True", "train.py: AMP_ENABLE = True",
    }  # fmt: skip
    (edit,) = shown["train.py: use_checkpoint = True"]["edits"]
    assert TEXT[edit["begin"] : edit["end"]] == "False" and edit["text"] == "True"
    assert [one.value for one in found if kinds.is_accumulation(one)] == [40]


def test_a_name_alone_is_no_evidence():
    likes = ("gradient-checkpointing", "amp-bf16", "fused-attention", "adafactor", "accumulate")
    for like in likes:
        undo = levers.install([{"lever": "own-setting", "name": "--x", "like": like, "parts": 2, "batch": None}])
        weight = torch.nn.Linear(4, 4)
        optimizer = torch.optim.AdamW(weight.parameters())
        weight(torch.zeros(1, 4)).sum().backward()
        optimizer.step()
        (facts,) = undo()
        assert facts["lever"] == "--x" and not facts["applied"] and "nothing was seen" in facts["reason"], facts


def test_what_is_seen_counts():
    def block(x):
        return torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False)

    for like in ("gradient-checkpointing", "amp-bf16", "accumulate"):
        undo = levers.install([{"lever": "own-setting", "name": "--x", "like": like, "parts": 2, "batch": None}])
        layer = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.BatchNorm1d(4))
        optimizer = torch.optim.AdamW(layer.parameters())
        for _ in range(2):
            with torch.autocast("cpu", torch.bfloat16):
                loss = block(torch.randn(2, 4)).sum()
            loss.backward()
        optimizer.step()
        (facts,) = undo()
        assert facts["applied"] and facts["meets_batch_norm"], facts


def test_flags_of_click(settings):
    click = pytest.importorskip("click")

    @click.command()
    @click.option("--fp16", is_flag=True)
    @click.option("--batch-gpu", "batch_size", type=int, default=8)
    @click.option("--precision", type=click.Choice(["fp32", "bf16"]), default="fp32")
    def main(**options):
        pass

    found = settings(lambda: main([], standalone_mode=False))
    assert {shown: each["words"] for shown, each in found.items()} == {"--fp16": ["--fp16"], "--precision bf16": ["--precision", "bf16"]}
