"""PyTorch's own database of operators: a sample of it, and the page of all of it, which `make test-operators` writes."""

import json
import subprocess
import sys

import pytest
from conftest import PYTHON, ROOT, environment

sys.path.insert(0, str(ROOT / "tests" / "operators"))

import page
import run

# Every so many operators, and some that once went wrong.
EVERY, FIRST = 23, 5
ONCE_WRONG = "corrcoef,cov,linalg.eig,linalg.lstsq,matrix_exp,mode,nn.functional.batch_norm,to,to_sparse,unique"


@pytest.fixture(scope="module")
def results():
    return json.loads(page.RESULTS.read_text(encoding="utf-8"))


def test_the_page_is_made_of_the_results(results):
    assert page.PAGE.read_text(encoding="utf-8") == page.text(results), "run `make test-operators`"


def test_the_results_add_up(results):
    listed = [verdict for verdict, _ in results["others"].values()]
    counted = {verdict: listed.count(verdict) for verdict in page.VERDICTS if verdict in listed}
    assert {verdict: number for verdict, number in results["count"].items() if verdict != "equal"} == counted
    assert sum(results["count"].values()) == results["total"]
    assert not set(counted) & set(page.WRONG)


def test_a_sample_is_what_the_page_says(fathom, results, tmp_path):
    path = tmp_path / "found.json"
    command = run.words(PYTHON, "--first", FIRST, "--every", EVERY, "--names", ONCE_WRONG, "--json", path)
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(path.read_text(encoding="utf-8"))
    assert len(found["operators"]) > found["total"] // EVERY
    worse = {name: row for name, row in found["operators"].items() if not is_as_said(name, row[0], results)}
    assert not worse, "mend it, or run `make test-operators`"
    if found["torch"] == results["torch"]:
        assert found["total"] == results["total"]


def is_as_said(name, verdict, results):
    """Known, or listed as what it is; operators of another torch than the page's may not be compared."""
    return verdict in ("equal", results["others"].get(name, ["equal"])[0], "not compared")
