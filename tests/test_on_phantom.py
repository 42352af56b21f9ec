"""Starts tests/on_phantom on the phantom: all of it with the default torch; with others `make test` tries some files, and
`make test-torches` all."""

import subprocess

import pytest
from conftest import PYTHON, PYTHONS, ROOT, environment, missing

FOLDER = ROOT / "tests" / "on_phantom"
DEFAULT, *OTHERS = PYTHONS
# What differs most from torch to torch: memory, its history, streams and values.
SAMPLE = ["test_memory.py", "test_script_history.py", "test_streams.py", "test_values.py"]


def check(fathom, version, *paths):
    if not PYTHONS[version].exists():
        missing(PYTHONS[version], f"torch {version} is not tested; `make test` installs it")
    report, done = fathom.inside(version, *paths)
    assert done.returncode == 0 and " passed" in done.stdout, f"\n{done.stdout}\n{done.stderr}"
    assert report["software"]["torch"].startswith(version)
    # Some of them read what nobody knows.
    assert report["verdict"] == "fits_if"


def test_inside(fathom):
    check(fathom, DEFAULT, FOLDER)


@pytest.mark.parametrize("version", OTHERS)
def test_inside_other_torches(fathom, version):
    check(fathom, version, *(FOLDER / name for name in SAMPLE))


@pytest.mark.torches
@pytest.mark.parametrize("version", OTHERS)
def test_all_inside_other_torches(fathom, version):
    check(fathom, version, FOLDER)


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
    words = [PYTHON, "-m", "pytest", "--collect-only", "-q", "tests", "--ignore-glob=tests/test_[!r]*"]
    done = subprocess.run(words, cwd=ROOT, env=environment(), capture_output=True, text=True)
    assert "test_run.py" in done.stdout and "on_phantom/test_values" not in done.stdout
