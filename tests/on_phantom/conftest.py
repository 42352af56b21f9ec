"""Tests in this folder run inside a process that is on the phantom (see ../test_on_phantom.py)."""

import pytest
import torch


@pytest.fixture
def fresh():
    """An empty cache and peaks that start at zero."""
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    yield
    torch.cuda.empty_cache()


@pytest.fixture
def refused():
    """For tests that run out of memory: a step afterwards tells `fathom run` that the script went on."""
    yield
    torch.cuda.empty_cache()
    weight = torch.ones(1, device="cuda", requires_grad=True)
    weight.sum().backward()
    torch.optim.SGD([weight]).step()
