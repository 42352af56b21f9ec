"""Events per second: the recorder, the reader of snapshots, the replay, the whole explanation; beside Python's own.

    python3 bench/rust.py [--quick]       needs `make build .venvs/peers/peers.stamp`

CPU times of fresh processes that take turns; medians. `--quick` reads a small file, records nothing and saves nothing.
Ends with an error if reading is less than 10 times as fast as Python (2 with `--quick`, where a file's first pages weigh
more), takes more than three times the file's size, or replays less than 5 million events per second (2 with `--quick`).
"""

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

import tools
from result import FATHOM, PYTHON, ROOT, Table, save

EXAMPLES = ROOT / "target" / "release" / "examples"
ROUNDS = 3
STEPS = 12

# What a program in Python cannot do without: load the file, then go through the events. It adds up what is allocated,
# and knows nothing of segments, blocks or caching.
IN_PYTHON = """
import json, pickle, resource, sys, time
data = open(sys.argv[1], "rb").read()
start = time.process_time()
snapshot = pickle.loads(data)
loaded = time.process_time()
now = peak = events = 0
for trace in snapshot["device_traces"]:
    for event in trace:
        events += 1
        if event["action"] == "alloc":
            now += event["size"]
            peak = max(peak, now)
        elif event["action"] == "free_completed":
            now -= event["size"]
added = time.process_time()
print(json.dumps([loaded - start, added - loaded, events, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024]))
"""

ABOUT = """One snapshot of PyTorch's memory history, made up in the form of a long training run with full stacks, read by
Python's own `pickle.loads` and by `snapshot::read`, which executes nothing. The replay takes every event through PyTorch's
caching allocator; the Python beside it only adds up sizes. `fathom explain` does everything with a file: reads, replays,
dissects, diagnoses and prints. The recorder's rate is of events written, by what a step takes longer with it than
without (true small values on in both)."""


def python_reads(path):
    """Seconds to load, seconds to add up, events, peak bytes."""
    return json.loads(subprocess.run([PYTHON, "-c", IN_PYTHON, path], capture_output=True, text=True, check=True).stdout)


def ours_reads(path):
    """Seconds and peak bytes of `snapshot::read`."""
    text = subprocess.run([EXAMPLES / "measure", path], capture_output=True, text=True, check=True).stdout
    words = text.split("\n")[2].split()
    return float(words[2]), int(words[7]) * 1024


def replayed(path):
    """Events per second."""
    text = subprocess.run([EXAMPLES / "speed", path], capture_output=True, text=True, check=True).stdout
    return float(text.split()[0]) * 1e6


def explained(path):
    """CPU seconds of the whole command."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([str(FATHOM), "explain", path], capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def files(events):
    """Rows of what is done with a snapshot, and the numbers that have bounds."""
    for crate, example in (("snapshot", "measure"), ("allocator", "speed")):
        subprocess.run(["cargo", "build", "--release", "--quiet", "-p", crate, "--example", example], cwd=ROOT, check=True)
    with tempfile.TemporaryDirectory() as folder:
        path = str(Path(folder) / "snapshot.pickle")
        subprocess.run([PYTHON, ROOT / "crates/snapshot/benches/make_snapshot.py", str(events), path], check=True)
        size = Path(path).stat().st_size
        rounds = [(python_reads(path), ours_reads(path), replayed(path), explained(path)) for _ in range(ROUNDS)]
    load, add, read, rate, explain = (
        statistics.median(values)
        for values in zip(*((theirs[0], theirs[1], ours[0], rate, whole) for theirs, ours, rate, whole in rounds))
    )
    count, memory = rounds[0][0][2], [max(each[3] for each, *_ in rounds), max(each[1] for _, each, *_ in rounds)]
    rows = [
        ["read a snapshot", count / load, count / read, load / read],
        ["replay it (Python: add up sizes)", count / add, rate, rate * add / count],
        ["explain it (Python: read, add up sizes)", count / (load + add), count / explain, (load + add) / explain],
    ]
    ours, theirs = memory[1] / size, memory[0] / size
    notes = [f"{size / 1e6:.0f} MB, {count:,} events; memory {ours:.1f} × the file, Python's {theirs:.1f} ×."]
    return rows, notes, {"ratio": load / read, "memory": memory[1] / size, "rate": rate}


def recorder(model):
    """Events per second that the recorder writes."""
    with tempfile.TemporaryDirectory() as folder:
        with_it = tools.estimate("fathom", model, STEPS, ("--out", folder))
        (path,) = Path(folder).glob("recording.*.fathom")
        text = subprocess.run([str(FATHOM), "replay", str(path), "--json", "-"], capture_output=True, text=True).stdout
    without = tools.estimate("fathom", model, STEPS, ("--record", "off"))
    events = json.loads(text)["events"] / STEPS
    more = statistics.median(with_it["steps"][2:]) - statistics.median(without["steps"][2:])
    rate = round(events / more) if more > 0 else None  # a busy machine can hide it
    return [tools.NAMES[model], round(events), statistics.median(with_it["steps"][2:]), max(more, 0), rate]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    rows, notes, bounded = files(100_000 if options.quick else 1_000_000)
    print(json.dumps(rows, indent=1), notes, flush=True)
    if not options.quick:
        columns = {"a snapshot": "text", "Python, events/s": "count", "Fathom, events/s": "count", "ratio": "ratio"}
        rows = [[name, round(python), round(ours), ratio] for name, python, ours, ratio in rows]
        kept = {"model": "text", "events a step": "count", "step": "seconds"}
        kept |= {"of it recording": "seconds", "events/s": "count"}
        recorded = [recorder(model) for model in ("resnet50", "gpt2", "bert")]
        tables = [Table("Files", columns, rows, notes), Table("The recorder", kept, recorded)]
        save("rust", "Events per second", ABOUT, "python3 bench/rust.py", tables)
    ratio, rate = (2, 2e6) if options.quick else (10, 5e6)
    is_slow = bounded["ratio"] < ratio or bounded["rate"] < rate
    sys.exit(f"below the bounds: {bounded}" if is_slow or bounded["memory"] > 3 else 0)


if __name__ == "__main__":
    main()
