"""A script that is run by a fork of a warm Python is reported as one that Python was started for."""

import json
import os
import re
import runpy
import subprocess
import time

import pytest
from conftest import FATHOM, PYTHON, ROOT, SCRIPTS, WARM, environment
from small_runs import TRAIN

RUNS_OUT = TRAIN.replace("4096", "40960")
FAILS = TRAIN + "raise ValueError('at the end')\n"


def report_of(fathom, path, flags):
    report, done = fathom(PYTHON, path, flags=flags)
    for process in report["processes"]:
        del process["pid"], process["parent_pid"], process["command"]
    del report["wall_seconds"]
    return report, re.sub(r"\d+\.\d s\b", "S", done.stdout), done.returncode


def is_there(path, wanted):
    """Waits until it is there, or is gone."""
    deadline = time.monotonic() + 60
    while os.path.exists(path) != wanted:
        assert time.monotonic() < deadline, f"{path} is there: {not wanted}"
        time.sleep(0.05)


CONVOLUTIONS = (SCRIPTS / "resnet_flags.py").read_text()


@pytest.mark.parametrize("text", [TRAIN, FAILS, RUNS_OUT, CONVOLUTIONS], ids=["trains", "fails", "runs out", "convolutions"])
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


PHANTOM = {"LD_PRELOAD": "/lib/libfathom_phantom.so"}


@pytest.mark.parametrize(
    ("words", "env", "is_script"),
    [
        ("train.py --lr 1", PHANTOM, True),
        ("-c 1", PHANTOM, True),
        ("-m train", PHANTOM, True),
        ("train.py", {}, False),
        ("-I train.py", PHANTOM, False),
        ("", PHANTOM, False),
        ("train.py", {**PHANTOM, "FATHOM_CONFINED": '{"by": "launcher"}'}, False),
        ("train.py", {**PHANTOM, "FATHOM_CONFINED": '{"by": "fork"}'}, True),
    ],
)
def test_what_needs_a_python_of_its_own_gets_one(monkeypatch, words, env, is_script):
    for name in ("LD_PRELOAD", "FATHOM_CONFINED"):
        monkeypatch.setenv(name, env.get(name, ""))
    start = runpy.run_path(str(ROOT / "tests" / "warm_start" / "sitecustomize.py"))
    assert start["is_script"](words.split(" ") if words else []) == is_script


def test_settings_that_are_read_while_torch_is_imported(warm):
    assert warm.is_forked({}) and warm.is_forked({"FATHOM_VERIFY": "on"})
    assert not warm.is_forked({"PYTORCH_CUDA_ALLOC_CONF": "backend:cudaMallocAsync"})


TRIALS = ("sweep", "--vary", "width=1024,2048", "--set", "width={}", "--gpu", "rtx3090", "--fresh", "--quiet")


def test_trials_are_the_same(cold, warm, tmp_path):
    (tmp_path / "train.py").write_text(TRAIN.replace("import torch", "import sys, torch").replace("4096", "int(sys.argv[1])"))
    answers = []
    for fathom in (cold, warm):
        done = fathom.command(*TRIALS, "--json", tmp_path / "answer.json", "--", PYTHON, "train.py", cwd=tmp_path)
        assert done.returncode == 0 and "starts Python anew" not in done.stdout, done.stdout + done.stderr
        answer = json.loads((tmp_path / "answer.json").read_text())
        del answer["wall_seconds"]
        answers.append(answer)
    assert answers[0] == answers[1] and answers[0]["trials"]["run"] == 2


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
