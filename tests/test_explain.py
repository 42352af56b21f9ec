"""`fathom explain`: who holds the memory of a file, why a request failed, snapshots that are written; files that are
refused."""

import importlib.util
import json
import pickle
import re

import pytest
from conftest import PYTHON, ROOT

IS_WARM = True

RECORDED = ROOT / "tests/recorded"
SNAPSHOT = RECORDED / "kdr2-t2-None_fwd-eager_bwd.pickle"
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
# Blocks of all kinds, on two streams; at the end PyTorch's own counts.
COUNTS = """
import torch
kept = [torch.empty(size, dtype=torch.uint8, device="cuda") for size in (100, 5000, 3 << 20, 15 << 20, 200 << 20)]
with torch.cuda.stream(torch.cuda.Stream()):
    kept.append(torch.empty(30 << 20, dtype=torch.uint8, device="cuda"))
del kept[1], kept[2]
kept.append(torch.empty(1 << 20, dtype=torch.uint8, device="cuda"))
print("allocated", torch.cuda.memory_allocated())
print("reserved", torch.cuda.memory_reserved())
"""
# Leaves 222 MiB and a bit, cuts what is cached into pieces, and then wants more than the largest of them.
PIECES = """
import torch
MIB = 1 << 20
def take(size):
    return torch.empty(size * MIB, dtype=torch.uint8, device="cuda")
take(1)
free, total = torch.cuda.mem_get_info()
filler = take((free // MIB - 222) // 20 * 20)
take(100)
first = take(12)
take(120)
second = take(90)
third = take(110)
"""

