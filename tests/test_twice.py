"""Two runs of a script give the same report, to the byte. `make test-twice` tries every script of tests/scripts."""

import json
import os
import re

import pytest
from conftest import SCRIPTS, sampled

IS_WARM = True

# Sizes by values, several processes, the compiler, random layers; the others take too long for every day.
SAMPLE = ["detection", "cnn_zoo", "subprocesses", "ordinary", "owners"]
QUICK = ["cnn_zoo", "subprocesses"]
# Scripts that are no run by themselves, and why.
LEFT_OUT = {
    "threads": "threads race, so that steps of four models come in another order each time",
    "sleeps": "it never ends",
    "fsdp2_70b": "it is one rank of many, as all that begin with `ranks`",
}
NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py") if not path.stem.startswith("ranks") and path.stem not in LEFT_OUT)
# What must differ: processes have other numbers, and the clock runs.
NUMBERS = re.compile(r'("(?:parent_)?pid"|"wall_seconds"): [0-9.]+')
# Of the Python that a warm script is a fork of.
FOLDER = re.compile(r"/fathom-\w+/warm")


def text(report):
    return FOLDER.sub("/warm", NUMBERS.sub(r"\1: …", json.dumps(report, indent=1)))


@pytest.mark.parametrize("name", NAMES if os.environ.get("FATHOM_TWICE") == "all" else sampled(SAMPLE, QUICK))
def test_two_runs_give_the_same_report(fathom, shared, name):
    first, _ = shared("script", name)
    again, done = fathom.trains(name, again=" again")
    assert text(again) == text(first), done.stdout + done.stderr
