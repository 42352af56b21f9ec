"""`fathom replay` over recorded snapshots, snapshots made here, and files that are none."""

import json
import os
import pathlib
import pickle
import re
import sys
import warnings
import zipfile

import pytest
from conftest import ROOT

sys.path.insert(0, str(ROOT / "tests" / "differential"))
from convert import load

RECORDED = ROOT / "tests" / "recorded"
GOLDEN = ROOT / "tests" / "golden" / "replay.txt"
SNAPSHOTS = sorted(path for path in RECORDED.iterdir() if path.suffix in (".pickle", ".pkl"))
EAGER = RECORDED / "kdr2-t2-None_fwd-eager_bwd.pickle"
MID_RUN = RECORDED / "hugepandacoder-mem_snapshots_traditional_single_step.pickle"
MIB = 1 << 20


@pytest.fixture
def replay(fathom, tmp_path):
    """`fathom replay FILE FLAGS… --json`: the answer and the finished process."""

    def run(file, *flags):
        path = tmp_path / "replay.json"
        done = fathom.command("replay", file, "--json", path, *flags)
        return (json.loads(path.read_text()) if path.exists() else None), done

    return run


@pytest.mark.parametrize("path", SNAPSHOTS, ids=lambda path: path.name[:12])
def test_recorded_snapshots_are_reproduced(replay, path):
    answer, done = replay(path)
    assert done.returncode == 0 and answer["schema"] == "fathom.replay/1", done.stderr
    assert answer["reproduces"] and answer["first_difference"] is None
    own, recorded = answer["trials"][0], answer["recorded"]
    for peak in ("peak_allocated_bytes", "peak_reserved_bytes"):
        assert own[peak] == recorded[peak] > 0
    assert all(trial["verdict"] == "fits" and trial["memory_bytes"] is None for trial in answer["trials"])
    assert any(trial["settings"] == "expandable_segments:True" for trial in answer["trials"])
    assert answer["ideal_bytes"] <= answer["ideal_packed_bytes"]
    assert answer["ideal_bytes"] <= answer["floor_bytes"] - recorded["context_bytes"]
    assert len(done.stdout.splitlines()) < 24 and all(len(line) <= 110 for line in done.stdout.splitlines())


