"""Every operator of PyTorch's database on the phantom: `python tests/operators/run.py --python .venv/bin/python`.

Writes results.json beside this file and the page that is made of it. Ends with 1 if an operator raises or differs.
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

import page

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent

# Processes at the same time; each takes every second operator.
JOBS = 2


def words(python, *arguments):
    """The command that looks at some operators."""
    fathom = ROOT / "target" / "release" / "fathom"
    flags = ("--gpu", "rtx3090", "--steps", "0", "--record", "off", "--assume", "least", "--quiet")
    return [str(word) for word in (fathom, "run", *flags, "--", python, HERE / "database.py", *arguments)]


def environment():
    """Values may take as long as they do: what is unknown here is so in every run."""
    return {**os.environ, "FATHOM_VALUE_SECONDS": "1000000"}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--python", type=Path, required=True)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fathom-operators-") as folder:
        files = [Path(folder) / f"{number}.json" for number in range(JOBS)]
        commands = [words(options.python, "--first", first, "--every", JOBS, "--json", file) for first, file in enumerate(files)]
        started = [subprocess.Popen(command, cwd=ROOT, env=environment()) for command in commands]
        if any([process.wait() for process in started]):  # noqa: C419  all are waited for
            return "a process did not come to an end"
        parts = [json.loads(file.read_text(encoding="utf-8")) for file in files]
    found = page.gathered(parts)
    page.RESULTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    page.PAGE.write_text(page.text(found), encoding="utf-8")
    print(page.summary(found))
    wrong = [f"{name}: {verdict}, {why}" for name, (verdict, why) in found["others"].items() if verdict in page.WRONG]
    print(*wrong, sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
