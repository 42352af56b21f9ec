"""Each detector: scripts where it must fire, and near misses where it must not (tests/detectors).

All cases are forks of one process, so torch is imported once. What they expect is written beside them.
"""

import json
import re
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import PYTHON, ROOT

CASES = ROOT / "tests" / "detectors"
# Findings that no script on one card can show: crates/diagnose/tests has them.
ELSEWHERE = {"data-parallel"}


def names():
    """Functions with a decorator: the cases can only be imported where torch is."""
    found = []
    for path in sorted(CASES.glob("*.py")):
        lines = path.read_text().splitlines()
        decorated = [n for n, line in enumerate(lines) if line.startswith("@")]
        found += [line.split("(")[0][4:] for n, line in enumerate(lines) if line.startswith("def ") and n - 1 in decorated]
    return found


@pytest.fixture(scope="module")
def cases(fathom, tmp_path_factory):
    """What each case expects, and what `fathom explain` says of its recording."""
    folder, out = tmp_path_factory.mktemp("cases"), tmp_path_factory.mktemp("recordings")
    command = ("run", "--quiet", "--steps", "0", "--gpu", "rtx3090", "--out", out, "--", PYTHON, CASES / "all.py", folder)
    done = fathom.command(*command, timeout=400)
    assert done.returncode == 0, done.stdout + done.stderr

    def explained(path):
        case = json.loads(path.read_text())
        answer = fathom.command("explain", "--json", "-", out / f"recording.{case['pid']}.0.fathom")
        assert answer.returncode == 0, answer.stderr
        return path.stem, {**case, "answer": json.loads(answer.stdout)}

    with ThreadPoolExecutor(2) as pool:
        return dict(pool.map(explained, sorted(folder.glob("*.json"))))


def found(case, wanted):
    return [finding for finding in case["answer"]["findings"] if finding["id"] == wanted]


@pytest.mark.parametrize("name", names())
def test_a_case_shows_what_it_should(cases, name):
    case = cases[name]
    shown = json.dumps(case["answer"]["findings"], indent=1, ensure_ascii=False)
    for expected in case["expected"]:
        findings = found(case, expected["id"])
        if not expected["fires"]:
            assert not findings, shown
            continue
        assert findings, f"{expected['id']} is not found\n{shown}"
        first = findings[0]
        assert expected["says"] in f"{first['title']} {first['explanation']} {first['note']}", shown
        labels = {remedy["id"]: remedy["label"] for remedy in first["remedies"]}
        assert expected["remedies"].items() <= labels.items(), labels
        assert not labels.keys() & set(expected["without"]), labels
        if case["bytes"] is not None:
            assert first["bytes"] == case["bytes"], shown
        if case["lines"]:
            [line] = case["lines"]
            place = (str(Path(case["file"]).relative_to(ROOT)), line)
            assert place in {(row["file"], row["line"]) for row in first["evidence"]}, shown


def test_what_multihead_attention_is_told_is_an_argument_of_its_own(cases):
    [finding] = found(cases["weights_are_wanted"], "attention-matrices")
    assert finding["remedies"][0]["change"] == "need_weights=False where nn.MultiheadAttention is called"


@pytest.mark.parametrize("name", names())
def test_what_is_counted_adds_up(cases, name):
    answer = cases[name]["answer"]
    counted = [finding["bytes"] for finding in answer["findings"] if finding["counted"]]
    allocated, reserved = answer["peak"]["allocated_bytes"], answer["peak"]["reserved_bytes"]
    assert 0.9 * allocated <= sum(counted) <= allocated
    assert counted == sorted(counted, reverse=True)
    for finding in answer["findings"]:
        assert finding["title"] and finding["explanation"] and finding["scales"], finding
        whole = {"allocated": allocated, "reserved": reserved}[finding["of"]]
        assert sum(row["bytes"] for row in finding["evidence"]) <= finding["bytes"] <= whole, finding


def test_every_detector_has_a_case_and_a_near_miss(cases):
    # Of this page a test of Rust says that it is what the table of detectors says.
    page = (ROOT / "docs" / "reference" / "findings.md").read_text(encoding="utf-8").split("| remedy |")[0]
    known = set(re.findall(r"^\| `([a-z0-9-]+)`", page, re.MULTILINE)) - ELSEWHERE
    fired = {row["id"] for case in cases.values() for row in case["expected"] if row["fires"]}
    spared = {row["id"] for case in cases.values() for row in case["expected"] if not row["fires"]}
    assert len(known) > 20 and (known - fired, known - spared) == (set(), set())
