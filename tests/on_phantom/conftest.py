"""Tests in this folder run inside a process that is on the phantom (see ../test_on_phantom.py)."""

import gc

import pytest
import torch


@pytest.fixture(scope="session", autouse=True)
def is_on_the_card():
    """The doorway opens with the first use of the card: in whichever file that a run begins with."""
    torch.ones(1, device="cuda")


@pytest.fixture(scope="module", autouse=True)
def swift():
    """Hundreds of thousands of objects that stay: the collector, which many tests call, need not look through them."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def fresh():
    """An empty cache and peaks that start at zero."""
    gc.collect()
    torch.cuda.synchronize()
    torch._C._cuda_clearCublasWorkspaces()  # one for each stream that some test has used
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    yield
    torch.cuda.empty_cache()


def pytest_sessionfinish():
    """A step after all that ran out of memory: `fathom run` sees that the script went on."""
    weight = torch.ones(1, device="cuda", requires_grad=True)
    weight.sum().backward()
    torch.optim.SGD([weight]).step()


@pytest.fixture
def refused():
    """For tests that run out of memory: what they cached does not trouble the next."""
    yield
    gc.collect()
    torch.cuda.empty_cache()
