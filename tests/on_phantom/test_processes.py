"""Processes that a script starts by itself."""

import os
import subprocess
import sys

import torch
from torch.utils.data import DataLoader, TensorDataset


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
