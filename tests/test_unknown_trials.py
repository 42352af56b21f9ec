"""Trials whose sizes depend on values that nobody knows: no plain `fits` over what was only assumed."""

import json

import pytest
from conftest import PYTHON, sampled
from test_unknown import BRANCH, EXIT, HIDDEN, LINE, MASK, SIZED, TRAINS

IS_WARM = True

# As MASK, with rows to vary: nothing kept needs 4 GiB or so, all of 60,000 rows another 4.5.
SCRIPT = "import os\n" + MASK.replace("60000", "int(os.environ.get('ROWS', 60000))")
PLACE = f"`__getitem__` at train.py:{LINE + 1}"
CONDITION = f"if what {PLACE} gives is as assumed"


@pytest.fixture
def trials(fathom, tmp_path):
    def trials(verb, text, flags):
        (tmp_path / "train.py").write_text(text)
        flags = ("--steps", "0", "--json", tmp_path / "answer.json", *flags)
        done = fathom.command(verb, *flags, "--", PYTHON, "train.py", cwd=tmp_path, timeout=300)
        assert done.returncode == 0, done.stderr
        return json.loads((tmp_path / "answer.json").read_text()), done.stdout

    return trials


def test_a_sweep_tries_the_most_as_well(trials):
    flags = ("--vary", "rows=10,60000", "--set", "rows=ROWS={}", "--memory", "3.5GiB,5GiB,24GiB")
    answer, text = trials("sweep", SCRIPT, flags=flags)
    verdicts = {(point["values"]["rows"], point["gpu"]): point["verdict"] for point in answer["points"]}
    assert verdicts == {
        ("10", "3.50 GiB"): "does_not_fit",
        ("10", "5 GiB"): "fits",
        ("10", "24 GiB"): "fits",
        ("60000", "3.50 GiB"): "does_not_fit",
        ("60000", "5 GiB"): "fits_if",
        ("60000", "24 GiB"): "fits",
    }, text
    most = max(point["device_bytes"] for point in answer["points"])
    assert 8 << 30 < most, "what fits for certain is said with the most that it needs"
    assert "fits if" in text and f"fits {CONDITION}: that is not known" in text and "--assume FILE:LINE=NUMBER" in text
    again, text = trials("sweep", SCRIPT, flags=flags)
    assert again["points"] == answer["points"] and again["trials"]["run"] == 0, text


@pytest.mark.matrix
def test_the_largest_value_says_what_it_rests_on(trials):
    flags = ("--vary", "rows=59999..60000", "--set", "rows=ROWS={}", "--memory", "5GiB")
    answer, text = trials("sweep", SCRIPT, flags=flags)
    (row,) = answer["largest"]
    assert row["is_assumed"] and f", {CONDITION}" in text.splitlines()[0] and text.startswith("LARGEST"), text


def test_a_plan_says_what_it_rests_on(trials):
    answer, text = trials("fit", SCRIPT, flags=("--memory", "5GiB"))
    assert text.startswith(f"FITS IF  what {PLACE} gives is as assumed: "), text
    assert answer["baseline"]["verdict"] == "fits_if" and not answer["baseline"]["fits"]
    answer, text = trials("fit", SCRIPT, flags=("--memory", "24GiB"))
    assert text.startswith("FITS AS IT IS  ") and answer["baseline"]["fits"] and 8 << 30 < answer["baseline"]["device_bytes"]


@pytest.mark.matrix
def test_a_branch_on_a_count_is_never_certain(trials):
    answer, text = trials("fit", BRANCH, flags=("--memory", "24GiB"))
    assert answer["baseline"]["verdict"] == "fits_if" and text.startswith("FITS IF  what `__int__` at train.py:5"), text


def test_what_the_user_says_of_a_line_counts_in_trials(trials):
    flags = ("--memory", "5GiB", "--assume", f"train.py:{LINE + 1}=60000")
    answer, text = trials("sweep", SCRIPT, flags=("--vary", "rows=60000", "--set", "rows=ROWS={}", *flags))
    assert [point["verdict"] for point in answer["points"]] == ["does_not_fit"], text


TRIALS = {
    "exit": (EXIT, "1GiB", "fits_if"),
    "sized": (SIZED, "20GiB", "fits_if"),
    "trains": (TRAINS, "5GiB", "fits"),
    "hidden": (HIDDEN, "4.2GiB", "fits_if"),
}


@pytest.mark.parametrize("name", sampled(TRIALS, ["exit", "trains"]))
def test_trials_go_by_numbers_as_runs_do(trials, name):
    script, memory, expected = TRIALS[name]
    answer, text = trials("fit", script, flags=("--memory", memory))
    start = "FITS IF  what `" if expected == "fits_if" else "FITS AS IT IS  "
    assert answer["baseline"]["verdict"] == expected and text.startswith(start), text
