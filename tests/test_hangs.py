"""Scripts that hang or are killed in the middle: what was seen until then is the answer, and it says so."""

import re
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from small_runs import ONE, TRAIN

# The second step takes 10 GiB, in C++, and then it hangs: nobody writes down who holds them.
LATE = """
import time, torch
model = torch.nn.Linear(512, 512, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(50):
    optimizer.zero_grad()
    model(torch.randn(64, 512, device="cuda")).square().mean().backward()
    optimizer.step()
    x = torch.empty(10 << 30, dtype=torch.uint8, device="cuda")
    print("step", step, flush=True)
    time.sleep(300)
"""
LAST = "import atexit, time\natexit.register(time.sleep, 300)\n" + TRAIN


# Long enough for four to begin at the same time on a busy machine.
SECONDS = 25


@pytest.fixture(scope="module")
def hung(fathom):
    """Scripts that hang, by name: all wait for their end at the same time."""
    timeout = ("--timeout", SECONDS)
    runs = {
        "sleeps": lambda: fathom.script("sleeps", flags=timeout),
        "late": lambda: fathom.code(LATE, flags=timeout),
        "over budget": lambda: fathom.code(LATE, flags=(*timeout, "--budget", "4GiB")),
        "last step": lambda: fathom.code(LAST, flags=timeout),
    }

    def timed(run):
        began = time.monotonic()
        report, done = run()
        assert time.monotonic() - began < SECONDS + 45
        return report, done

    with ThreadPoolExecutor(len(runs)) as pool:
        return dict(zip(runs, pool.map(timed, runs.values())))


def test_4_a_hang_is_ended(hung):
    report, done = hung["sleeps"]
    assert (done.returncode, report["verdict"], report["exit_code"]) == (4, "timed_out", 4)
    assert report["failure"] == f"timed out after {SECONDS} s" and report["unfinished"]["reason"] == "timed_out"
    assert report["steps"] == 1 and report["peak"]["allocated_bytes"] > 0  # what was seen until then
    assert re.search(rf"^TIMED OUT  after {SECONDS} s with 1 step taken: [\d.]+ MiB were needed by then$", done.stdout, re.M)


def test_what_a_killed_run_took_last_is_reported(fathom, hung):
    """The recording ends with the last step; the card's own count does not."""
    killed = "import os, signal\n" + LATE.replace("time.sleep(300)", "os.kill(os.getpid(), signal.SIGKILL)")
    for (report, done), verdict in ((hung["late"], "timed_out"), (fathom.code(killed), "script_failed")):
        assert report["verdict"] == verdict and report["steps"] == 1, done.stderr
        assert report["peak"]["reserved_bytes"] >= 10 << 30
        assert report["peak"]["device_bytes"] == report["peak"]["reserved_bytes"] + report["gpu"]["context_bytes"]
        rest = report["unattributed"]
        recorded = sum(row["bytes"] for row in report["categories"])
        assert 0 < recorded < 64 << 20 and 10 << 30 <= rest["bytes"] <= report["peak"]["reserved_bytes"]
        assert "before it was recorded" in rest["why"] and "10.00 GiB of it not attributed" in done.stdout
        assert report["floor_bytes"] is None and "smallest GPU that fits" not in done.stdout
    report, done = fathom.code(ONE)
    assert report["unattributed"] is None and report["unfinished"] is None and "attributed" not in done.stdout


def test_a_script_that_hangs_after_its_last_step_has_its_answer(hung):
    report, done = hung["last step"]
    assert (done.returncode, report["verdict"], report["steps"]) == (0, "fits", 3) and report["unfinished"] is None
    assert "the script did not end after its last step, and was ended" in report["notes"]


def test_an_unfinished_run_over_its_budget_does_not_fit(hung):
    report, done = hung["over budget"]
    assert (done.returncode, report["verdict"]) == (1, "does_not_fit") and report["unfinished"]["reason"] == "timed_out"
    assert re.search("DOES NOT FIT  needs 10.27 ± [0-9.]+ GiB, over the budget of 4.00 GiB", done.stdout)
