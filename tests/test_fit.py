"""`fathom fit`: plans that were tried on the user's own script."""

import json

import pytest
from conftest import PYTHON, SCRIPTS

IS_WARM = True

BLOCKS = SCRIPTS / "blocks_flags.py"
MIB = 1 << 20


@pytest.fixture(scope="module")
def fit(fathom, tmp_path_factory):
    """`fathom fit --json FILE FLAGS… -- COMMAND…`: the answer and the finished process."""
    folder = tmp_path_factory.mktemp("fit")

    def run(*words, command):
        path = folder / "fit.json"
        path.unlink(missing_ok=True)
        done = fathom.command("fit", "--json", path, *words, "--", *command, timeout=240)
        return (json.loads(path.read_text()) if path.exists() else None), done

    return run


@pytest.fixture(scope="module")
def answers(fit):
    """The same script with less and less memory."""
    command = (PYTHON, BLOCKS, "--depth", "8")
    sizes = (800, 700, 640)
    levers = ("--try", "checkpoint,no-foreach,zero-grad")
    return {size: fit("--memory", f"{size}MiB", *levers, command=command) for size in sizes}


def test_checkpoints_are_planned_and_measured(answers):
    answer, done = answers[700]
    assert done.returncode == 0, done.stdout + done.stderr
    plan = answer["plans"][answer["chosen"]]
    (checkpoint,) = [lever for lever in plan["levers"] if lever["id"] == "checkpoint"]
    count = len(checkpoint["modules"])
    # Of equal blocks the first ones are the best to take, and no more than are needed.
    assert checkpoint["modules"] == [f"blocks.{index}" for index in range(count)] and 0 < count < 8
    assert plan["label"] == "exact" and plan["verified"] and plan["device_bytes"] <= 700 * MIB
    assert 1 < plan["cost"]["flops_ratio"] < 1.34 and plan["cost"]["known"] == "modelled"
    assert plan["is_diff"] and "+++ b/tests/scripts/blocks_flags.py" in plan["patch"]
    assert f"+    for module in model.blocks[:{count}]:" in plan["patch"]


def test_the_plan_is_what_a_run_with_its_levers_needs(answers, fathom):
    answer, _ = answers[700]
    plan = answer["plans"][answer["chosen"]]
    levers = [{"lever": lever["id"], **{k: v for k, v in lever.items() if k != "id"}} for lever in plan["levers"]]
    env = {"FATHOM_LEVERS": json.dumps(levers)}
    report, _ = fathom(PYTHON, BLOCKS, "--depth", "8", flags=("--memory", "700MiB", "--record", "off"), env=env)
    assert report["verdict"] == "fits"
    assert report["peak"]["reserved_bytes"] == plan["peak_reserved_bytes"]


def test_less_memory_never_means_a_higher_peak(answers):
    peaks = []
    for size in sorted(answers, reverse=True):
        answer, _ = answers[size]
        peaks.append(answer["plans"][answer["chosen"]]["peak_reserved_bytes"])
    assert peaks == sorted(peaks, reverse=True), peaks


def test_what_has_nothing_to_act_on_is_listed_and_never_a_plan(answers):
    answer, done = answers[700]
    (refused,) = [row for row in answer["not_applicable"] if row["lever"] == "zero-grad"]
    assert "already" in refused["reason"] and "zero-grad" in done.stdout
    assert not any(lever["id"] == "zero-grad" for plan in answer["plans"] for lever in plan["levers"])


def test_nothing_fits(fit):
    answer, done = fit("--memory", "400MiB", "--try", "no-foreach", command=(PYTHON, BLOCKS))
    assert done.returncode == 1 and answer["chosen"] is None
    assert answer["tightest_bytes"] > 400 * MIB
    assert "NO PLAN FITS" in done.stdout and "the card itself runs out of memory with it" in done.stdout


def test_knobs_of_the_script_are_tried(fit):
    command = (PYTHON, BLOCKS, "--batch-size", "16")
    answer, done = fit("--memory", "900MiB", "--try", "no-foreach", "--vary", "batch-size=8,4", command=command)
    assert done.returncode == 0, done.stdout + done.stderr
    plan = answer["plans"][answer["chosen"]]
    assert {"id": "knob", "name": "batch-size", "value": "8"} in plan["levers"]
    assert "--batch-size 8" in plan["patch"]


def test_it_fits_as_it_is(fit):
    answer, done = fit("--gpu", "rtx3090", command=(PYTHON, BLOCKS))
    assert done.returncode == 0 and answer["baseline"]["fits"] and answer["plans"] == []
    assert answer["trials"] == 1 and "FITS AS IT IS" in done.stdout


def test_what_cudnn_takes_without_a_limit_is_no_verdict_on_the_card(fit, fathom):
    """As much work area as there is room for: without a limit it takes more than the whole card has."""
    command = (PYTHON, SCRIPTS / "conv_flags.py", "--batch-size", "128")
    answer, done = fit("--gpu", "rtx2070", command=command)
    report, _ = fathom(*command, flags=("--gpu", "rtx2070", "--record", "off"))
    assert report["verdict"] == "fits", "the script is no longer a case of this"
    assert done.returncode == 0 and answer["baseline"]["fits"], done.stdout
    assert answer["baseline"]["peak_reserved_bytes"] == report["peak"]["reserved_bytes"]


@pytest.mark.parametrize(
    "words, message",
    [
        ((), "no card is named"),
        (("--gpu", "rtx3090", "--try", "magic"), "there is no lever `magic`"),
        (("--gpu", "rtx3090", "--vary", "depth=1..4"), "is a range"),
        (("--gpu", "rtx3090", "--set", "x=--x {}"), "has no values"),
    ],
)
def test_wrong_words_have_a_cure(words, message, fit):
    _, done = fit(*words, command=(PYTHON, BLOCKS, "--depth", "1"))
    assert done.returncode == 2 and message in done.stderr and "hint" in done.stderr
