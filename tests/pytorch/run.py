"""Runs a test file of PyTorch's own on the phantom GPU, and says what came of each test.

    python tests/pytorch/run.py --python .venv/bin/python --file …/test/test_cuda.py --page docs/reference/pytorch-tests.md

The file is PyTorch's and lies where you have put its source; it is best of the release that is installed. The Python
needs what the file imports: expecttest, hypothesis, psutil, pytest. A process that crashes, or takes too long, is
started again with the tests that are left. A test that fails and has no known reason (reasons.txt) is tried once more
alone, as PyTorch's own CI does.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import table

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FATHOM = ROOT / "target" / "release" / "fathom"

# Starts of one process, at the most; each takes up where the last one broke off.
MOST_STARTS = 60


def start(arguments, results, tests):
    """One process."""
    words = [FATHOM, "run", "--gpu", arguments.gpu, "--gpus", "1", "--steps", "0", "--record", "off", "--quiet"]
    words += ["--timeout", arguments.seconds, "--", arguments.python, "-m", "pytest", "-q", "--tb=short"]
    words += ["--noconftest", "-c", os.devnull, "--rootdir", arguments.file.parent, "-p", "no:cacheprovider", "-p", "outcomes"]
    words += [*tests, *(["-k", arguments.only] if arguments.only else [])]
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(HERE), str(arguments.file.parent)]),
        "FATHOM_OUTCOMES": str(results),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    with open(results.with_suffix(".log"), "a", encoding="utf-8") as log:
        subprocess.run(list(map(str, words)), env=environment, stdout=log, stderr=log, cwd=results.parent, check=False)


def rows(path):
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    return [json.loads(line) for line in lines]


def run_all(arguments, results):
    for _ in range(MOST_STARTS):
        before = len(rows(results))
        start(arguments, results, [arguments.file])
        new = rows(results)[before:]
        if not new:
            return f"no test could be started: see {results.with_suffix('.log')}"
        if any(row["test"] == "" for row in new):
            return None
    return f"{MOST_STARTS} processes did not come to an end"


def try_alone(arguments, results, reasons):
    """Each in a process of its own; what it gives there counts."""
    alone = results.with_name("alone.jsonl")
    failed = [name for name, row in table.outcomes(rows(results)).items() if row["outcome"] in table.BAD]
    for name in failed:
        if table.reason_of(name, reasons) is None and name not in table.outcomes(rows(alone)):
            start(arguments, alone, [f"{arguments.file}::{name}"])
    return alone


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True)
    parser.add_argument("--file", type=Path, required=True)
    parser.add_argument("--results", type=Path, help="a folder; what is there already is not run again")
    parser.add_argument("--page", type=Path, help="where the table is written")
    parser.add_argument("--gpu", default="a100-80g")
    parser.add_argument("--only", help="as pytest's -k")
    parser.add_argument("--seconds", type=int, default=900, help="of one process")
    arguments = parser.parse_args()
    arguments.file = arguments.file.resolve()
    arguments.python = arguments.python.absolute()  # processes start in another folder; a venv's link is not followed
    folder = arguments.results or Path(tempfile.mkdtemp(prefix="fathom-pytorch-"))
    folder.mkdir(parents=True, exist_ok=True)
    results = folder.resolve() / "all.jsonl"
    failure = run_all(arguments, results)
    if failure:
        return failure
    reasons = table.read_reasons(HERE / "reasons.txt")
    alone = try_alone(arguments, results, reasons)
    outcomes = {**table.outcomes(rows(results)), **table.outcomes(rows(alone))}
    print(table.summary(outcomes, reasons))
    if arguments.page:
        about = subprocess.run([arguments.python, HERE / "about.py"], capture_output=True, text=True, check=True).stdout
        arguments.page.write_text(table.page(outcomes, reasons, arguments, about.strip()), encoding="utf-8")
    unexplained = [name for name, row in outcomes.items() if row["outcome"] in table.BAD and not table.reason_of(name, reasons)]
    for name in unexplained:
        print(f"no reason: {name}: {outcomes[name].get('why', 'the process ended')[:200]}")
    return 1 if unexplained else 0


if __name__ == "__main__":
    sys.exit(main())
