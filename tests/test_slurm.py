"""examples/slurm with a stand-in for `sbatch`; docs/guides/slurm.md says what was tried with a real one."""

import os
import subprocess

import pytest
from conftest import ROOT

SLURM = ROOT / "examples" / "slurm"
SBATCH = """#!/bin/bash
echo "$CARD $*" >> "$LOG"
[ "$(wc -l < "$LOG")" -lt "$FAILS_AT" ] || exit 1
wc -l < "$LOG" | sed 's/$/;alpha/;s/^ */10/'
"""


@pytest.fixture
def submit(tmp_path):
    def run(*words, card="a100-80g", fails_at=9):
        program = tmp_path / "sbatch"
        program.write_text(SBATCH)
        program.chmod(0o755)
        log = tmp_path / "log"
        log.write_text("")
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log), "FAILS_AT": str(fails_at)}
        env |= {"CARD": card} if card else {}
        done = subprocess.run([SLURM / "submit.sh", *words], env=env, capture_output=True, text=True, timeout=20, check=False)
        return done, log.read_text().splitlines()

    return run


def test_the_training_job_waits_for_the_check(submit):
    done, calls = submit("train.py", "--name", "a b")
    assert (done.returncode, done.stdout) == (0, "check 101, then train 102\n")
    assert calls == [
        f"a100-80g --parsable {SLURM}/check.sbatch train.py --name a b",
        f"a100-80g --parsable --dependency=afterok:101 --kill-on-invalid-dep=yes {SLURM}/train.sbatch train.py --name a b",
    ]


def test_nothing_follows_a_check_that_was_not_accepted(submit):
    done, calls = submit("train.py", fails_at=1)
    assert done.returncode != 0 and len(calls) == 1
    done, calls = submit("train.py", card=None)
    assert done.returncode != 0 and calls == [] and "set CARD" in done.stderr


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_the_job_ends_as_the_check_does(tmp_path, code):
    fathom = tmp_path / "fathom"
    fathom.write_text(f'#!/bin/bash\nprintf "%s|" "$@"\nexit {code}\n')
    fathom.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CARD": "rtx3090"}
    words = ["bash", SLURM / "check.sbatch", "train.py", "a b"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (code, "run|--gpu|rtx3090|--|python|train.py|a b|")
