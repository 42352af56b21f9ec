"""bench/litgpt.py: its arithmetic on rows that are made up, and that its results keep the bounds."""

import json
import sys

from conftest import ROOT

sys.path.insert(0, str(ROOT / "bench"))

import litgpt

GB = 10**9


def row(peak_gb, devices="1", model="phi-1_5"):
    return {"model": model, "method": "lora", "micro_batch": "1", "devices": devices, "peak_gb": peak_gb}


def test_a_verdict_that_is_wrong_is_named():
    assert litgpt.broken_bounds([(row("4.82"), 4 * GB, 4 * GB), (row(""), None, None)]) == []
    for published, ours in (("4.82", None), ("", 4 * GB)):
        (broken,) = litgpt.broken_bounds([(row(published), ours, ours)])
        assert broken == "phi-1_5 lora at 1: one runs out of memory, the other does not"


def test_what_is_sharded_must_lie_between():
    inside, below = (row("5.88", "2"), 5 * GB, 6 * GB), (row("5.88", "2"), 5.9 * GB, 6 * GB)
    assert litgpt.broken_bounds([inside]) == []
    assert litgpt.broken_bounds([below]) == ["phi-1_5 lora at 1: 5.88 GB is not in the range"]
    assert litgpt.broken_bounds([(row("", "2"), None, None)]) == []
    assert [line[-1] for line in litgpt.of_sharded([inside, below]).rows] == ["yes", "no"]


def test_a_row_that_is_off_has_a_reason():
    found = [(row("4.82"), 4.82 * GB, 4.82 * GB), (row("21.3", model="Llama-2-7b-hf"), 20.68 * GB, 20.68 * GB)]
    (exact, off), median = litgpt.of_one(found).rows, litgpt.median(found)
    assert exact[-1] == "" and "Llama row" in off[-1] and abs(median - 0.0146) < 0.0001


def test_results_keep_the_bounds():
    result = json.loads((ROOT / "bench" / "results" / "litgpt.json").read_text())
    one, sharded = (table["rows"] for table in result["tables"])
    assert len(one) + len(sharded) == 17 and all(line[-1] == "yes" for line in sharded)
    assert all((line[3] is None) == (line[4] is None) for line in one), "who runs out of memory"
    assert all(line[5] is None or abs(line[5]) < 0.01 or line[-1] for line in one), "a row that differs has a reason"
