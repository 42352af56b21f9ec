"""Reading a memory snapshot: Python's own unpickling beside ours, of the same file, in one run. And a replay of it.

    python bench/snapshot_speed.py [--events N] [--rounds N] [--snapshot FILE]

Prints times, peak memory and the ratio, the median of a few rounds in which both take turns; exit code 1 if reading is
less than 10 times as fast as Python, takes more than three times the file's size, or less than 5 million events are
replayed per second on one core.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = Path(os.environ.get("CARGO_TARGET_DIR", ROOT / "target")) / "release" / "examples"

# A fresh process each time: what one round leaves behind does not help or hurt the next.
UNPICKLE = """
import json, pickle, resource, sys, time
data = open(sys.argv[1], "rb").read()
start = time.process_time()
pickle.loads(data)
seconds = time.process_time() - start
print(json.dumps([seconds, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss]))
"""


def python_reads(path):
    """CPU seconds and peak KiB of `pickle.loads`."""
    done = subprocess.run([sys.executable, "-c", UNPICKLE, path], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


def ours_reads(path):
    """CPU seconds and peak KiB of `snapshot::read`."""
    done = subprocess.run([TARGET / "measure", path], capture_output=True, text=True, check=True)
    words = done.stdout.split("\n")[2].split()
    return float(words[2]), int(words[7])


def replays(path):
    """Million events per second."""
    done = subprocess.run([TARGET / "speed", path], capture_output=True, text=True, check=True)
    return float(done.stdout.split()[0])


def build():
    for crate, example in (("snapshot", "measure"), ("allocator", "speed")):
        subprocess.run(["cargo", "build", "--release", "--quiet", "-p", crate, "--example", example], cwd=ROOT, check=True)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--snapshot", help="measure this file instead of a generated one")
    options = parser.parse_args()
    build()
    with tempfile.TemporaryDirectory() as folder:
        path = options.snapshot
        if path is None:
            path = os.path.join(folder, "snapshot.pickle")
            script = ROOT / "crates" / "snapshot" / "benches" / "make_snapshot.py"
            subprocess.run([sys.executable, script, str(options.events), path], check=True)
        pairs = [(python_reads(path), ours_reads(path)) for _ in range(options.rounds)]
        rates = [replays(path) for _ in range(options.rounds)]
        return report(os.path.getsize(path), pairs, statistics.median(rates))


def report(size, pairs, rate):
    """Prints the result; 1 if something is below its aim."""
    python = statistics.median(seconds for (seconds, _), _ in pairs)
    ours = statistics.median(seconds for _, (seconds, _) in pairs)
    ratio = statistics.median(theirs / own for (theirs, _), (own, _) in pairs)
    peak = max(kib for _, (_, kib) in pairs) * 1024 / size
    theirs = max(kib for (_, kib), _ in pairs) * 1024 / size
    print(f"snapshot of {size / 1e6:.0f} MB, CPU time, Python {sys.version.split()[0]}")
    print(f"pickle.loads    {python:7.3f} s   peak {theirs:.1f} x the file")
    print(f"snapshot::read  {ours:7.3f} s   peak {peak:.1f} x the file")
    print(f"ratio           {ratio:7.1f}     aim 10")
    print(f"replay          {rate:7.1f} M events/s   aim 5")
    return 1 if ratio < 10 or peak > 3 or rate < 5 else 0


if __name__ == "__main__":
    sys.exit(main())
