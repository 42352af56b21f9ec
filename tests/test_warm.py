"""A script that is run by a fork of a warm Python is reported as one that Python was started for."""

import os
import re
import subprocess
import time

import pytest
from conftest import FATHOM, PYTHON, WARM, environment
from small_runs import TRAIN

RUNS_OUT = TRAIN.replace("4096", "40960")
FAILS = TRAIN + "raise ValueError('at the end')\n"


def report_of(fathom, path, flags):
    report, done = fathom(PYTHON, path, flags=flags)
    for process in report["processes"]:
        del process["pid"], process["parent_pid"], process["command"]
    del report["wall_seconds"], report["next"]
    between = " ".join(fathom.words()) + " " if hasattr(fathom, "words") else "no such words"
    return report, re.sub(r"\d+\.\d s\b", "S", done.stdout.replace(between, "").partition("\nnext  ")[0]), done.returncode


def is_there(path, wanted):
    """Waits until it is there, or is gone."""
    deadline = time.monotonic() + 60
    while os.path.exists(path) != wanted:
        assert time.monotonic() < deadline, f"{path} is there: {not wanted}"
        time.sleep(0.05)


@pytest.mark.parametrize("text", [TRAIN, FAILS, RUNS_OUT], ids=["trains", "fails", "runs out"])
def test_the_report_is_the_same(cold, warm, tmp_path, text):
    path = tmp_path / "train.py"
    path.write_text(text)
    flags = ("--gpu", "t4", "--steps", "0" if text is FAILS else "3")
    assert report_of(warm, path, flags) == report_of(cold, path, flags)


@pytest.mark.parametrize(("end", "failure"), [("sys.exit(7)", "exit code 7"), ("os.kill(os.getpid(), 9)", "killed by signal 9")])
def test_it_ends_as_the_fork_ends(warm, end, failure):
    report, done = warm.code(f"import os, sys, torch\ntorch.ones(1, device='cuda')\n{end}")
    assert (report["verdict"], report["failure"]) == ("script_failed", failure), done.stderr


def test_a_fork_does_not_outlive_its_run(warm):
    code = "import os, time, torch\ntorch.ones(1, device='cuda')\nprint('PID', os.getpid(), flush=True)\ntime.sleep(300)"
    report, done = warm.code(code, flags=("--timeout", "4"))
    assert report["verdict"] == "timed_out"
    (pid,) = re.findall(r"PID (\d+)", done.stdout)
    is_there(f"/proc/{pid}", False)


@pytest.mark.parametrize(
    ("words", "options", "is_forked"),
    [
        (["run", "--", PYTHON, "train.py"], {}, True),
        (["run", "--gpu", "t4", "--", PYTHON, "-c", "1"], {"env": {"FATHOM_STRICT": "1"}}, True),
        (["run", "--", PYTHON, "-I", "train.py"], {}, False),
        (["run", "--", "sh", "-c", "1"], {}, False),
        (["run", "--world-size", "2", "--", PYTHON, "train.py"], {}, False),
        (["run", "--", PYTHON, "train.py"], {"env": {"FATHOM_VERIFY": "on"}}, False),
        (["run", "--", PYTHON, "train.py"], {"env": {"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"}}, False),
        (["sweep", "--vary", "n=1", "--", PYTHON, "train.py"], {}, False),
    ],
)
def test_what_needs_a_python_of_its_own_gets_one(warm, words, options, is_forked):
    assert bool(warm.is_forked([str(word) for word in words], options)) == is_forked


def test_the_server_ends_with_who_started_it(cold, tmp_path):
    """Also by SIGKILL: nobody is there then to end it."""
    words = [FATHOM, "run", "--quiet", "--steps", "0", "--", PYTHON, WARM, tmp_path / "warm"]
    code = f"""
import subprocess, time
print(subprocess.Popen({[str(word) for word in words]}, stdin=subprocess.PIPE).pid, flush=True)
time.sleep(300)"""
    starter = subprocess.Popen([PYTHON, "-c", code], stdout=subprocess.PIPE, env=environment())
    pid = int(starter.stdout.readline())
    is_there(tmp_path / "warm", True)
    starter.kill()
    starter.wait()
    is_there(f"/proc/{pid}", False)
