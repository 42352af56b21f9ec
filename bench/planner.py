"""Recomputation that a plan of `fathom fit` needs, beside checkpointing every block and every √n-th block.

    python3 bench/planner.py [FATHOM]

For each model: the peak of each habit is measured on the phantom; then `fathom fit` is asked for a plan within that
peak. Operations are counted with PyTorch's own formulas; what is compared is the share of the forward pass that is
computed twice. Last, a sweep over budgets: asking for less must never give a higher peak.
"""

import json
import math
import os
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FATHOM = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "target" / "release" / "fathom"
PYTHON = ROOT / ".venv" / "bin" / "python"

TRANSFORMER = [str(ROOT / "tests/scripts/blocks_flags.py"), "--depth", "24", "--batch-size", "16"]
UNET = [str(ROOT / "bench/unet.py")]
HALVES = [f"{side}.{level}" for side in ("down", "up") for level in range(4)]
MODELS = {
    "transformer, 24 layers": (TRANSFORMER, [f"blocks.{index}" for index in range(24)]),
    "U-Net, 16 blocks": (UNET, [f"{half}.{part}" for half in HALVES for part in (0, 1)]),
}


def fathom(verb, flags, command, env=None):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "answer.json"
        words = [str(FATHOM), verb, "--json", str(path), *flags, "--", str(PYTHON), *command]
        subprocess.run(words, cwd=ROOT, env={**os.environ, **(env or {})}, capture_output=True, check=False)
        return json.loads(path.read_text())


def measure(command, modules):
    """Reserved peak and context of a run with these modules checkpointed."""
    env = {"FATHOM_LEVERS": json.dumps([{"lever": "checkpoint", "modules": modules}])} if modules else {}
    peak = fathom("run", ["--record", "off"], command, env)["peak"]
    return peak["reserved_bytes"], peak["device_bytes"] - peak["reserved_bytes"]


def count(command):
    """Operations of each module's forward pass."""
    with tempfile.TemporaryDirectory() as folder:
        words = [str(FATHOM), "run", "--record", "off", "--steps", "1", "--out", folder, "--", str(PYTHON), *command]
        subprocess.run(words, cwd=ROOT, env={**os.environ, "FATHOM_FLOPS": "on"}, capture_output=True, check=False)
        (path,) = Path(folder).glob("flops.*.json")
        return json.loads(path.read_text())["flops"]


def share(flops, modules):
    """Which part of the forward pass is computed twice."""
    below = lambda path: any(path == module or path.startswith(module + ".") for module in modules)  # noqa: E731
    return sum(number for path, number in flops.items() if below(path)) / sum(flops.values())


def plan(command, memory):
    """Reserved peak and modules of the plan within so much memory; no modules if it fits as it is."""
    answer = fathom("fit", ["--memory", str(memory), "--try", "checkpoint"], command)
    if answer["chosen"] is None:
        fits = answer["baseline"]["fits"]
        return (answer["baseline"]["peak_reserved_bytes"], []) if fits else (None, [])
    chosen = answer["plans"][answer["chosen"]]
    return chosen["peak_reserved_bytes"], chosen["levers"][0]["modules"]


def compare(name, command, blocks):
    flops, root = count(command), round(math.sqrt(len(blocks)))
    plain, context = measure(command, [])
    habits = {"every block": blocks, f"every {root}-th block": blocks[::root]}
    for habit, modules in habits.items():
        peak, _ = measure(command, modules)
        ours, chosen = plan(command, peak + context)
        row = (name, habit, peak, share(flops, modules), ours, share(flops, chosen))
        text = "none" if ours is None else f"{ours / 2**20:.0f} MiB"
        print(f"| {row[0]} | {habit} | {peak / 2**20:.0f} MiB | {row[3]:.1%} | {text} | {row[5]:.1%} |", flush=True)
        yield row
    budgets = [plain - (plain - peak) * part // 5 for part in range(6)]
    peaks = [plan(command, budget + context)[0] for budget in budgets]
    is_monotone = all(a is None or b is None or b <= a for a, b in zip(peaks, peaks[1:]))
    print(f"  {name}: budgets {[b >> 20 for b in budgets]} MiB, peaks {[p and p >> 20 for p in peaks]} MiB", flush=True)
    assert is_monotone, peaks


if __name__ == "__main__":
    print("| model | habit | its peak | computed twice | plan's peak | computed twice |\n|" + " --- |" * 6)
    rows = [row for name, (command, blocks) in MODELS.items() for row in compare(name, command, blocks)]
    worse = [row for row in rows if row[4] is None or row[2] < row[4] or row[3] < row[5]]
    sys.exit(f"a habit was better: {worse}" if worse else 0)
