"""Starts tests/on_phantom on the phantom, once for each torch."""

import subprocess

import pytest
from conftest import PYTHON, PYTHONS, ROOT, environment, missing


@pytest.mark.parametrize("version", PYTHONS)
def test_inside(shared, version):
    if not PYTHONS[version].exists():
        missing(PYTHONS[version], f"torch {version} is not tested; `make test` installs it")
    report, done = shared("inside", version)
    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"
    assert report["software"]["torch"].startswith(version)
    # Some of them read what nobody knows.
    assert " passed" in done.stdout and report["verdict"] == "fits_if"


def test_the_largest_cards_take_no_host_memory(fathom):
    """A card larger than the host; every GiB of it is used."""
    code = """
import torch
def resident():
    return int(open("/proc/self/statm").read().split()[1]) * 4096
torch.ones(1, device="cuda")
before = resident()
free = torch.cuda.mem_get_info()[0]
blocks = [torch.zeros(1 << 28, device="cuda") for _ in range(free >> 30)]
blocks = [block.add_(1) for block in blocks]
assert torch.cuda.memory_allocated() >> 30 == len(blocks) == free >> 30
print("GiB", len(blocks), "MiB", resident() - before >> 20)
"""
    for gpu, least in (("a100-80g", 78), ("b200", 160)):
        report, done = fathom.code(code, gpu=gpu)
        assert done.returncode == 0, done.stderr
        _, gib, _, mib = done.stdout.splitlines()[0].split()
        assert int(gib) >= least and int(mib) < 32, done.stdout
        assert report["peak"]["allocated_bytes"] >= int(gib) << 30


def test_they_are_not_collected_elsewhere():
    words = [PYTHON, "-m", "pytest", "--collect-only", "-q", "tests"]
    done = subprocess.run(words, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert "test_run.py" in done.stdout and "on_phantom/test_values" not in done.stdout