def test_the_text_is_as_always(fathom):
    """Every number of it: the snapshot and the allocator's rules do not change."""
    done = fathom.command("replay", EAGER, "--memory", "700MiB")
    text = f"$ fathom replay {EAGER.name} --memory 700MiB\n{done.stdout}exit code {done.returncode}\n"
    done = fathom.command("replay", MID_RUN)
    text += f"\n$ fathom replay {MID_RUN.name}\n{done.stdout}exit code {done.returncode}\n"
    if os.environ.get("UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "intended? then run with UPDATE_GOLDEN=1"


def test_the_floor_is_the_smallest_card(replay):
    floor = replay(EAGER)[0]["floor_bytes"]
    answer, done = replay(EAGER, "--memory", f"{floor}B")
    assert done.returncode == 0 and done.stdout.startswith("FITS") and answer["trials"][0]["memory_bytes"] == floor
    answer, done = replay(EAGER, "--memory", f"{floor - 1}B")
    assert done.returncode == 1 and done.stdout.startswith("DOES NOT FIT")
    assert answer["trials"][0]["verdict"] == "does_not_fit" and answer["trials"][0]["refused_bytes"] > 0
    assert answer["reproduces"] and answer["exit_code"] == 1


def collected():
    """Snapshots of real cards outside of the repository; none where there is no such folder."""
    folder = pathlib.Path(os.environ.get("FATHOM_SNAPSHOTS", ROOT / "../shared/data/snapshots"))
    return sorted(path for path in folder.glob("*") if path.suffix in (".pickle", ".pkl"))


def test_the_smallest_card_agrees_with_the_verdict(replay):
    """As it is printed: what stands there does, and the next smaller size that could stand there does not."""
    if not collected():
        warnings.warn("SKIPPED: no collection of snapshots, see FATHOM_SNAPSHOTS", stacklevel=1)
    for path in [*SNAPSHOTS, *collected()]:
        answer, done = replay(path)
        amount, unit = re.search(r"^smallest card: ([\d.]+) ([MG]iB)", done.stdout, re.M).groups()
        below = f"{float(amount) - (0.1 if unit == 'MiB' else 0.01):.2f}{unit}"
        answer, done = replay(path, "--memory", amount + unit)
        assert done.returncode == 0 and done.stdout.startswith("FITS"), f"{path}\n{done.stdout}"
        answer, done = replay(path, "--memory", below)
        assert done.returncode == 1 and done.stdout.startswith("DOES NOT FIT"), f"{path}\n{done.stdout}"


def test_a_ring_buffer_may_begin_anywhere(replay, tmp_path):
    """Also with the completion of a free, which is a third of all events."""
    snapshot = load(EAGER)
    trace = snapshot["device_traces"][0]
    begins = set()
    for start in range(1, len(trace), 29):
        snapshot["device_traces"][0] = trace[start:]
        path = tmp_path / "ring.pickle"
        path.write_bytes(pickle.dumps(snapshot))
        answer, done = replay(path)
        assert done.returncode == 0 and answer["reproduces"], f"from event {start} on\n{done.stdout}{done.stderr}"
        assert answer["events"] == len(trace) - start
        begins.add(trace[start]["action"])
    assert {"alloc", "free_requested", "free_completed"} <= begins, begins


def test_a_trace_without_its_end_contradicts_the_final_blocks(replay, tmp_path):
    snapshot = load(EAGER)
    trace = snapshot["device_traces"][0]
    for end in range(20, len(trace) - 40, 31):
        snapshot["device_traces"][0] = trace[:end]
        path = tmp_path / "cut.pickle"
        path.write_bytes(pickle.dumps(snapshot))
        answer, done = replay(path)
        assert done.returncode == 1 and done.stdout.startswith("DIFFERS"), done.stdout + done.stderr
        assert answer["contradiction"]["event"] < end and "the file contradicts itself: " in done.stdout


def test_a_state_without_a_trace_is_not_reproduced(fathom, replay, tmp_path):
    """Its blocks have stacks, which are notes and no events."""
    snapshot = load(MID_RUN)
    snapshot["device_traces"] = [[] for _ in snapshot["device_traces"]]
    path = tmp_path / "state.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    answer, done = replay(path)
    assert (answer, done.returncode, done.stdout) == (None, 2, "")
    assert "a state without a trace: 80 blocks in use (18.2 MiB of 94.0 MiB reserved)" in done.stderr
    assert "hint: `fathom explain " in done.stderr and "_record_memory_history" in done.stderr
    done = fathom.command("explain", path)
    assert done.returncode == 0 and "a state without a trace" in done.stdout.splitlines()[0]
    assert "state    allocated 18.2 MiB" in done.stdout and "\npeak " not in done.stdout


def test_other_settings_are_judged_when_they_are_named(replay):
    """The recorded settings do not fit here, expandable segments do."""
    best = replay(EAGER)[0]["floor"]
    assert best["best_settings"] == "expandable_segments:True" and best["best_bytes"] < best["own_bytes"]
    answer, done = replay(EAGER, "--memory", f"{best['best_bytes']}B", "--settings", "expandable_segments:True")
    assert done.returncode == 0 and "`expandable_segments:True`" in done.stdout.splitlines()[0]
    assert [trial["verdict"] for trial in answer["trials"][:2]] == ["does_not_fit", "fits"]
    assert replay(EAGER, "--memory", f"{best['best_bytes']}B")[1].returncode == 1


def test_garbage_is_collected_only_with_a_card(replay):
    settings = [trial["settings"] for trial in replay(EAGER)[0]["trials"]]
    on_card = [trial["settings"] for trial in replay(EAGER, "--memory", "16GiB")[0]["trials"]]
    assert set(on_card) - set(settings) == {"garbage_collection_threshold:0.8"}


def test_a_start_in_the_middle_is_told_from_an_empty_one(replay):
    answer, done = replay(MID_RUN)
    assert answer["recorded"]["start_blocks"] == 75
    assert [trial["start"] for trial in answer["trials"]] == ["recorded"] + ["modelled"] * (len(answer["trials"]) - 1)
    assert "laid out anew by address (modelled)" in done.stdout
    assert {trial["start"] for trial in replay(EAGER)[0]["trials"]} == {"recorded"}


def test_the_first_difference_is_named(replay, tmp_path):
    snapshot = load(EAGER)
    trace = snapshot["device_traces"][0]
    changed = next(at for at, entry in enumerate(trace) if entry["action"] == "alloc" and at > 100)
    trace[changed]["addr"] += 512
    path = tmp_path / "changed.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    answer, done = replay(path)
    assert done.returncode == 1 and done.stdout.startswith("DIFFERS")
    assert not answer["reproduces"] and answer["trials"] == [] and answer["floor_bytes"] is None
    difference = answer["first_difference"]
    assert difference["event"] == changed and f"{trace[changed]['addr']:#x}" in difference["recorded"]
    assert f"event {changed}" in done.stdout


def test_devices_are_chosen(replay, tmp_path):
    snapshot = load(EAGER)
    trace = snapshot["device_traces"][0]
    snapshot["device_traces"][2] = trace[:5]
    for segment in snapshot["segments"]:
        segment["device"] = 0
    path = tmp_path / "two.pickle"
    path.write_bytes(pickle.dumps(snapshot))
    answer, done = replay(path)
    assert (answer["device"], answer["devices"], answer["events"]) == (0, [0, 2], len(trace))
    assert "devices 0, 2: see `--device`" in done.stdout
    assert replay(path, "--device", 2)[0]["device"] == 2
    done = replay(path, "--device", 1)[1]
    assert done.returncode == 2 and "hint: it holds devices 0, 2" in done.stderr


def test_json_on_standard_output_stands_alone(fathom):
    done = fathom.command("replay", EAGER, "--json", "-")
    assert done.returncode == 0 and json.loads(done.stdout)["reproduces"]


def bad_files(folder):
    """Files that are no snapshots, with a part of what is said about each."""
    list_form = [{"device": 0, "address": 0, "total_size": 0, "blocks": [], "stream": 0, "segment_type": "small"}]
    files = {
        "empty": (b"", "this is an empty file"),
        "noise": (bytes((at * 37 + 11) % 251 for at in range(3000)), "which is not a pickle instruction"),
        "weights": (pickle.dumps({"model": [1, 2], "epoch": 3}), "a dict with the keys `model`, `epoch`"),
        "number": (pickle.dumps(7), "the pickle holds a value of type `int`"),
        "cut": (EAGER.read_bytes()[:2000], "the file is cut off"),
        "newer": (b"fathom-recording" + (99).to_bytes(4, "little"), "version 99"),
        "header": (b"fathom-recording", "not a recording"),
        "nothing": (pickle.dumps({"segments": [], "device_traces": [[]]}), "is empty"),
        "no-history": (pickle.dumps(list_form), "holds no events"),
        "call": (b"cos\nsystem\n(S'true'\ntR.", "it asks to import `os.system`"),
    }
    for name, (content, words) in files.items():
        path = folder / name
        path.write_bytes(content)
        yield path, words
    archive = folder / "checkpoint.pt"
    with zipfile.ZipFile(archive, "w") as file:
        file.writestr("data.pkl", b"")
    yield archive, "a zip archive"
    yield folder, "is a folder"
    yield folder / "missing", "was not found"


def test_what_is_no_recording_is_refused(fathom, tmp_path):
    for path, words in bad_files(tmp_path):
        done = fathom.command("replay", path)
        assert done.returncode == 2 and done.stdout == "", path
        assert re.match(r"error: `.*" + re.escape(path.name), done.stderr), done.stderr
        assert words in done.stderr and "\n\nhint: " in done.stderr, done.stderr


@pytest.mark.parametrize(
    "flags, words",
    [
        (("--settings", "speed:1"), "`speed` is not a setting"),
        (("--settings", "large_segment_size_mb:64"), "torch 2.3 has no setting"),
        (("--settings", "expandable_segments"), "has no value"),
        (("--settings", "backend:cudaMallocAsync"), "cannot be replayed"),
        (("--memory", "16G"), "`16GiB` (1024) or `16GB` (1000)"),
        (("--memory", "much"), "is not a size"),
        (("--memory", "0"), "has no unit"),
        (("--memory", "0GiB"), "is not a size"),
        (("--memory", "16"), "`16` has no unit: write `16GiB`"),
        (("--gpu", "rtx9999"), "rtx9999"),
        (("--used", "2GiB"), "`--used` without a card"),
        (("--memory", "1GiB", "--used", "1GiB"), "leaves no room"),
    ],
)
def test_bad_flags_are_refused(fathom, flags, words):
    done = fathom.command("replay", EAGER, *flags)
    assert done.returncode == 2 and words in done.stderr and "hint: " in done.stderr, done.stderr


def test_extreme_numbers_end_in_words(fathom, tmp_path):
    """Sizes and addresses that no card has: an answer or an error, never a crash."""
    huge = [2**62, 2**63, 2**64 - 1]
    for at, size in enumerate([*huge, 0, 1]):
        for address in [0, 512, *huge]:
            event = {"action": "alloc", "addr": address, "size": size, "stream": 0, "frames": []}
            segment = {"address": address, "total_size": size, "stream": 0, "device": 0, "segment_type": "large"}
            blocks = [{"address": address, "size": size, "state": "active_allocated", "requested_size": size}]
            actions = ("alloc", "segment_alloc", "segment_map", "free_completed", "segment_unmap", "oom", "alloc")
            trace = [{**event, "action": action, "device_free": size} for action in actions]
            snapshot = {"segments": [{**segment, "blocks": blocks}], "device_traces": [trace * 2]}
            path = tmp_path / f"{at}.pickle"
            path.write_bytes(pickle.dumps(snapshot))
            done = fathom.command("replay", path, "--memory", "1GiB")
            assert done.returncode in (0, 1, 2) and "panicked" not in done.stderr, done.stderr
