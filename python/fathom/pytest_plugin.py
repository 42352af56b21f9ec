"""`@pytest.mark.fathom(gpu="rtx3090", budget="16GiB")`: the test's body runs on a phantom GPU.

A marked test is handed, with its fixtures, to a pytest of its own under `fathom run`; this one only reports what
came of it. Other tests are not touched, and torch is not imported here.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from typing import TYPE_CHECKING, Any

import pytest

from . import contract

if TYPE_CHECKING:
    from .report import Report

OPTIONS = ("gpu", "memory", "used", "budget", "baseline", "margin", "steps", "timeout", "values", "record")
FINDINGS = 1


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line(
        "markers",
        "fathom(gpu, memory, used, budget, baseline, margin, steps=0, timeout): run the test on a phantom GPU; "
        "it fails if it runs out of memory, goes over the budget or grows",
    )


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Marked tests get another body, and no set-up of their own. On the phantom they are what they are."""
    if contract.RUN in os.environ:
        return
    for item in items:
        if item.get_closest_marker("fathom") is not None and isinstance(item, pytest.Function):
            item.setup = lambda: None  # type: ignore[method-assign]
            item.runtest = lambda item=item: run(item)  # type: ignore[method-assign,misc]


def run(item: pytest.Function) -> None:
    """Runs one test on the phantom and passes, skips or fails as it did."""
    from . import api

    options, problem, told = options_of(item), None, {}
    with tempfile.TemporaryDirectory(prefix="fathom-pytest-") as folder:
        outcome = os.path.join(folder, "outcome.json")
        try:
            report = api.run(inner(item), cwd=item.config.invocation_params.dir, env={contract.PYTEST_OUTCOME: outcome}, **options)
        except api.Error as error:
            problem = error
        if os.path.exists(outcome):
            with open(outcome, encoding="utf-8") as file:
                told = json.load(file)
    if problem is not None:
        pytest.fail(f"fathom: {problem}", pytrace=False)
    item.user_properties.append(("fathom", report.headline))
    if told.get("outcome") == "skipped":
        pytest.skip(told["text"])
    is_answer = report.verdict not in ("script_failed", "interrupted", "timed_out")
    if is_answer and report.exit_code:
        pytest.fail(words(report), pytrace=False)
    if not is_answer:
        pytest.fail(told.get("text") or f"{report.headline}\n{report.output}", pytrace=False)


def options_of(item: pytest.Function) -> dict[str, Any]:
    """The nearest mark wins: a function's over its class's and its module's."""
    options: dict[str, Any] = {"steps": 0}
    for mark in reversed(list(item.iter_markers("fathom"))):
        unknown = sorted(set(mark.kwargs) - set(OPTIONS))
        if mark.args or unknown:
            wrong = unknown[0] if unknown else "an argument without a name"
            pytest.fail(f"pytest.mark.fathom: {wrong} is not known; it takes {', '.join(OPTIONS)}", pytrace=False)
        options.update(mark.kwargs)
    return options


def inner(item: pytest.Function) -> list[str]:
    """A pytest for this test alone, without this one's own flags: no coverage, no other processes."""
    config = item.config
    words = [sys.executable, "-m", "pytest", "-q", "-o", "addopts=", "-p", "no:cacheprovider", "--runxfail"]
    words += ["--rootdir", str(config.rootpath)]
    words += ["-c", str(config.inipath)] if config.inipath is not None else []
    words += ["--import-mode", str(config.getoption("importmode"))]
    name = config.pluginmanager.get_name(sys.modules[__name__])
    if name == __name__:  # not by its entry point: the other pytest would not find it
        words += ["-p", name]
    return [*words, f"{item.path}::{item.nodeid.partition('::')[2]}"]


def words(report: Report) -> str:
    """Why it does not pass: the verdict, the place, the first cause."""
    from .notebook import size

    lines = [f"fathom: {report.headline}"]
    refusal, peak = report.out_of_memory, report.peak
    if refusal is not None:
        place = f" at {refusal.file}:{refusal.line}" if refusal.file else ""
        lines.append(f"tried to allocate {size(refusal.tried_bytes)}{place}")
    if peak is not None:
        lines.append(f"peak: allocated {size(peak.allocated_bytes)}, reserved {size(peak.reserved_bytes)}")
    causes = [finding for finding in report.findings if finding.counted][:FINDINGS]
    lines += [f"largest cause: {finding.title}, {size(finding.bytes)}" for finding in causes]
    return "\n".join(lines)


# -- inside ---------------------------------------------------------------------------------------------


def pytest_exception_interact(call: pytest.CallInfo[Any]) -> None:
    """On the phantom: what pytest catches is, to those who watch the process, what ends it."""
    if contract.PYTEST_OUTCOME in os.environ and contract.RUN in os.environ and call.excinfo is not None:
        sys.excepthook(call.excinfo.type, call.excinfo.value, call.excinfo.tb)


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """On the phantom: tells the outer pytest of the first thing that went wrong, or of a skip."""
    path = os.environ.get(contract.PYTEST_OUTCOME)
    if path is None or contract.RUN not in os.environ or report.passed or os.path.exists(path):
        return
    text = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longreprtext
    with open(path, "w", encoding="utf-8") as file:
        json.dump({"outcome": report.outcome, "text": text.removeprefix("Skipped: ")}, file)
