"""Peaks that others measured on real cards, and what Fathom says of the same runs: `bench/results/accuracy.json`.

    python3 bench/accuracy.py [FOLDER]
    python3 bench/accuracy.py --quick

FOLDER keeps the report of each run as JSON, and what is there already is not run again. `make` makes the environment,
or BENCH_PYTHON names another with the same packages. Ends with an error if a bound is not kept.
"""

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import accuracy_tables as tables
import published
from result import FATHOM, ROOT, save
from score import error, read, read_apart

DATA = ROOT / "bench" / "data" / "measured.csv"
APART = ROOT / "bench" / "data" / "kept_apart.csv"
TRAIN = ROOT / "bench" / "real_cards" / "train.py"
PYTHON = Path(os.environ.get("BENCH_PYTHON", ROOT / ".venvs" / "accuracy" / "bin" / "python"))
PACKAGES = ("torch", "torchvision", "transformers")
CARDS = {"RTX 3060": "rtx3060-12g", "RTX 4060": "rtx4060"}

# Small, and of each kind: a transformer, a conv net, and one that does not fit.
QUICK = ["opt-125m AdamW 11", "RegNetX400MF RMSprop 212", "MobileNetV2 RMSprop 672"]


def cudnn(version):
    """What has a run ask this cuDNN: none that can answer, or that of the ordinary environment, which is the newest."""
    if version == tables.MODELLED:
        return {"FATHOM_CUDNN": ""}
    found = sorted(ROOT.glob(".venv/lib/python*/site-packages/nvidia/cudnn/lib/libcudnn.so.9"))
    if not found:
        raise SystemExit("error: .venv has no cuDNN\nhint: make build")
    return {"FATHOM_CUDNN": str(found[0])}


def report(row, version, folder, flags=()):
    """What `fathom run` reports of a row's run, from the folder if it is there."""
    path = folder / f"{row.name}-{row.gpu}-{row.zero_grad}-{version}{''.join(flags)}.json".replace(" ", "-")
    if not path.exists():
        command = [FATHOM, "run", "--quiet", "--steps", "0", "--record", "off", "--gpu", CARDS[row.gpu], "--json", path]
        script = [PYTHON, TRAIN, "--model", row.model, "--optimizer", row.optimizer, "--batch", row.batch]
        words = [*command, "--", *script, "--zero-grad", row.zero_grad, *flags]
        done = subprocess.run(
            [str(word) for word in words],
            env=os.environ | cudnn(version),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if not path.exists() or json.loads(path.read_text())["exit_code"] > 1:
            path.unlink(missing_ok=True)
            raise SystemExit(f"error: the run of {row.name} failed\n{done.stdout}{done.stderr}")
    return json.loads(path.read_text())


def answers(rows, folder, quick):
    """Each row's report by the cuDNN that was asked; transformers ask none."""
    found = []
    for row in rows:
        versions = [tables.main_version(row)] if quick or row.is_transformer else [tables.MODELLED, tables.NEWEST]
        reports = {version: report(row, version, folder) for version in versions}
        found.append((row, reports))
        said = reports[tables.main_version(row)]["verdict"]
        print(f"{row.name} on {row.gpu}: {error(tables.estimate(row, reports), row.truth):+.2%}, {said}", flush=True)
    return found


def kept_apart(rows, folder):
    """Other rows of the same publication, in a process that used the card before, and as its first run."""
    return [[row, *(report(row, tables.MODELLED, folder, flags) for flags in [(), ("--cold",)])] for row in rows]


def main(folder, quick):
    rows = read(DATA)
    if quick:
        rows = [row for row in rows if row.name in QUICK]
        assert len(rows) == len(QUICK)
    found = answers(rows, folder, quick)
    programs = published.compare(PYTHON, folder, ["attention"] if quick else published.PROGRAMS)
    broken = tables.broken_bounds(found) + published.broken(programs)
    if not quick:
        apart = kept_apart(read_apart(APART, rows[0].memory), folder)
        shown = [*tables.all_of(found), tables.of_kept_apart(apart), published.table(programs)]
        save("accuracy", tables.TITLE, tables.ABOUT, "python3 bench/accuracy.py", shown, PACKAGES, PYTHON)
    sys.exit("\n".join(["error: bounds that were not kept", *broken]) if broken else 0)


if __name__ == "__main__":
    if not PYTHON.exists():
        raise SystemExit(f"error: {PYTHON} is missing\nhint: make .venvs/accuracy/accuracy.stamp, or set BENCH_PYTHON")
    words = [word for word in sys.argv[1:] if word != "--quick"]
    if words:
        Path(words[0]).mkdir(parents=True, exist_ok=True)
        main(Path(words[0]), "--quick" in sys.argv)
    else:
        with tempfile.TemporaryDirectory() as folder:
            main(Path(folder), "--quick" in sys.argv)
