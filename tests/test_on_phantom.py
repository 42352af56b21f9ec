"""Starts tests/on_phantom on the phantom, in parts; with torches that are not the default `make test` tries one part."""

import subprocess

import pytest
from conftest import PYTHON, PYTHONS, ROOT, environment, missing

FOLDER = ROOT / "tests" / "on_phantom"
# Each about a third of the time; the last one is every file that the others do not name.
PARTS = {
    "programs": ["test_levers.py", "test_programs.py"],
    "processes": ["test_border.py", "test_processes.py", "test_torch_features.py", "test_torch_kinds.py"],
    "rest": None,
}
# What differs from torch to torch (memory, its history, streams, values) is in the rest.
EVERY_TORCH = "rest"


def files(part):
    named = [name for names in PARTS.values() for name in names or ()]
    return PARTS[part] or sorted(path.name for path in FOLDER.glob("test_*.py") if path.name not in named)


def case(version, part):
    is_in_make_test = PYTHONS[version] == PYTHON or part == EVERY_TORCH
    return pytest.param(version, part, marks=[] if is_in_make_test else [pytest.mark.torches])


@pytest.mark.parametrize(("version", "part"), [case(version, part) for version in PYTHONS for part in PARTS])
def test_inside(fathom, version, part):
    if not PYTHONS[version].exists():
        missing(PYTHONS[version], f"torch {version} is not tested; `make test` installs it")
    report, done = fathom.inside(version, *(FOLDER / name for name in files(part)))
    assert done.returncode == 0, f"\n{done.stdout}\n{done.stderr}"
    assert report["software"]["torch"].startswith(version)
    assert " passed" in done.stdout
    # Some of them read what nobody knows.
    assert report["verdict"] == ("fits" if part == "processes" else "fits_if")


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
