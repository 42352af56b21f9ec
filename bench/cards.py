"""Peaks of single operators, MLPs and bert-large that others published, and what PyTorch does on the phantom: `bench/results/cards.json`.

    python3 bench/cards.py [--liger REPOSITORY]
    python3 bench/cards.py --quick

REPOSITORY is a clone of Liger-Kernel: rows of its own kernels need them as they were at the row's commit, and are left
out without it, which is said, and then nothing is saved. Ends with an error if a bound is not kept.
"""

import argparse
import csv
import json
import os
import subprocess
import tempfile
from itertools import groupby
from pathlib import Path

import cards_tables as tables
from accuracy import PYTHON, cudnn
from accuracy_tables import NEWEST
from result import FATHOM, ROOT, save

DATA = ROOT / "bench" / "data" / "published"
SCRIPTS = ROOT / "bench" / "real_cards"
# One row of each operator, and a few MLPs.
QUICK = 8


def read(name):
    with open(DATA / f"{name}.csv", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def run(script, rows, gpu, words=(), env=None):
    """What a script says of rows in one process on the phantom, and the report of `fathom run`."""
    with tempfile.TemporaryDirectory() as folder:
        asked, found, report = Path(folder, "rows.json"), Path(folder, "found.json"), Path(folder, "report.json")
        asked.write_text(json.dumps(rows))
        flags = ["--quiet", "--steps", "0", "--record", "off", "--values", "off", "--gpu", gpu, "--json", report]
        command = [FATHOM, "run", *flags, "--", PYTHON, SCRIPTS / script, asked, found, *words]
        command = [str(word) for word in command]
        env = os.environ | (env or {})
        done = subprocess.run(command, env=env, cwd=ROOT, capture_output=True, text=True, check=False)
        if not found.exists():
            raise SystemExit(f"error: {script} failed\n{done.stdout}{done.stderr}")
        return json.loads(found.read_text()), json.loads(report.read_text())


def kernels(rows, repository):
    """(row, peak in MiB), `None` for rows that need what is not there."""
    found = []
    for (commit, gpu, is_liger), group in groupby(sorted(rows, key=by_process), by_process):
        group = list(group)
        is_known = not is_liger or repository
        with tempfile.TemporaryDirectory() as folder:
            words = [f"{folder}/src"] if is_liger and is_known else []
            if words:
                unpack(repository, commit, folder, "src")
            run_rows = [row for row in group if is_known and tables.has_reason(row) != tables.TOO_SLOW]
            peaks = run("kernels.py", run_rows, gpu, words, cudnn(NEWEST))[0] if run_rows else []
        by_row = dict(zip(map(id, run_rows), peaks, strict=True))
        found += [(row, by_row.get(id(row))) for row in group]
        print(f"{len(run_rows)} of {len(group)} rows of Liger-Kernel at {commit} on {gpu}", flush=True)
    return found


def by_process(row):
    return row["commit"], row["gpu"], row["provider"] == "liger"


def unpack(repository, commit, folder, *parts):
    """Parts of a repository as they were at a commit."""
    packed = subprocess.run(["git", "-C", repository, "archive", commit, *parts], capture_output=True, check=False)
    if packed.returncode != 0:
        raise SystemExit(f"error: `{repository}` has no commit {commit} with {parts}\n{packed.stderr.decode()}")
    subprocess.run(["tar", "x", "-C", folder], input=packed.stdout, check=True)


def main(asked):
    operators, mlps, bert = read("liger"), read("mlp-a100"), read("bert-large-v100")
    if asked.quick:
        operators = [row for row in operators if row["provider"] != "liger"][::QUICK]
        mlps = mlps[::QUICK]
    if not asked.liger:
        print("rows of Liger-Kernel's own kernels are left out, and nothing is saved")
        print("hint: --liger CLONE, from github.com/linkedin/Liger-Kernel")
    found = tables.Found(
        operators=kernels(operators, asked.liger),
        mlps=[mlps, *run("mlps.py", mlps, "a100-40g")],
        bert=[] if asked.quick else [bert, *run("bert.py", bert, "v100-16g")],
        ages=[] if asked.quick else [run("bert.py", bert, "v100-16g", words)[0] for words in tables.AGES.values()],
    )
    broken = tables.broken_bounds(found)
    # A table that lacks the rows of Liger's own kernels does not replace one that has them.
    if asked.liger and not asked.quick:
        command = "python3 bench/cards.py --liger CLONE"
        save("cards", tables.TITLE, tables.ABOUT, command, tables.all_of(found), ("torch", "transformers"), PYTHON)
    raise SystemExit("\n".join(["error: bounds that were not kept", *broken]) if broken else 0)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--liger")
    parser.add_argument("--quick", action="store_true")
    main(parser.parse_args())
