"""Ways to start a script under `fathom run`, and processes beside it."""

import os
import stat

import pytest
from conftest import PYTHON, sampled
from small_runs import STEPS, TRAIN, said, train  # noqa: F401


def own(done):
    """What the script wrote to the standard error: without what Fathom says of a run that takes longer than a second."""
    return "".join(line for line in done.stderr.splitlines(True) if not line.startswith("fathom: "))


# -- ways to start a script ---------------------------------------------------------------------------


@pytest.mark.parametrize("flag", sampled(["-I", "-E"], ["-I"]))
def test_flags_of_python(fathom, train, flag):
    report, done = fathom(PYTHON, flag, train)
    assert done.returncode == 0 and said(done) == STEPS and report["steps"] == 3, done.stderr
    assert report["peak"]["allocated_bytes"] > 64 << 20


def test_a_module(fathom, train):
    report, done = fathom(PYTHON, "-m", "train", cwd=train.parent)
    assert done.returncode == 0 and report["steps"] == 3, done.stderr


def test_a_script_on_stdin(fathom):
    report, done = fathom(PYTHON, "-", stdin=None, input=TRAIN)
    assert done.returncode == 0 and said(done) == STEPS and report["steps"] == 3, done.stderr


def test_a_script_that_reads_stdin(fathom):
    _, done = fathom.code("print(input() * 2)", stdin=None, input="six\n")
    assert done.returncode == 0 and done.stdout.startswith("sixsix\n")


def test_a_script_with_an_interpreter_line(fathom, train):
    train.write_text(f"#!{PYTHON}\n{TRAIN}")
    train.chmod(train.stat().st_mode | stat.S_IXUSR)
    report, done = fathom(train)
    assert done.returncode == 0 and report["steps"] == 3, done.stderr


def test_a_command_needs_neither_dashes_nor_python(fathom, tmp_path):
    (tmp_path / "says.py").write_text("import sys; print(*sys.argv[1:])")
    path = f"{PYTHON.parent}:{os.environ['PATH']}"
    flags = ["--gpu", "none", "--", "-q"]  # the script's own
    for words in (["says.py"], ["python", "says.py"], ["--", "python", "says.py"]):
        done = fathom.command("run", "-q", *words, *flags, cwd=tmp_path, env={"PATH": path})
        assert (done.returncode, done.stdout.splitlines()[0]) == (0, " ".join(flags)), done.stderr
    done = fathom.command("run", "--gup", "rtx3090", "says.py", cwd=tmp_path)
    assert done.returncode == 2 and "unexpected argument '--gup'" in done.stderr
    assert "Usage: fathom run" in fathom.command("help", "run").stdout


def test_a_shell_script(fathom, train):
    script = train.parent / "run.sh"
    script.write_text(f"#!/bin/sh\nset -e\necho before\n{PYTHON} {train}\necho after\n")
    script.chmod(0o755)
    report, done = fathom(script, flags=("--gpu", "rtx3090"))
    assert done.returncode == 0 and said(done) == STEPS and report["steps"] == 3, done.stderr
    assert done.stdout.splitlines()[0] == "before" and "after" in done.stdout.splitlines()
    report, done = fathom("sh", "-c", f"exec {PYTHON} {train}", flags=("--gpu", "rtx3090"))
    assert done.returncode == 0 and report["steps"] == 3, done.stderr


WRAPPER = """#!{python}
import os, sys
words = sys.argv[1:]
if words and words[0] == "run":
    words = words[3:] if words[1] == "-n" else words[1:]
os.execv({final!r}, [{final!r}, *words[words[0].startswith("python"):]])
"""


@pytest.mark.parametrize("name", ["conda", "poetry", "launcher"])
def test_a_wrapper_starts_another_python(fathom, train, name):
    """Its own Python has no torch: that of the environment it starts counts."""
    wrapper = train.parent / name
    wrapper.write_text(WRAPPER.format(python="/usr/bin/env -S python3 -S", final=str(PYTHON)))
    wrapper.chmod(0o755)
    flags = {"conda": ["run", "-n", "env"], "poetry": ["run"], "launcher": []}[name]
    env = {"PATH": f"{train.parent}:{os.environ['PATH']}"}
    report, done = fathom(name, *flags, "python", train, flags=("--gpu", "rtx3090"), env=env)
    assert done.returncode == 0 and report["steps"] == 3, done.stdout + done.stderr
    # Those that say which Python it is are known before they start.
    assert bool(report["software"]["torch"]) and said(done) == STEPS


