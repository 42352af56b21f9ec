"""Readers whom no function mode sees: what they read on the host is decided, and noted, before they do."""

import io
import multiprocessing

import numpy as np
import pytest
import torch
from fathom._doorway.values import values
from torch.utils.data import DataLoader, Dataset, TensorDataset

COUNT = 90_000


@torch.jit.script
def positive(x):
    return x[x > 1]


def unknown(device="cuda"):
    """A gradient of a graph that is no toy."""
    x = torch.randn(COUNT, generator=torch.Generator().manual_seed(0)).to(device).requires_grad_()
    (x.square() * x).sum().backward()
    return x.grad


def decisions():
    return values.get().decisions.total()


class Labels(Dataset):
    """What a worker gives may be a number of Python's."""

    def __init__(self, scores):
        self.rows = {"scores": [scores]}

    def __len__(self):
        return 4

    def __getitem__(self, index):
        return int(self.rows["scores"][0][index] > 1)


def written_over(x):
    rows = np.zeros(COUNT, dtype=np.float32)
    torch.from_numpy(rows).copy_(x)
    return int((rows > 1).sum())


def read_again(x):
    room = torch.empty(COUNT)
    rows = room.numpy()
    room.copy_(x)
    return int((rows > 1).sum())


def saved(x):
    file = io.BytesIO()
    torch.save({"scores": x}, file)
    file.seek(0)
    return int((torch.load(file)["scores"] > 1).sum())


def saved_on_host(x):
    file = io.BytesIO()
    torch.save(x.cpu(), file)
    file.seek(0)
    return int((torch.load(file, map_location="cpu") > 1).sum())


def of_workers(data):
    fork = multiprocessing.get_context("fork")
    return list(DataLoader(data, batch_size=2, num_workers=1, multiprocessing_context=fork))


READERS = {
    "written over an array": written_over,
    "an array of what is written": read_again,
    "NumPy by dlpack": lambda x: int((np.from_dlpack(x.cpu()) > 1).sum()),
    "a script of the host's": lambda x: positive(x.cpu()).shape,
    "tensors of a worker": lambda x: sum(int((rows > 1).sum()) for (rows,) in of_workers(TensorDataset(x.cpu()[:4]))),
    "numbers of a worker": lambda x: [part.tolist() for part in of_workers(Labels(x.cpu()))],
    "shared memory": lambda x: int((x.cpu().share_memory_() > 1).sum()),
    "a file": saved,
    "a file, on the host": saved_on_host,
}


@pytest.mark.parametrize("name", READERS)
def test_a_reader_is_noted(name, fresh):
    x, before = unknown(), decisions()
    READERS[name](x)
    assert decisions() > before
    known, before = torch.arange(COUNT, device="cuda") / 9e3, decisions()
    expected = READERS[name](known.cpu())
    assert READERS[name](known) == expected and decisions() == before


def test_nothing_is_noted_of_what_is_only_kept(fresh):
    before = decisions()
    file = io.BytesIO()
    torch.save(unknown(), file)
    file.seek(0)
    torch.load(file)
    DataLoader(TensorDataset(unknown().cpu()))
    assert decisions() == before


def test_a_draw_on_the_host_takes_any_weights(fresh):
    x, before = unknown().cpu(), decisions()
    drawn = torch.multinomial(x[:10], 3)
    assert drawn.shape == (3,) and sorted(drawn.tolist())[-1] < 10 and decisions() > before
