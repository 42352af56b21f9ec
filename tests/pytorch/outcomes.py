"""A plugin of pytest: a line of JSON for each test as it begins and as it ends, so that a crash loses nothing.

`FATHOM_OUTCOMES` names the file. Tests that it already holds are not run again.
"""

import gc
import json
import os
import signal
import sys
import time

import pytest

FILE = os.environ["FATHOM_OUTCOMES"]
SECONDS = int(os.environ.get("FATHOM_TEST_SECONDS", "120"))

# Stands for the end of a process that ran all that was left.
END = ""

began = {}


def note(**row):
    with open(FILE, "a", encoding="utf-8") as file:
        file.write(json.dumps(row) + "\n")


def name_of(nodeid):
    return "::".join(nodeid.split("::")[1:])


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config, items):
    known = set()
    if os.path.exists(FILE):
        with open(FILE, encoding="utf-8") as file:
            known = {json.loads(line)["test"] for line in file}
    left = [item for item in items if name_of(item.nodeid) not in known]
    config.hook.pytest_deselected(items=[item for item in items if name_of(item.nodeid) in known])
    items[:] = left


def too_long(*_):
    raise TimeoutError(f"no end after {SECONDS} s")


def pytest_runtest_logstart(nodeid):
    note(test=name_of(nodeid), outcome="begun")
    began[nodeid] = time.monotonic()
    signal.signal(signal.SIGALRM, too_long)
    signal.alarm(SECONDS)


def pytest_runtest_logreport(report):
    if report.outcome == "failed" or report.when == "call" or (report.when == "setup" and report.skipped):
        crash = getattr(report.longrepr, "reprcrash", None)
        why = crash.message if crash else str(report.longrepr or "")
        if report.skipped and isinstance(report.longrepr, tuple):
            why = report.longrepr[2]
        row = {"outcome": report.outcome, "why": why[:2000]}
        if hasattr(report, "wasxfail"):
            row["outcome"] = "expected failure" if report.skipped else "failed"
        note(test=name_of(report.nodeid), seconds=round(time.monotonic() - began.get(report.nodeid, 0), 2), **row)


def pytest_runtest_logfinish():
    """A failed test must not keep its tensors: the next ones look at the memory that is in use."""
    signal.alarm(0)
    for name in ("last_type", "last_value", "last_traceback", "last_exc"):
        if hasattr(sys, name):
            delattr(sys, name)
    gc.collect()


def pytest_sessionfinish(exitstatus):
    note(test=END, outcome=str(int(exitstatus)))
