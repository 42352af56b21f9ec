"""Peaks that others measured on real cards, and what Fathom says of the same runs: `bench/results/accuracy.json`.

    python3 bench/accuracy.py [FOLDER]
    python3 bench/accuracy.py --quick

FOLDER keeps the report of each run as JSON, and what is there already is not run again. `make` makes the environment,
or BENCH_PYTHON names another with the same packages. Ends with an error if a bound is not kept.
"""

import dataclasses
import json
import os
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import accuracy_tables as tables
import apart_tables
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
    """What has a run ask this cuDNN: none that can answer, the oldest that can, or that of the ordinary environment."""
    if version == tables.MODELLED:
        return {"FATHOM_CUDNN": ""}
    package = {tables.OLDEST: f".venvs/cudnn-{version}", tables.NEWEST: ".venv/lib/python*/site-packages"}[version]
    found = sorted(ROOT.glob(f"{package}/nvidia/cudnn/lib/libcudnn.so.9"))
    if not found:
        raise SystemExit(f"error: cuDNN {version} is not there\nhint: make build .venvs/cudnn-{tables.OLDEST}/cudnn.stamp")
    return {"FATHOM_CUDNN": str(found[0])}


def cublas(row):
    """What their script told cuBLAS, in the runs that say nothing of `zero_grad_mode`."""
    return {} if row.has_workspaces else {"CUBLAS_WORKSPACE_CONFIG": ":0:0"}


def report(row, version, folder):
    """What `fathom run` reports of a row's run, from the folder if it is there; `before_bytes` is what their monitor could
    not see."""
    words = [row.name, row.gpu, row.zero_grad, version, "workspaces" if row.has_workspaces else "none"]
    path = folder / f"{'-'.join(words)}.json".replace(" ", "-")
    if not path.exists():
        written = folder / f"{path.stem}.new"
        command = [FATHOM, "run", "--quiet", "--steps", "0", "--record", "off", "--gpu", CARDS[row.gpu], "--json", written]
        script = [PYTHON, TRAIN, "--model", row.model, "--optimizer", row.optimizer, "--batch", row.batch]
        words = [*command, "--", *script, "--zero-grad", row.zero_grad]
        done = subprocess.run(
            [str(word) for word in words],
            env=os.environ | cudnn(version) | cublas(row),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        answer = json.loads(written.read_text()) if written.exists() else {"exit_code": 3}
        if answer["exit_code"] > 1:
            raise SystemExit(f"error: the run of {row.name} failed\n{done.stdout}{done.stderr}")
        before = [line.split()[-1] for line in done.stdout.splitlines() if line.startswith("WHEN THE MONITOR BEGAN")]
        path.write_text(json.dumps(answer | {"before_bytes": int(before[0]) if before else 0}))
        written.unlink()
    return json.loads(path.read_text())


def together(rows, asked):
    """(row, what is asked of it), two at a time, since no time is measured."""
    with ThreadPoolExecutor(2) as pool:
        yield from zip(rows, pool.map(asked, rows), strict=True)


def answers(rows, folder, quick):
    """Each row's report by the cuDNN that was asked; transformers ask none."""

    def asked(row):
        versions = [tables.main_version(row)] if quick or row.is_transformer else tables.VERSIONS
        return {version: report(row, version, folder) for version in versions}

    for row, reports in together(rows, asked):
        said = reports[tables.main_version(row)]["verdict"]
        print(f"{row.name} on {row.gpu}: {error(tables.estimate(row, reports), row.truth):+.2%}, {said}", flush=True)
        yield row, reports


def default_workspaces(rows, folder):
    """The reserved peaks that transformers would have had if nobody had told cuBLAS anything."""
    told = [dataclasses.replace(row, has_workspaces=True) for row in rows]
    found = together(told, lambda row: report(row, tables.MODELLED, folder))
    return [answer["peak"]["reserved_bytes"] for _, answer in found]


def main(folder, quick):
    rows = read(DATA)
    if quick:
        rows = [row for row in rows if row.name in QUICK]
        assert len(rows) == len(QUICK)
    found = list(answers(rows, folder, quick))
    programs = published.compare(PYTHON, folder, ["attention"] if quick else published.PROGRAMS)
    broken = tables.broken_bounds(found) + published.broken(programs)
    if not quick:
        apart = list(answers(read_apart(APART), folder, quick))
        transformers = [(row, reports) for row, reports in apart if row.is_transformer]
        untold = default_workspaces([row for row, _ in transformers], folder)
        shown = [*tables.all_of(found), *apart_tables.all_of(apart, untold), published.table(programs)]
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
