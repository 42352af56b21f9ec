"""`fathom run --gpu A,B,…`: one table, and each row is what a run on that card alone gives."""

import json

import pytest
from conftest import PYTHON, SCRIPTS, sampled

IS_WARM = True

NAMES = ["resnet_flags", "amp_transformer", "lstm"]
CARDS = ["gtx1080", "rtx3090", "t4", "h100-sxm"]


@pytest.mark.parametrize("name", sampled(NAMES, NAMES[:1]))
def test_a_table_of_cards_equals_a_run_on_each(fathom, tmp_path, name):
    path, words = tmp_path / "cards.json", (PYTHON, SCRIPTS / f"{name}.py")
    done = fathom.command("run", "--gpu", ",".join(CARDS), "--json", path, "--", *words, timeout=300)
    rows = json.loads(path.read_text())["rows"]
    assert len(rows) == len(CARDS), done.stderr
    for card, row in zip(CARDS, rows, strict=True):
        alone, _ = fathom(*words, flags=("--gpu", card))
        assert (row["gpu"], row["verdict"], row["headline"]) == (alone["gpu"]["name"], alone["verdict"], alone["headline"])
        assert (row["allocated_bytes"], row["device_bytes"]) == tuple(alone["peak"][f"{kind}_bytes"] for kind in ("allocated", "device"))
        assert row["fits"] == (alone["gpu"]["has_kernels"] and alone["verdict"] == "fits")
    # A card without kernels in this torch is no card that fits.
    assert rows[0]["has_kernels"] is False and not rows[0]["fits"] and done.returncode == 1


LATE = """
import torch
from torch.utils.data import DataLoader, TensorDataset
model = torch.nn.Linear(512, 512).cuda()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    for (rows,) in DataLoader(TensorDataset(torch.zeros(6400, 512)), batch_size=64):
        model(rows.cuda()).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
    model.eval()
    with torch.no_grad():
        model(torch.zeros(4 << 20, 512, device="cuda"))
    model.train()
"""


def test_an_evaluation_counts_on_each_card(fathom, tmp_path):
    """Its 16 GiB come after the first steps."""
    path, script, on = tmp_path / "cards.json", tmp_path / "train.py", {"FATHOM_WHOLE_RUN": "on"}
    script.write_text(LATE)
    done = fathom.command("run", "--gpu", "t4,rtx3090", "--json", path, "--", PYTHON, script, env=on, timeout=300)
    rows = json.loads(path.read_text())["rows"]
    for card, row in zip(("t4", "rtx3090"), rows, strict=True):
        alone, _ = fathom(PYTHON, script, flags=("--gpu", card), env=on)
        assert (row["verdict"], row["headline"]) == (alone["verdict"], alone["headline"]), done.stderr
    assert [row["verdict"] for row in rows] == ["does_not_fit", "fits"] and done.returncode == 1
    done = fathom.command("run", "--gpu", "t4,rtx3090", "--", PYTHON, script, env=on, timeout=300)
    assert "ran out in evaluation, after step" in done.stdout and "whole    shortened training" in done.stdout, done.stdout


def test_cards_as_text_and_what_goes_with_one_card_alone(fathom):
    words = ("--", PYTHON, "-c", "import torch; torch.empty(20 << 30, dtype=torch.uint8, device='cuda')")
    done = fathom.command("run", "--gpus", "t4,rtx3090", *words)
    lines = done.stdout.splitlines()
    assert lines[0] == "FITS 1 OF 2 GPUs; the smallest is rtx3090 (23.67 GiB)" and done.returncode == 1
    assert "DOES NOT FIT" in lines[2] and lines[2].startswith("t4") and "FITS" in lines[3]
    for flag in (("--memory", "8GiB"), ("--page", "x.html"), ("--world-size", "2")):
        done = fathom.command("run", "--gpu", "t4,rtx3090", *flag, *words)
        assert done.returncode == 2 and f"`{flag[0]}` with several GPUs" in done.stderr and "hint: " in done.stderr
    assert "unknown GPU `rtx3091`" in fathom.command("run", "--gpu", "t4,rtx3091", *words).stderr


def test_cards_near_the_need_are_run(fathom):
    words = ("-c", "import torch; torch.empty(14 << 30, dtype=torch.uint8, device='cuda')")
    report, done = fathom(PYTHON, *words, env={"FATHOM_VERIFY": "on"})
    known = {row["name"]: row["known"] for row in report["fits_on"]}
    assert known["t4"] == "run" and "rtx3060-12g" not in known and known["rtx3090"] == "measured", done.stdout
    assert "the script was run on " in done.stdout


def test_a_card_with_less_room_than_our_error_is_called_tight(fathom):
    words = ("-c", "import torch; torch.empty(14650 << 20, dtype=torch.uint8, device='cuda')")
    report, done = fathom(PYTHON, *words)
    tight = {row["name"]: row["is_tight"] for row in report["fits_on"]}
    assert tight["t4"] and not tight["rtx3090"]
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("fits on"))
    assert "t4 (14.57 GiB, tight)" in line, line
    # That verdict is the one that the card itself gets, and the next command is about a card with room.
    alone, done = fathom(PYTHON, *words, flags=("--gpu", "t4"))
    assert alone["judgement"] == "tight", done.stdout
    assert "--gpu t4" not in report["next"][0] and "--gpu" in report["next"][0]
