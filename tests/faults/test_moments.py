"""Every signal at random moments of `run`, `fit`, `sweep` and ranks: two in `make test`, four with `make test-matrix`, ten of each in
`make test-faults`."""

import functools
import signal
import time
from pathlib import Path

import pytest
from conftest import PYTHON
from faults import IS_LONG, Case, case, chance, until  # noqa: F401

TRAINS = Path(__file__).parent / "trains.py"
SIGNALS = ["SIGINT", "SIGTERM", "SIGHUP", "SIGQUIT", "SIGUSR1", "SIGUSR2", "SIGXCPU", "SIGKILL"]
# Words of each, and about how many seconds it takes.
VERBS = {
    "run": (("run", "--memory", "8GiB"), 5),
    "ranks": (("run", "--world-size", "4", "--ranks", "all", "--memory", "8GiB"), 12),
    "sweep": (("sweep", "--vary", "width=16,32,64", "--memory", "8GiB", "--fresh"), 9),
    "fit": (("fit", "--memory", "400MiB"), 15),
}
CASES = [(verb, name, moment) for verb in VERBS for name in SIGNALS for moment in range(10)]
SHORT = [("run", "SIGTERM", 0), ("fit", "SIGKILL", 0)]
SHORT += [pytest.param(*each, marks=pytest.mark.matrix) for each in (("ranks", "SIGHUP", 0), ("sweep", "SIGQUIT", 0))]


def start(case, verb):
    words, _ = VERBS[verb]
    case.start(*words, command=[PYTHON, TRAINS, "--width", "64", "--pause", "0.2"])


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory):
    """What each answers when nothing happens to it."""

    @functools.cache
    def answer(verb):
        one = Case(tmp_path_factory.mktemp(verb))
        start(one, verb)
        one.wait(timeout=200)
        one.end()
        return one.answer

    return answer


@pytest.mark.parametrize("verb, name, moment", CASES if IS_LONG else SHORT)
def test_a_signal_at_any_moment(case, chance, undisturbed, verb, name, moment):
    number = getattr(signal, name)
    after = chance.uniform(0, VERBS[verb][1])
    start(case, verb)
    until(lambda: case.process.poll() is not None, after)
    case.kill(number)
    began = time.monotonic()
    code = case.wait()
    said = f"{verb} {name} after {after:.2f} s: {code}\n{case.stdout}\n{case.stderr}"
    assert time.monotonic() - began < 45, said
    case.assert_nothing_is_left()
    assert "panicked" not in case.stderr, said
    if code == -number:  # killed, or ended before there was anything to report
        assert case.answer is None, said
        return
    answer = case.answer
    if code == 4:
        assert answer["unfinished"]["signal"] == name and case.stdout.count("INTERRUPTED  by") == 1, said
    else:
        assert code in (0, 1) and answer["unfinished"] is None, said
        assert verb != "ranks" or len(answer["ranks"]) == 4, said
    if IS_LONG:
        assert_right(verb, answer, undisturbed(verb), code == 4)


def assert_right(verb, answer, whole, is_unfinished):
    """What is said agrees with what an undisturbed run says."""
    if verb in ("run", "ranks"):
        peak = answer["peak"] or {"device_bytes": 0, "allocated_bytes": 0}
        for key in ("device_bytes", "allocated_bytes"):
            assert peak[key] <= whole["peak"][key] and (is_unfinished or peak[key] == whole["peak"][key])
        assert (answer["verdict"] == "interrupted") == is_unfinished
    elif verb == "sweep":
        known = {tuple(point["values"].items()): point["verdict"] for point in whole["points"]}
        for point in answer["points"]:
            assert point["verdict"] in (known[tuple(point["values"].items())], "not_run" if is_unfinished else "")
    else:
        levers = [plan["levers"] for plan in whole["plans"]]
        assert all(plan["levers"] in levers for plan in answer["plans"])
        assert is_unfinished or answer["chosen"] == whole["chosen"]
