"""Signals in `fit`, `sweep` and among ranks: what had ended by then is the answer, and it says that it is unfinished."""

import json
import signal
import subprocess
from pathlib import Path

import pytest
from conftest import FATHOM, PYTHON, sampled
from faults import case, long, processes, until  # noqa: F401

TRAINS = Path(__file__).parent / "trains.py"


# Ranks 0 and 1 take all their steps; at the end of rank 1 a signal comes.
BETWEEN = """
import atexit, os, signal, torch
rank = os.environ["RANK"]
def last():
    if rank == "1":
        os.kill(int(os.environ["FATHOM_PID"]), signal.SIGTERM)
model = torch.nn.Linear(8, 8).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
atexit.register(last)
while True:
    model(torch.randn(8, 8, device="cuda")).sum().backward()
    optimizer.step()
"""


def trials(case):
    """How many trials have ended by themselves, and how many are in the middle of it."""
    texts = [path.read_text() for path in case.temporary.glob("fathom-trials-*/*/process.*.json")]
    ended = sum(json.loads(text)["end"] is not None for text in texts)
    return ended, len(texts) - ended


@pytest.mark.parametrize("name", ["SIGINT", pytest.param("SIGUSR1", marks=long), pytest.param("SIGTERM", marks=long)])
def test_a_sweep_shows_what_it_has(case, name):
    words = ("--vary", "width=32,64,256,512", "--memory", "8GiB", "--fresh")
    case.start("sweep", *words, command=[PYTHON, TRAINS, "--width", "64"])
    assert until(lambda: trials(case)[0] == 2, 60), case.stderr
    case.kill(getattr(signal, name))
    assert case.wait() == 4, case.stderr
    verdicts = {point["values"]["width"]: point["verdict"] for point in case.answer["points"]}
    assert verdicts == {"32": "fits", "64": "fits", "256": "not_run", "512": "not_run"}
    assert case.answer["unfinished"]["signal"] == name and case.answer["trials"]["run"] == 2
    assert f"INTERRUPTED  by {name} after" in case.stdout and case.stdout.count("fits") == 2 and "?" in case.stdout
    assert "starts Python anew" not in case.stdout
    case.assert_nothing_is_left()


@pytest.mark.matrix
def test_a_search_for_the_largest_shows_what_it_has(case):
    words = ("--vary", "width=8..1024", "--memory", "64GiB", "--fresh")
    case.start("sweep", *words, command=[PYTHON, TRAINS, "--width", "64"])
    # The next guesses are at the other end of the range, where the script hangs.
    assert until(lambda: trials(case)[0] >= 3 and trials(case)[1], 60), case.stderr
    case.kill(signal.SIGTERM)
    assert case.wait() == 4, case.stderr
    (largest,) = case.answer["largest"]
    assert largest["unfinished"] and not largest["at_end_of_range"] and 8 <= largest["value"] < 256
    assert "a larger one may fit: the search is unfinished" in case.stdout
    case.assert_nothing_is_left()


def test_a_fit_shows_what_it_has(case):
    case.start("fit", "--memory", "700MiB", command=[PYTHON, TRAINS, "--width", "128", "--hang-if", "hang"])
    assert until(lambda: trials(case)[0] >= 11, 120), case.stderr
    (case.folder / "hang").touch()
    assert until(lambda: trials(case)[1], 60), case.stderr
    case.kill(signal.SIGINT)
    assert case.wait() == 4, case.stderr
    answer = case.answer
    assert answer["unfinished"]["signal"] == "SIGINT" and answer["exit_code"] == 4
    assert answer["baseline"]["peak_allocated_bytes"] > 256 << 20 and not answer["baseline"]["fits"]
    assert answer["plans"] and "INTERRUPTED  by SIGINT after" in case.stdout and "NO PLAN" not in case.stdout
    assert "by hand:" not in case.stdout and "were not tried" not in case.stdout  # it did not come to that
    case.assert_nothing_is_left()


@pytest.mark.parametrize("verb", sampled(["fit", "sweep"], ["sweep"]))
def test_when_trials_are_killed_nothing_is_left(case, verb):
    words = ("--memory", "8GiB", *(("--vary", "width=256,512", "--fresh") if verb == "sweep" else ()))
    case.start(verb, *words, command=[PYTHON, TRAINS, "--width", "256"])
    assert until(lambda: list(case.temporary.glob("fathom-trials-*/*/process.*.json")), 60)
    assert len(processes(case.token)) >= 4  # fathom, a keeper, the warm process and its trial
    case.kill(signal.SIGKILL)
    case.wait()
    case.assert_nothing_is_left()


def test_ranks_of_which_some_did_not_run_do_not_fit(case):
    """The signal comes between two ranks: those that ran fit, and that is not the answer."""
    code = BETWEEN
    # The shell becomes Fathom: its number is known to the script.
    flags = f"--jobs 1 --world-size 4 --ranks 0,1,2,3 --memory 8GiB --json {case.report}"
    words = ["sh", "-c", f"export FATHOM_PID=$$; exec {FATHOM} run {flags} -- {PYTHON} -c \"$0\"", code]
    with open(case.folder / "stdout", "w") as output, open(case.folder / "stderr", "w") as errors:
        options = {"stdout": output, "stderr": errors, "stdin": subprocess.DEVNULL, "cwd": case.folder}
        case.process = subprocess.Popen(words, env=case.environment(), start_new_session=True, **options)
    assert case.wait() == 4, case.stdout
    answer = case.answer
    assert answer["verdict"] == "interrupted" and {row["rank"] for row in answer["ranks"]} == {0, 1}
    assert any("not run any more: rank 2, 3" in note for note in answer["notes"]), answer["notes"]
    case.assert_nothing_is_left()


@pytest.mark.matrix
def test_ranks_that_had_ended_are_shown(case):
    """Rank 1 hangs; rank 2 is not run any more."""
    command = [PYTHON, TRAINS, "--hang-from", "3"]
    case.start("run", "--world-size", "4", "--ranks", "all", "--memory", "8GiB", command=command)
    assert until(lambda: (case.folder / "run-3").exists(), 60), case.stderr
    done = until(lambda: list(case.temporary.glob("fathom-run-*/rank-[23]/process.*.json")), 60)
    assert done, case.stderr
    case.kill(signal.SIGTERM)
    assert case.wait() == 4, case.stderr
    verdicts = {row["rank"]: row["verdict"] for row in case.answer["ranks"]}
    assert verdicts[0] == verdicts[1] == "fits" and "interrupted" in verdicts.values()
    assert case.answer["verdict"] == "interrupted" and "INTERRUPTED  by SIGTERM" in case.stdout
    case.assert_nothing_is_left()