# Torch has read its settings by then, and would refuse this one: a newer torch might take it.
NEWER = """
import os
import torch
model = torch.nn.Linear(512, 512, device="cuda")
os.environ["PYTORCH_ALLOC_CONF"] = "expandable_segments:False,warp_speed:9"
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(64, 512, device="cuda")).sum().backward()
optimizer.step()
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
    assert len(shown) <= 20 and "held  " not in done.stdout


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
    assert "inferred" in report["notes"][0]
    held = {row["name"]: row["bytes"] for row in report["categories"]}
    assert held["unknown"] <= report["peak"]["allocated_bytes"] / 5 and held["weights"] > 0
    assert sum(row["bytes"] for row in report["evidence"]) == report["peak"]["allocated_bytes"]
    folded, full = (fathom.command("explain", SNAPSHOT, *flags).stdout for flags in ((), ("--all",)))
    assert len(folded.splitlines()) <= 20 < len(full.splitlines())


def test_what_is_no_recording_is_refused(fathom, tmp_path):
    path = tmp_path / "text.txt"
    path.write_text("fathom, not a recording")
    done = fathom.command("explain", path)
    assert done.returncode == 2 and "text.txt" in done.stderr and "hint:" in done.stderr


def memory_viz():
    """`torch.cuda._memory_viz` by itself: it needs neither torch nor a card."""
    (path,) = PYTHON.parent.parent.glob("lib/python*/site-packages/torch/cuda/_memory_viz.py")
    spec = importlib.util.spec_from_file_location("memory_viz", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def exported(fathom, file, folder):
    """The snapshot that `fathom explain FILE --snapshot` writes, as Python reads it."""
    path = folder / "exported.pickle"
    done = fathom.command("explain", file, "--snapshot", path)
    assert done.returncode == 0, done.stderr
    return pickle.loads(path.read_bytes())


def totals(snapshot):
    """Reserved and allocated bytes."""
    blocks = [block for segment in snapshot["segments"] for block in segment["blocks"]]
    allocated = sum(block["size"] for block in blocks if block["state"] == "active_allocated")
    return sum(segment["total_size"] for segment in snapshot["segments"]), allocated


def told(summary):
    """A summary of segments without its drawings: how segments of equal size are ordered says nothing."""
    return [line for line in summary.splitlines() if not line.startswith("[")]


@pytest.mark.parametrize("name", [path.name for path in sorted(RECORDED.glob("*.p*k*l*"))])
def test_a_snapshot_is_the_same_when_it_is_written_again(fathom, tmp_path, name):
    before, after = pickle.loads((RECORDED / name).read_bytes()), exported(fathom, RECORDED / name, tmp_path)
    viz = memory_viz()
    assert totals(after) == totals(before)
    assert told(viz.segsum(after)) == told(viz.segsum(before))
    assert viz.trace(after) == viz.trace(before)


def test_a_recording_becomes_a_snapshot_with_the_counts_of_pytorch(fathom, tmp_path):
    script = tmp_path / "counts.py"
    script.write_text(COUNTS)
    _, done = fathom(PYTHON, script, flags=("--gpu", "rtx3090", "--out", tmp_path / "out"))
    (file,) = (tmp_path / "out").glob("recording.*.fathom")
    counts = dict(re.findall(r"^(allocated|reserved) (\d+)$", done.stdout, re.M))
    snapshot = exported(fathom, file, tmp_path)
    assert totals(snapshot) == (int(counts["reserved"]), int(counts["allocated"]))
    viz = memory_viz()
    lines = viz.trace(snapshot).splitlines()
    assert sum(" = cudaMalloc(" in line for line in lines) == len(snapshot["segments"])
    assert f"segments: {len(snapshot['segments'])}" in viz.segsum(snapshot)
    # Frames are the script's own: memory_viz shows them for every block.
    frames = [frame for entry in snapshot["device_traces"][0] for frame in entry["frames"]]
    assert any(frame["filename"].endswith("counts.py") for frame in frames)
    again = fathom.command("explain", tmp_path / "exported.pickle")
    assert again.returncode == 0 and "counts.py:" in again.stdout


def test_a_run_out_of_memory_is_told_why_and_what_would_have_helped(fathom, tmp_path):
    script = tmp_path / "pieces.py"
    script.write_text(PIECES)
    report, done = fathom(PYTHON, script, flags=("--gpu", "rtx3090", "--all", "--out", tmp_path / "out"))
    reason = report["out_of_memory"]["reason"]
    assert reason.startswith("No room for 110.0 MiB: the largest free block for it has 88.0 MiB, the card had ")
    assert reason.endswith("in use; `expandable_segments:True` would have met this request"), reason
    assert re.search(r"^why      No room for 110\.0 MiB", done.stdout, re.M)
    (file,) = (tmp_path / "out").glob("recording.*.fathom")
    explained = json.loads(fathom.command("explain", file, "--json", "-").stdout)
    assert explained["out_of_memory"]["reason"] == reason
    assert explained["fragments"]["shortage"]["remedy"] == "expandable_segments:True"
    assert explained["out_of_memory"]["line"] == 5  # inside of `take`
    assert len(fathom.command("explain", file).stdout.splitlines()) <= 20
    text = fathom.command("explain", "--fragments", file).stdout
    assert re.search(r"100\.0 MiB  █{6}·{42}  largest free 88\.0 MiB", text)
    # The replay is right: with that setting the same script runs to its end.
    helped, done = fathom(
        PYTHON, script, flags=("--gpu", "rtx3090"), env={"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    )
    assert helped["out_of_memory"] is None and helped["exit_code"] == 0, done.stdout


def test_the_file_that_is_explained_is_not_overwritten(fathom, tmp_path):
    path = tmp_path / "snapshot.pickle"
    path.write_bytes(SNAPSHOT.read_bytes())
    done = fathom.command("explain", path, "--snapshot", path)
    assert done.returncode == 2 and "hint:" in done.stderr
    assert path.read_bytes() == SNAPSHOT.read_bytes()


def test_a_setting_of_a_newer_torch_costs_no_owner(fathom, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(NEWER)
    report, _ = fathom(PYTHON, script, flags=("--gpu", "rtx3090"))
    note = "the allocator setting `warp_speed` is not known to this version; replay agrees without it"
    assert note in report["notes"]
    tensors = {tensor["name"]: tensor["bytes"] for tensor in report["tensors"]}
    assert tensors["weight"] == 512 * 512 * 4


def test_where_the_replay_differs_the_trace_says_who_held_the_memory(fathom, tmp_path):
    """An address that no allocator would give: everything after it is still explained."""
    snapshot = pickle.loads(SNAPSHOT.read_bytes())
    trace = next(trace for trace in snapshot["device_traces"] if trace)
    whole = json.loads(fathom.command("explain", SNAPSHOT, "--json", "-").stdout)
    allocs = [event for event in trace if event["action"] == "alloc"]
    moved, address = allocs[3], allocs[3]["addr"] + (1 << 36)
    for event in trace[trace.index(moved) :]:
        if event["addr"] == moved["addr"] and event is not moved:
            event["addr"] = address
            if event["action"] == "free_completed":
                break
    moved["addr"] = address
    path = tmp_path / "moved.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    report = json.loads(fathom.command("explain", path, "--json", "-").stdout)
    assert len([note for note in report["notes"] if "the trace's own addresses" in note]) == 1, report["notes"]
    assert report["peak"]["allocated_bytes"] >= whole["peak"]["allocated_bytes"] * 0.9
    assert report["events"] == whole["events"] and report["findings"]


def test_a_work_area_without_a_name(fathom):
    """A snapshot knows that a library asked for it, and no more."""
    done = fathom.command("explain", SNAPSHOT, "--findings")
    assert "scratch memory of a library" in done.stdout and "scratch memory: \n" not in done.stdout


def test_an_empty_snapshot_is_said_to_be_empty(fathom, tmp_path):
    """A log may be empty; a snapshot was not written to its end."""
    for name, word in (("a.pickle", "this is an empty file"), ("a.log", "no out-of-memory message")):
        (tmp_path / name).write_text("")
        done = fathom.command("explain", tmp_path / name)
        assert done.returncode == 2 and word in done.stderr
