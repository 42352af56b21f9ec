"""docs/benchmarks.md says what the benchmarks measured, and nothing that somebody wrote into it."""

import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))

import publish


def test_the_page_is_what_the_results_say():
    assert publish.PAGE.read_text() == publish.render(), "run `python3 bench/publish.py`"


def test_every_table_has_rows():
    assert "| --- |" in publish.render() or "| ---:" in publish.render()
    for path in publish.RESULTS.glob("*.json"):
        assert all(table["rows"] for table in publish.json.loads(path.read_text())["tables"]), path.name


def rows_of(name, title):
    tables = publish.json.loads((publish.RESULTS / f"{name}.json").read_text())["tables"]
    return next(table for table in tables if table["title"] == title)


def test_what_was_measured_is_as_fast_as_was_wanted():
    """Fifty times MemTracker in nine of ten models, and faster than the meta device wherever that gives an answer."""
    table = rows_of("speed", "A step")
    columns = list(table["columns"])
    ratios = {tool: [row[columns.index(f"against {tool}")] for row in table["rows"]] for tool in ("MemTracker", "meta")}
    compared = [ratio for ratio in ratios["MemTracker"] if ratio is not None]
    assert (len(compared), sum(ratio >= 50 for ratio in compared)) == (10, 9)
    assert all(ratio > 1 for ratio in ratios["meta"] if ratio is not None)


def test_thirteen_billion_parameters_fit_into_four_gibibytes_of_the_host():
    table = rows_of("scale", "By model")
    [row] = [row for row in table["rows"] if row[0] == "13B"]
    assert row[list(table["columns"]).index("host, all processes")] < 4 * 2**30
