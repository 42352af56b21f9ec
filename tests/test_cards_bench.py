"""bench/cards.py: its arithmetic on rows that are made up, its results, and that one process for many rows is as good as one each."""

import csv
import json
import sys

import pytest
from conftest import ROOT, missing

sys.path.insert(0, str(ROOT / "bench"))

import cards_tables as tables

MIB = 1 << 20
PUBLISHED = ROOT / "bench" / "data" / "published"


def operator(published, provider="torch", kernel="softmax"):
    return {"kernel": kernel, "provider": provider, "gpu": "rtx3090", "x_value": "1", "peak_mb": str(published)}


def found(operators=(), mlps=((1429 + 22, 22), (1429 + 42, 42))):
    rows = [{"measured_mib": str(measured)} for measured, _ in mlps]
    peaks = [{"reserved": reserved * MIB} for _, reserved in mlps]
    report = {"gpu": {"context_bytes": 418 * MIB}, "need": {"bytes": 418 * MIB, "error_bytes": 1011 * MIB}}
    return tables.Found(list(operators), [rows, peaks, report], [], [])


def test_an_operator_that_differs_is_named():
    assert tables.broken_bounds(found([(operator(8.0), 8.009)])) == []
    assert tables.broken_bounds(found([(operator(8.0), 8.02)])) == ["softmax of torch at 1: 8.02 MB, published 8.0"]
    assert tables.broken_bounds(found([(operator(8.0), None)])) == [], "a row that was not run"
    assert tables.of_operators(found([(operator(8.0), None)])).rows[0][3:6] == [1, 0, 0]
    assert tables.broken_bounds(found([(operator(8.0, "liger", "sparsemax"), 9.0)])) == [], "it has a reason"


def test_the_machines_constant_comes_from_a_row_that_is_not_counted():
    seen = tables.mlps(found())
    assert (seen.constant, seen.measured, seen.calibrated) == (1429, [1471], [1471])
    assert seen.is_held(0) and seen.unsure == 1011
    far = found(mlps=[(1451, 22), (1475, 42)])
    assert tables.broken_bounds(far)[0] == "MLPs: only 0 of 1 are within 2 MiB"
    outside = found(mlps=[(1451, 22), (1474 + 30, 42)])
    assert tables.broken_bounds(outside)[-1] == "the margin holds in 0 of 1 rows"


def test_results_keep_the_bounds():
    result = json.loads((ROOT / "bench" / "results" / "cards.json").read_text())
    operators, whole, bert = result["tables"]
    assert all(row[5] == row[3] or row[-1] for row in operators["rows"][:-1]), "a row that differs has a reason"
    assert operators["rows"][-1][3:6] == [114, 108, 96]
    columns = list(whole["columns"])
    for row in whole["rows"]:
        assert row[columns.index("median")] <= tables.MEDIAN
    held, rows = (sum(row[columns.index(name)] for row in whole["rows"]) for name in ("margin holds", "rows"))
    assert tables.HELD * rows <= held
    assert all(abs(row[2]) < 0.01 or row[-1] for row in bert["rows"])


def test_one_process_for_many_rows_is_one_for_each(fathom, tmp_path):
    """The reserved peak of an MLP after another, and by itself."""
    python = ROOT / ".venvs" / "accuracy" / "bin" / "python"
    if not python.exists():
        missing(python, "make .venvs/accuracy/accuracy.stamp")
    with open(PUBLISHED / "mlp-a100.csv", newline="", encoding="utf-8") as file:
        rows = sorted(csv.DictReader(file), key=lambda row: int(row["measured_mib"]))
    chosen = [rows[-1], rows[0], rows[len(rows) // 2]]

    def reserved(rows):
        asked, peaks = tmp_path / "rows.json", tmp_path / "peaks.json"
        asked.write_text(json.dumps(rows))
        flags = ("--gpu", "a100-40g", "--steps", "0", "--record", "off", "--values", "off")
        _, done = fathom(python, ROOT / "bench" / "real_cards" / "mlps.py", asked, peaks, flags=flags)
        assert done.returncode == 0, done.stdout + done.stderr
        return json.loads(peaks.read_text())

    together = reserved(chosen)
    assert [each["parameters"] for each in together] == [int(row["parameters"]) for row in chosen]
    assert together[1:] == [reserved([row])[0] for row in chosen[1:]]
    constants = [int(row["measured_mib"]) - each["reserved"] / MIB for row, each in zip(chosen, together, strict=True)]
    assert constants == pytest.approx([1429] * 3, abs=2)
