"""One card is one memory, whichever processes of a run use it."""

import re

import pytest
from conftest import PYTHON

IS_WARM = True

GIB = 1 << 30

# Holds some GiB, starts another that holds some more, and trains one step on a third card's worth of nothing.
HOLDS = """
import subprocess, sys, torch
own, *others = sys.argv[1:]
held = torch.empty(int(float(own) * 2**30), dtype=torch.uint8, device="cuda")
if others:
    sys.exit(subprocess.call([sys.executable, __file__, *others]))
print("free", torch.cuda.mem_get_info()[0])
"""


@pytest.fixture
def holds(tmp_path):
    path = tmp_path / "holds.py"
    path.write_text(HOLDS)
    return path


def test_two_processes_that_fit_together(fathom, holds):
    report, done = fathom(PYTHON, holds, "6", "3", flags=("--gpu", "rtx3060-12g"))
    assert done.returncode == 0, done.stdout + done.stderr
    context, total = report["gpu"]["context_bytes"], report["gpu"]["memory_bytes"]
    assert report["peak"]["device_bytes"] == 9 * GIB + 2 * context
    assert report["peak"]["process_bytes"] == 6 * GIB + context
    parent, child = report["processes"]
    assert (parent["bytes"], child["bytes"]) == (6 * GIB + context, 3 * GIB + context)
    assert child["parent_pid"] == parent["pid"] and child["command"].endswith("holds.py 3")
    # What the child saw is what the ledger leaves.
    free = int(re.search(r"^free (\d+)$", done.stdout, re.M)[1])
    rows = {row["name"]: row["bytes"] for row in report["ledger"]}
    assert free == rows["free"] == total - report["peak"]["device_bytes"]
    assert rows["others"] == child["bytes"] and rows["context"] == context
    assert report["floor_bytes"] == report["peak"]["device_bytes"]
    assert "9.22 GiB held by 2 processes at the card's peak" in done.stdout
    assert f"3.11 GiB  process {child['pid']}, child of {parent['pid']}" in done.stdout


def test_two_processes_that_do_not(fathom, holds):
    report, done = fathom(PYTHON, holds, "6", "9", flags=("--gpu", "rtx3060-12g"))
    assert done.returncode == 1 and done.stdout.startswith("DOES NOT FIT"), done.stdout + done.stderr
    refusal = report["out_of_memory"]
    context, total = report["gpu"]["context_bytes"], report["gpu"]["memory_bytes"]
    assert refusal["tried_bytes"] == 9 * GIB and refusal["free_bytes"] == total - 6 * GIB - 2 * context
    # PyTorch's own text names the other process.
    assert f"Process {report['processes'][0]['pid']} has 6.11 GiB memory in use" in refusal["message"]


def test_no_room_for_a_context(fathom, holds):
    report, done = fathom(PYTHON, holds, "11.63", "1", flags=("--gpu", "rtx3060-12g"))
    assert done.returncode == 1 and report["verdict"] == "does_not_fit", done.stdout + done.stderr
    assert "no room for the CUDA context of process" in report["out_of_memory"]["message"]


@pytest.mark.matrix
def test_without_a_limit_all_processes_count(fathom, holds):
    """`fits on` has room for both, each with a context of its own."""
    report, done = fathom(PYTHON, holds, "6", "3")
    assert done.returncode == 0, done.stderr
    cards = [card["name"] for card in report["fits_on"]]
    assert "rtx3080-10g" in cards and all(9 * GIB < card["memory_bytes"] for card in report["fits_on"])


def test_ranks_of_one_machine_have_a_card_each(fathom, tmp_path):
    """Two processes of torchrun on two cards: nothing is added up."""
    script = tmp_path / "rank.py"
    script.write_text(
        "import os, time, torch\n"
        "rank = int(os.environ['LOCAL_RANK'])\n"
        "torch.cuda.set_device(rank)\n"
        "x = torch.empty((6 + rank) << 30, dtype=torch.uint8, device='cuda')\n"
        "open(os.environ['HERE'] + str(rank), 'w').close()\n"
        "while not os.path.exists(os.environ['HERE'] + str(1 - rank)): time.sleep(0.01)\n"
    )
    torchrun = (PYTHON.parent / "torchrun", "--nproc-per-node", "2", "--master-port", "0", script)
    flags = ("--gpu", "rtx3060-12g", "--gpus", "2", "--steps", "0")
    report, done = fathom(*torchrun, flags=flags, env={"HERE": tmp_path / "here"})
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["peak"]["device_bytes"] == 7 * GIB + report["gpu"]["context_bytes"]
    assert [process["bytes"] for process in report["processes"]] == [report["peak"]["device_bytes"]]


def test_without_pytorchs_cache_the_sum_adds_up(fathom):
    """PyTorch counts nothing then; the card does."""
    code = "import torch; x = torch.empty(3 << 30, dtype=torch.uint8, device='cuda'); y = torch.empty(1 << 20, device='cuda')"
    variables = {"PYTORCH_NO_CUDA_MEMORY_CACHING": "1"}
    report, done = fathom.code(code, env=variables)
    context, held = report["gpu"]["context_bytes"], (3 << 30) + (4 << 20)
    assert report["peak"]["device_bytes"] == held + context and report["peak"]["reserved_bytes"] == 0
    assert "held 3.00 GiB that PyTorch does not count + context 256.0 MiB = 3.25 GiB" in done.stdout
    assert any("caching allocator was off" in note for note in report["notes"])
    report, _ = fathom(PYTHON, "-c", code, env=variables)
    assert report["fits_on"] and all(held < card["memory_bytes"] for card in report["fits_on"])
