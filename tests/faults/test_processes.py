"""Processes of a run: signals reach them once, and none is left. Nothing here imports torch."""

import os
import pty
import select
import signal
import subprocess
import sys
import time

import pytest
from conftest import FATHOM, PYTHON
from faults import case, processes, until  # noqa: F401

# Counts signals, says so, and ends by itself after a while.
COUNTS = """
import signal, sys, time
counts = dict.fromkeys(sys.argv[1:], 0)
def count(number, frame):
    counts[signal.Signals(number).name] += 1
    open("counts", "w").write(" ".join(f"{name}={count}" for name, count in counts.items()) + "\\n")
for name in counts:
    signal.signal(getattr(signal, name), count)
print("ready", flush=True)
end = time.monotonic() + 30
while time.monotonic() < end:
    time.sleep(0.05)
    if all(counts.values()):
        end = min(end, time.monotonic() + 0.5)  # for a second one
"""
# A daemon that has left its parent, its group and its session, and does not end when it is asked to.
DAEMON = """
import os, signal, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        open("daemon", "w").write(f"{os.getpid()}\\n")
        time.sleep(300)
    os._exit(0)
while not os.path.exists("daemon"):
    time.sleep(0.02)
print("ready", flush=True)
"""
HANGS = DAEMON + "time.sleep(300)\n"

ENDING = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGXCPU"]


def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    with open(f"/proc/{pid}/stat") as file:
        return ") Z " not in file.read()


@pytest.mark.parametrize("name", [*ENDING, "SIGUSR1", "SIGUSR2", "SIGALRM"])
def test_a_signal_ends_the_script_and_is_reported(case, name):
    case.start("run", command=["sh", "-c", "sleep 300 & echo ready; wait"])
    assert case.wait_for("ready")[0]
    case.kill(getattr(signal, name))
    assert case.wait() == 4, case.stderr
    answer = case.answer
    assert (answer["verdict"], answer["exit_code"]) == ("interrupted", 4)
    assert answer["unfinished"]["signal"] == name and f"INTERRUPTED  by {name} after" in case.stdout
    case.assert_nothing_is_left()


@pytest.mark.parametrize("whom", ["fathom", "group", "everyone"])
def test_a_signal_reaches_the_script_once(case, whom):
    """Sent to Fathom alone, to its group as by `timeout`, or to each process as by Slurm."""
    case.start("run", command=[PYTHON, "-c", COUNTS, "SIGUSR2", "SIGTERM"])
    assert case.wait_for("ready")[0]
    for number in (signal.SIGUSR2, signal.SIGTERM):
        if whom == "everyone":
            for pid in processes(case.token):
                os.kill(pid, number)
        elif whom == "group":
            case.kill(number)
            os.killpg(case.process.pid, number)
        else:
            case.kill(number)
        time.sleep(0.3)
    assert case.wait() == 4
    assert case.file("counts") == "SIGUSR2=1 SIGTERM=1\n"
    assert case.answer["unfinished"]["signal"] == "SIGTERM"  # though the script ended with 0
    case.assert_nothing_is_left()


def test_a_script_that_makes_something_of_a_signal_fits(case):
    case.start("run", command=[PYTHON, "-c", COUNTS, "SIGUSR1"])
    assert case.wait_for("ready")[0]
    case.kill(signal.SIGUSR1)
    assert case.wait() == 0, case.stdout
    assert case.file("counts") == "SIGUSR1=1\n" and case.answer["verdict"] == "fits"
    assert any("SIGUSR1 was passed on" in note for note in case.answer["notes"])


def test_an_interrupt_reaches_what_a_shell_waits_for(case):
    case.start("run", command=["sh", "-c", f"{PYTHON} -c '{COUNTS.replace(chr(39), chr(34))}' SIGINT; echo after"])
    assert case.wait_for("ready")[0]
    case.kill(signal.SIGINT)
    assert case.wait() == 4 and case.file("counts") == "SIGINT=1\n"
    case.assert_nothing_is_left()


