"""Much at once, and for long: sixteen processes that load data, and a training whose host memory stays flat."""

import signal
import statistics
import time
from pathlib import Path

import pytest
from conftest import PYTHON
from faults import IS_LONG, case, long, processes, until  # noqa: F401

HERE = Path(__file__).parent
MINUTE = 60

# Each imports torch, for seconds; the short version runs beside other tests on two cores.
LOADERS = 16 if IS_LONG else 6


def test_many_loaders_end_with_the_run(case):
    case.start("run", "--gpu", "rtx3090", command=[PYTHON, HERE / "loads.py", str(LOADERS)])
    assert case.wait() == 0, case.stderr
    assert case.answer["verdict"] == "fits" and case.answer["steps"] == 3
    case.assert_nothing_is_left()


@pytest.mark.parametrize("name", ["SIGKILL", pytest.param("SIGTERM", marks=long), pytest.param("SIGINT", marks=long)])
def test_many_loaders_end_when_a_signal_comes(case, name):
    case.start("run", "--gpu", "rtx3090", "--steps", "0", command=[PYTHON, HERE / "loads.py", str(LOADERS), "0.5"])
    assert case.wait_for("step")[0], case.stderr
    assert len(processes(case.token)) >= 3 + LOADERS  # fathom, a keeper, the script and its loaders
    case.kill(getattr(signal, name))
    code = case.wait()
    if name != "SIGKILL":
        assert code == 4 and case.answer["unfinished"]["signal"] == name and case.answer["peak"]["device_bytes"] > 0
    case.assert_nothing_is_left()


def resident(pid):
    """Bytes of host memory that are a process's own."""
    try:
        with open(f"/proc/{pid}/status", encoding="utf-8") as file:
            lines = dict(line.split(":", 1) for line in file)
        return int(lines["RssAnon"].split()[0]) << 10
    except (OSError, KeyError):
        return None


@pytest.mark.matrix
def test_a_long_training_needs_no_more_and_more_of_the_host(case):
    """Twenty minutes in `make test-faults`, half of one else. What the recorder remembers must not grow with the steps."""
    seconds = 20 * MINUTE if IS_LONG else 20
    words = ("--gpu", "rtx3090", "--steps", "0", "--timeout", str(seconds + 60))
    case.start("run", *words, command=[PYTHON, HERE / "trains.py", "--steps", "100000000"])
    assert case.wait_for("step 20\n")[0], case.stderr
    samples, began = {}, time.monotonic()
    while time.monotonic() - began < seconds:
        for pid, words in processes(case.token).items():
            samples.setdefault((pid, words[:40]), []).append((time.monotonic() - began, resident(pid) or 0))
        time.sleep(seconds / 100)
    steps = case.stdout.count("step")
    case.kill(signal.SIGTERM)
    assert case.wait(timeout=300) == 4 and case.answer["verdict"] == "interrupted"
    assert len(samples) == 3 and steps > seconds, samples.keys()  # fathom, its keeper, the script
    for (_, words), of in samples.items():
        third = len(of) // 3
        early, late = (statistics.median(size for _, size in part) for part in (of[third : 2 * third], of[2 * third :]))
        # A few MiB are the interpreter's and the allocator's own; in twenty minutes a leak of 1 KiB a step is hundreds.
        assert late - early < (16 << 20), (words, early >> 20, late >> 20, steps)
    case.assert_nothing_is_left()
