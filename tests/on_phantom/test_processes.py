"""Processes that a script starts by itself."""

import os
import signal
import subprocess
import sys

import torch
from fathom._doorway import functions
from torch.utils.data import DataLoader, TensorDataset

GIB = 1 << 30


def test_data_loader_workers():
    data = TensorDataset(torch.arange(64.0))
    for context in (None, "spawn"):
        loader = DataLoader(data, batch_size=16, num_workers=2, pin_memory=True, multiprocessing_context=context)
        batches = [rows for (rows,) in loader]
        assert all(rows.is_pinned() for rows in batches)
        assert torch.cat(batches).cuda().sum().item() == 2016


def test_a_forked_child_may_not_use_the_card(tmp_path):
    torch.ones(1, device="cuda")
    child = os.fork()
    if child == 0:
        code = 1
        try:
            assert torch.ones(3).sum().item() == 3  # the CPU stays usable
            torch.ones(1, device="cuda")
        except RuntimeError as error:
            code = 42 if "Cannot re-initialize CUDA in forked subprocess" in str(error) else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 42
    assert torch.arange(4, device="cuda").sum().item() == 6  # and the parent is as before


def double(queue, done):
    x = queue.get()
    x *= 2
    done.put(x.sum().item())


def on_the_same_card(queue, done):
    """Uses tensors of its parent, takes memory of its own, and never ends by itself. It takes less than its parent: the
    report is about the largest, and who is killed says nothing of its peak."""
    small, large = queue.get()
    done.put((small.tolist(), large.shape, torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]))
    small.mul_(2)
    done.put(small + 100)
    del small, large
    queue.get()
    kept = torch.empty(GIB, dtype=torch.uint8, device="cuda")
    done.put(torch.cuda.mem_get_info()[0])
    queue.get()
    del kept


def test_a_spawned_child_uses_the_card():
    code = "import torch; print(torch.arange(10, device='cuda').sum().item())"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "45\n"


def test_tensors_are_shared_through_host_memory():
    context = torch.multiprocessing.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    process = context.Process(target=double, args=(queue, done))
    process.start()
    x = torch.ones(4).share_memory_()
    queue.put(x)
    assert done.get(timeout=60) == 8
    process.join()
    assert process.exitcode == 0 and x.tolist() == [2.0] * 4


def test_processes_share_one_card(fresh):
    """A child gets tensors of the card by a queue; what it holds is missing here until it is killed."""
    context = torch.multiprocessing.get_context("spawn")
    queue, done = context.Queue(), context.Queue()
    child = context.Process(target=on_the_same_card, args=(queue, done), daemon=True)
    child.start()
    small, large = torch.arange(4, device="cuda"), torch.empty(2 * GIB, dtype=torch.uint8, device="cuda")
    free, total = torch.cuda.mem_get_info()
    queue.put((small, large))
    values, shape, allocated, seen = done.get(timeout=60)
    assert (len(values), shape) == (4, (2 * GIB,))  # what it holds is not known in another process
    context_bytes = free - seen  # shared memory is counted once, where it was made
    assert allocated == 0 and 0 < context_bytes < GIB
    theirs = done.get(timeout=60)
    ledger = functions.install().ledger
    assert ledger.is_unknown(small) and ledger.is_unknown(theirs)  # another process may have written there
    del theirs
    queue.put("take memory")
    assert done.get(timeout=60) == torch.cuda.mem_get_info()[0] < seen - GIB
    assert f"{child.pid} " in torch.cuda.list_gpu_processes() + " " or not has_nvml()
    os.kill(child.pid, signal.SIGKILL)
    child.join()
    assert torch.cuda.mem_get_info() == (free, total)


def has_nvml():
    try:
        import pynvml  # noqa: F401
    except ImportError:
        return False
    return True