def test_a_script_that_does_not_want_to_end_is_killed_and_reported(case):
    case.start("run", command=["sh", "-c", "trap '' TERM; echo ready; while true; do sleep 1; done"])
    assert case.wait_for("ready")[0]
    began = time.monotonic()
    case.kill(signal.SIGTERM)
    assert case.wait() == 4 and 4 < time.monotonic() - began < 9
    assert case.answer["verdict"] == "interrupted" and "was killed" in " ".join(case.answer["notes"])
    case.assert_nothing_is_left()


def test_a_timeout_ends_all(case):
    case.start("run", "--timeout", "1", command=[PYTHON, "-c", HANGS])
    assert case.wait() == 4, case.stderr
    assert case.answer["verdict"] == "timed_out" and "TIMED OUT  after 1." in case.stdout
    assert case.answer["unfinished"]["reason"] == "timed_out" and case.answer["unfinished"]["signal"] is None
    case.assert_nothing_is_left()


def test_when_fathom_is_killed_nothing_is_left(case):
    case.start("run", command=["sh", "-c", f"{PYTHON} -c '{HANGS}' & sleep 300 & wait"])
    daemon = int(case.file("daemon"))
    assert case.wait_for("ready")[0] and is_alive(daemon)
    case.kill(signal.SIGKILL)
    case.wait()
    case.assert_nothing_is_left()


def test_when_the_keeper_is_killed_nothing_is_left(case):
    case.start("run", command=[PYTHON, "-c", HANGS])
    assert case.wait_for("ready")[0]
    (keeper,) = [pid for pid, words in processes(case.token).items() if words.startswith("fathom-keeper")]
    os.kill(keeper, signal.SIGKILL)
    assert case.wait() == 3 and "killed by signal 9" in case.answer["failure"]
    case.assert_nothing_is_left()


def test_what_both_left_is_swept_by_the_next_start(case):
    case.start("run", command=[PYTHON, "-c", HANGS])
    assert case.wait_for("ready")[0]
    daemon = int(case.file("daemon"))
    (keeper,) = [pid for pid, words in processes(case.token).items() if words.startswith("fathom-keeper")]
    os.kill(case.process.pid, signal.SIGSTOP)  # it would see to the rest
    os.kill(keeper, signal.SIGKILL)
    case.kill(signal.SIGKILL)
    case.wait()
    assert is_alive(daemon) and case.left()
    done = subprocess.run([FATHOM, "run", "--", "true"], env=case.environment(), capture_output=True, timeout=60)
    assert done.returncode == 0 and not case.left()
    case.assert_nothing_is_left()


def test_a_run_that_goes_on_is_not_swept(case):
    case.start("run", command=["sh", "-c", "echo ready; read line < go"])
    os.mkfifo(case.folder / "go")
    assert case.wait_for("ready")[0]
    folders = case.left()
    assert len(folders) == 1
    done = subprocess.run([FATHOM, "run", "--", "true"], env=case.environment(), capture_output=True, timeout=60)
    assert done.returncode == 0 and case.left() == folders
    (case.folder / "go").write_text("go\n")
    assert case.wait() in (0, 3)
    case.assert_nothing_is_left()


def test_a_daemon_ends_with_the_run_and_others_do_not(case):
    other = subprocess.Popen(["sleep", "300"], start_new_session=True)
    try:
        case.start("run", command=[PYTHON, "-c", DAEMON])
        assert case.wait() == 0, case.stderr
        assert not is_alive(int(case.file("daemon"))) and is_alive(other.pid)
        case.assert_nothing_is_left()
    finally:
        other.kill()
        other.wait()


def test_helpers_that_end_by_themselves_may(case):
    case.start("run", command=["sh", "-c", "(sleep 0.3; echo done > helper) & exit 0"])
    assert case.wait() == 0 and case.file("helper") == "done\n"


