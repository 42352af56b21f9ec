"""`fathom explain`: who holds the memory of a file, and files that are refused."""

import json

import pytest
from conftest import PYTHON, ROOT

SNAPSHOT = ROOT / "tests/recorded/kdr2-t2-None_fwd-eager_bwd.pickle"
# Keeps every output: 4 KiB more each step.
LEAK = """
import torch
model = torch.nn.Linear(1024, 1024, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
kept = []
for step in range(50):
    output = model(torch.randn(1, 1024, device="cuda"))
    output.sum().backward()
    optimizer.step()
    kept.append(output)
"""


@pytest.fixture(scope="module")
def run(fathom, tmp_path_factory):
    folder = tmp_path_factory.mktemp("leak")
    script = folder / "train.py"
    script.write_text(LEAK)
    report, done = fathom(PYTHON, script, flags=("--gpu", "rtx3090", "--out", folder / "out"))
    files = list((folder / "out").glob("recording.*.fathom"))
    if not files:
        pytest.skip("nothing was recorded")
    return report, done, files[0]


def test_the_bytes_of_a_run_are_all_there(run):
    report, done, _ = run
    allocated = report["peak"]["allocated_bytes"]
    for name, field in (("categories", "bytes"), ("modules", "own_bytes"), ("lines", "bytes"), ("operators", "bytes")):
        assert sum(row[field] for row in report[name]) == allocated, name
    assert report["peak"]["file"].endswith("train.py") and report["peak"]["line"] in (7, 8)
    held = {row["name"]: row["bytes"] for row in report["categories"]}
    assert held["weights"] == 4 * (1024 * 1024 + 1024) and held["unknown"] < allocated / 100
    ledger = {row["name"]: row["bytes"] for row in report["ledger"]}
    assert ledger["card"] == ledger["context"] + ledger["free"] + ledger["reserved"]
    parts = ("cached_segments", "cached_fragments", "waiting", "rounding", "tensors")
    assert ledger["reserved"] == sum(ledger[part] for part in parts)
    shown = done.stdout[done.stdout.index("FITS") :].splitlines()
    assert len(shown) <= 45 and "held     weights" in done.stdout


def test_a_leak_is_found_with_its_line(run):
    report, done, _ = run
    assert report["growth_bytes_per_step"] == 4096
    assert report["growth"][0]["file"].endswith("train.py") and report["growth"][0]["line"] == 7
    assert "growth   4.0 KiB more every step, made at" in done.stdout


def test_a_recording_is_explained_as_its_run_was(fathom, run, tmp_path):
    report, _, path = run
    out = tmp_path / "explained.json"
    done = fathom.command("explain", path, "--json", out)
    explained = json.loads(out.read_text())
    assert done.returncode == 0 and explained["schema"] == "fathom.explain/1" and explained["complete"]
    for name in ("categories", "modules", "lines", "tensors", "phases", "growth"):
        assert explained[name] == report[name], name


def test_a_killed_recording_is_read_and_a_damaged_one_is_not(fathom, run, tmp_path):
    whole = run[2].read_bytes()
    path = tmp_path / "part.fathom"
    path.write_bytes(whole[: len(whole) // 2])
    done = fathom.command("explain", path)
    assert done.returncode == 0 and "ends before its process did" in done.stdout, done.stderr
    damaged = bytearray(whole)
    damaged[len(whole) // 2] ^= 1
    path.write_bytes(damaged)
    done = fathom.command("explain", path)
    assert done.returncode == 2 and "is damaged" in done.stderr and "byte " in done.stderr and done.stdout == ""


def test_a_snapshot_of_a_real_card(fathom):
    done = fathom.command("explain", SNAPSHOT, "--json", "-")
    report = json.loads(done.stdout)
    assert done.returncode == 0 and sum(row["bytes"] for row in report["categories"]) == report["peak"]["allocated_bytes"]
    assert "nothing has a name here" in report["notes"][0]
    folded, full = (fathom.command("explain", SNAPSHOT, *flags).stdout for flags in ((), ("--all",)))
    assert len(folded.splitlines()) <= 45 < len(full.splitlines())


def test_what_is_no_recording_is_refused(fathom, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("fathom, not a recording")
    done = fathom.command("explain", path)
    assert done.returncode == 2 and "text.txt" in done.stderr and "hint:" in done.stderr
