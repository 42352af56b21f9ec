"""docs/benchmarks.md says what the benchmarks measured, and nothing that somebody wrote into it."""

import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))

import publish  # noqa: E402


def test_the_page_is_what_the_results_say():
    assert publish.PAGE.read_text() == publish.render(), "run `python3 bench/publish.py`"


def test_every_table_has_rows():
    assert "| --- |" in publish.render() or "| ---:" in publish.render()
    for path in publish.RESULTS.glob("*.json"):
        assert all(table["rows"] for table in publish.json.loads(path.read_text())["tables"]), path.name