def test_torchrun_that_fails(fathom, tmp_path):
    """torchrun with one process that trains is in test_scripts.py."""
    script = tmp_path / "fails.py"
    script.write_text("import torch\ntorch.ones(1, device='cuda')\nraise ValueError('nothing to learn')\n")
    report, done = fathom(PYTHON.parent / "torchrun", "--nproc-per-node", "1", script, flags=("--gpu", "rtx3090"))
    assert done.returncode == 3 and report["verdict"] == "script_failed" and "ValueError: nothing to learn" in report["failure"]


def test_a_script_that_uses_the_card_in_a_child(fathom):
    code = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', sys.argv[1]]))"
    report, done = fathom(PYTHON, "-c", code, TRAIN, flags=("--gpu", "rtx3090"))
    assert done.returncode == 0 and report["steps"] == 3 and said(done) == STEPS, done.stderr


def test_a_forked_process_that_uses_the_card_has_true_values(fathom):
    code = """
import os, torch
child = os.fork()
if child == 0:
    found = (torch.arange(4, device="cuda") * 2).sum().item()
    os._exit(0 if found == 12 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
"""
    _, done = fathom.code(code)
    assert done.returncode == 0, done.stderr


def test_a_forked_worker_does_not_end_the_run(fathom):
    code = f"""
import os
{TRAIN.replace('print("step", step, flush=True)', '''
    child = os.fork()
    if child == 0:
        os._exit(0)
    os.waitpid(child, 0)
    print("step", step, flush=True)''')}
"""
    report, done = fathom.code(code)
    assert done.returncode == 0 and report["steps"] == 3 and said(done) == STEPS, done.stderr


def test_a_script_that_catches_everything(fathom):
    code = TRAIN.replace("    optimizer.step()", "    try:\n        optimizer.step()\n    except BaseException:\n        pass")
    report, done = fathom.code(code)
    assert done.returncode == 0 and report["stopped"] and 3 <= report["steps"] < 10, done.stderr


def test_what_runs_at_exit_still_runs(fathom):
    code = "import atexit; atexit.register(print, 'step off')\ntry:" + TRAIN.replace("\n", "\n    ") + "\nfinally:\n    print('step out')"
    report, done = fathom.code(code)
    assert done.returncode == 0 and said(done) == [*STEPS, "step out", "step off"], done.stdout


# -- processes that are not about a GPU ---------------------------------------------------------------


def test_libraries_may_be_called_after_python_has_ended(fathom):
    """As torch's destructors do: what they write to is asked of nobody then."""
    code = """
import ctypes, torch
x = torch.ones(1000, device="cuda")
libc = ctypes.CDLL(None)
function = ctypes.cast(libc.cudnnBackendDestroyDescriptor, ctypes.c_void_p)
assert libc.on_exit(function, ctypes.c_void_p(x.data_ptr())) == 0
"""
    report, done = fathom.code(code)
    assert report["verdict"] == "fits", done.stdout + done.stderr


def test_a_command_without_torch_is_itself(fathom):
    report, done = fathom("/bin/echo", "hello", flags=("--gpu", "rtx3090"))
    assert done.returncode == 0 and done.stdout.splitlines()[0] == "hello" and own(done) == ""
    assert report["verdict"] == "fits" and report["peak"] is None and "did not use the GPU" in done.stdout
    report, done = fathom("sh", "-c", "exit 9")
    assert (done.returncode, report["failure"]) == (3, "exit code 9, before it used the GPU; what it printed says why")


def test_tools_work_with_the_phantom_loaded(fathom, tmp_path):
    (tmp_path / "main.c").write_text('#include <stdio.h>\nint main(void) { puts("compiled"); return 0; }\n')
    report, done = fathom("sh", "-c", "cc main.c -o main && ./main && ls | sort | head -1 && git --version", cwd=tmp_path)
    assert done.returncode == 0 and done.stdout.splitlines()[:2] == ["compiled", "main"], done.stderr
    assert own(done) == ""


def test_a_python_that_only_uses_the_cpu(fathom):
    report, done = fathom.code("import torch; print(torch.ones(3).sum().item(), torch.cuda.is_available())")
    assert done.returncode == 0 and done.stdout.startswith("3.0 True\n") and report["peak"] is None
    assert "did not use the GPU" in done.stdout
