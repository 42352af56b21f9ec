"""Tests in this folder run inside a process that is on the phantom (see ../test_on_phantom.py)."""

import gc

import pytest
import torch


@pytest.fixture
def fresh():
    """An empty cache and peaks that start at zero."""
    gc.collect()
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    yield
    torch.cuda.empty_cache()


@pytest.fixture(scope="session")
def survivor():
    weight = torch.ones(1, device="cuda", requires_grad=True)
    return weight, torch.optim.SGD([weight])


@pytest.fixture
def refused(survivor):
    """For tests that run out of memory: steps afterwards tell `fathom run` that the script went on."""
    yield
    torch.cuda.empty_cache()
    weight, optimizer = survivor
    for _ in range(10):  # more than any other optimizer has taken
        weight.sum().backward()
        optimizer.step()