def test_a_check_ends_with_the_script_that_was_interrupted(case):
    scripts = [("first", "true"), ("second", "sh -c 'echo ready > began; sleep 300'"), ("third", "touch third")]
    text = "".join(f'[[script]]\nname = "{name}"\ncommand = "{command}"\n' for name, command in scripts)
    (case.folder / "fathom.toml").write_text(text)
    words = [FATHOM, "check", "--jobs", "1", "--json", case.report]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    case.process = subprocess.Popen(words, cwd=case.folder, env=case.environment(), text=True, **pipes)
    case.file("began")
    case.kill(signal.SIGTERM)
    stdout, stderr = case.process.communicate(timeout=30)
    assert case.process.returncode == 4 and "INTERRUPTED  by SIGTERM" in stdout and "2 scripts: 1 pass, 1 fails" in stdout
    assert [row["report"]["verdict"] for row in case.answer["scripts"]] == ["fits", "interrupted"]
    assert not (case.folder / "third").exists() and "not run any more: third" in stderr
    case.assert_nothing_is_left()


def test_nohup_keeps_its_promise(case):
    command = f"echo ready; {PYTHON} -c 'import time; time.sleep(1)'; echo went on"
    preexec = lambda: signal.signal(signal.SIGHUP, signal.SIG_IGN)  # noqa: E731
    case.start("run", command=["sh", "-c", command], preexec_fn=preexec)
    assert case.wait_for("ready")[0]
    case.kill(signal.SIGHUP)
    assert case.wait() == 0 and "went on" in case.stdout


# -- on a terminal --------------------------------------------------------------------------------------


class Terminal:
    """A command in the foreground of a terminal of its own, as a shell starts it."""

    def __init__(self, case, words):
        self.main, side = pty.openpty()
        code = "import os, sys, fcntl, termios; os.setsid(); fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execv(sys.argv[1], sys.argv[1:])"
        self.process = case.process = subprocess.Popen(
            [sys.executable, "-c", code, *map(str, words)],
            stdin=side, stdout=side, stderr=side, env=case.environment(), cwd=case.folder,
        )  # fmt: skip
        os.close(side)
        self.text = ""

    def type(self, text):
        os.write(self.main, text.encode())

    def read(self):
        while select.select([self.main], [], [], 0)[0]:
            try:
                chunk = os.read(self.main, 4096)
            except OSError:  # how a terminal says that it was closed
                return self.text
            self.text += chunk.decode()
        return self.text

    def shows(self, text):
        return until(lambda: text in self.read(), 30)


def test_ctrl_c_reaches_the_script_once(case):
    terminal = Terminal(case, [FATHOM, "run", "--json", case.report, "--", PYTHON, "-c", COUNTS, "SIGINT"])
    assert terminal.shows("ready"), terminal.text
    terminal.type("\x03")
    assert until(lambda: terminal.process.poll() is not None, 30) and terminal.process.returncode == 4
    assert case.file("counts") == "SIGINT=1\n" and "INTERRUPTED" in terminal.read()
    case.assert_nothing_is_left()


def test_an_interrupt_from_elsewhere_reaches_it_too(case):
    terminal = Terminal(case, [FATHOM, "run", "--json", case.report, "--", PYTHON, "-c", COUNTS, "SIGINT"])
    assert terminal.shows("ready"), terminal.text
    terminal.process.send_signal(signal.SIGINT)
    assert until(lambda: terminal.process.poll() is not None, 30) and terminal.process.returncode == 4
    assert case.file("counts") == "SIGINT=1\n"


def test_a_script_can_ask_at_the_terminal(case):
    code = "print('so', input('name? ') + '!')"
    terminal = Terminal(case, [FATHOM, "run", "--", PYTHON, "-c", code])
    assert terminal.shows("name? "), terminal.text
    terminal.type("Ada\n")
    assert terminal.shows("so Ada!") and terminal.shows("NOT MEASURED"), terminal.text
    assert terminal.process.wait(timeout=30) == 0
