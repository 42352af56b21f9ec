"""Batch sizes are found where scripts have them, divided once, and left alone elsewhere."""

import argparse
import io

import pytest
import torch
from fathom._doorway import levers
from torch.utils.data import DataLoader, TensorDataset


@pytest.fixture
def divided():
    """Everything that reads settings, with batches in two parts; gives the lever's facts at the end."""
    undo = levers.install([{"lever": "accumulate", "parts": 2}])
    facts = []
    yield lambda: facts or facts.extend(undo()) or facts
    facts or undo()


def parsed(words, *flags):
    parser = argparse.ArgumentParser()
    for flag in flags:
        parser.add_argument(flag, type=int, default=64)
    parser.add_argument("overrides", nargs="*")
    return parser.parse_args(words)


@pytest.mark.parametrize("name", ["batch_size", "train_batch_size", "per_device_train_batch_size", "batch", "bs"])
def test_flags_and_their_defaults(name, divided):
    flag = "--" + name.replace("_", "-")
    assert getattr(parsed([flag, "16"], flag), name) == 8
    assert getattr(parsed([], flag), name) == 32
    (facts,) = divided()
    assert facts["applied"] and facts["batch"] == 16 and f"{name}: 16 → 8" in facts["sites"]


@pytest.mark.parametrize("name", ["eval_batch_size", "val_batch", "num_batches", "batches", "workers", "sample_bs"])
def test_other_flags_stay(name, divided):
    assert getattr(parsed([f"--{name}", "16"], f"--{name}"), name) == 16
    (facts,) = divided()
    assert not facts["applied"] and "no batch size" in facts["reason"]


def test_words_of_overrides(divided):
    space = parsed(["train.batch_size=16", "val.batch_size=16", "lr=16", "optimizer.batch=x"])
    assert space.overrides == ["train.batch_size=8", "val.batch_size=16", "lr=16", "optimizer.batch=x"]


def test_files(divided):
    yaml = pytest.importorskip("yaml")
    text = "data: {batch_size: 16, workers: 2}\nval: {batch_size: 16}\ntrain:\n  BATCH_SIZE: 4\n  batch: null\n"
    tree = yaml.safe_load(io.StringIO(text))
    assert tree["data"] == {"batch_size": 8, "workers": 2} and tree["val"] == {"batch_size": 16}
    assert tree["train"] == {"BATCH_SIZE": 2, "batch": None}


def test_a_number_is_divided_once_on_its_way(divided):
    yaml = pytest.importorskip("yaml")
    size = yaml.safe_load("batch_size: 16")["batch_size"]
    space = argparse.ArgumentParser()
    space.add_argument("--batch-size", type=int, default=size)
    size = space.parse_args([]).batch_size
    loader = DataLoader(TensorDataset(torch.zeros(32, 1)), batch_size=size)
    assert size == 8 and next(iter(loader))[0].shape == (8, 1)


def test_one_file_on_top_of_another(divided):
    """What cannot be divided in one place does not matter if it was in another."""
    yaml = pytest.importorskip("yaml")
    assert yaml.safe_load("batch_size: 2")["batch_size"] == 1
    assert yaml.safe_load("train: {batch_size: 1}")["train"]["batch_size"] == 1
    (facts,) = divided()
    assert facts["applied"] and facts["batch"] == 2


def test_a_script_that_ends_before_a_step(divided):
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for (x,) in DataLoader(TensorDataset(torch.zeros(1, 1)), batch_size=2):
        model(x).sum().backward()
        optimizer.step()
    (facts,) = divided()
    assert not facts["applied"] and "before all parts" in facts["reason"]
