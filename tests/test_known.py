"""What a report says about how it is known: cards that a run was not made for, and workspaces by kind."""

from conftest import PYTHON

IS_WARM = True

# Cached memory that PyTorch would give back: 22 GiB are reserved, 13 GiB are enough.
CACHED = """
import torch
first = torch.empty(9 << 30, dtype=torch.uint8, device="cuda")
del first
second = torch.empty(13 << 30, dtype=torch.uint8, device="cuda")
"""

# A convolution whose workspace is part of the peak, and a fused batch norm, whose size nobody gives.
CONVOLUTIONS = """
import torch
from torch import nn
wide = nn.Conv2d(64, 64, 3, padding=1).cuda()
norm = nn.BatchNorm2d(64).cuda()
optimizer = torch.optim.SGD([*wide.parameters(), *norm.parameters()], lr=0.1)
x = torch.randn(16, 64, 56, 56, device="cuda")
small = torch.randn(2, 64, 8, 8, device="cuda").half().to(memory_format=torch.channels_last)
for _ in range(2):
    wide(x).mean().backward()
    norm(small).float().mean().backward()
    optimizer.step()
"""


def test_cards_are_named_only_if_the_run_holds_for_them(fathom):
    report, done = fathom(PYTHON, "-c", CACHED)
    cards = {card["name"]: card["known"] for card in report["fits_on"]}
    assert cards["rtx4080"] == cards["t4"] == "replayed" and cards["a100-40g"] == cards["rtx4090"] == "measured"
    assert "rtx3060-12g" not in cards, "13 GiB do not fit"
    # Their memory would do; torch has no kernels for them.
    assert not {"p100", "p40", "v100-16g", "v100-32g"} & set(cards)
    sizes = [card["memory_bytes"] for card in report["fits_on"]]
    assert sizes == sorted(sizes)
    (line,) = (line for line in done.stdout.splitlines() if line.startswith("fits on"))
    replayed = sum(known == "replayed" for known in cards.values())
    assert line.endswith(f"and {len(cards) - 6} larger; the {replayed} smallest by replay"), line
    for gpu in ("t4", "rtx4080"):
        report, done = fathom.code(CACHED, gpu=gpu)
        assert report["verdict"] == "fits" and report["gpu"]["has_kernels"] is True, done.stdout


def test_workspaces_are_said_by_kind(fathom):
    report, done = fathom(PYTHON, "-c", CONVOLUTIONS)
    kinds = {row["kind"]: row for row in report["workspaces"]}
    convolutions, norm = [kinds["convolution forward"], kinds["convolution backward filter"]], kinds["batch norm"]
    assert [(row["known"], row["calls"]) for row in convolutions] == [("exact", 2)] * 2
    (alive,) = (row for row in convolutions if row["peak_bytes"])
    assert alive["peak_bytes"] == alive["largest_bytes"] > 1 << 20
    assert (norm["known"], norm["calls"], norm["peak_bytes"]) == ("modelled", 4, 0) and norm["largest_bytes"] > 0
    (held,) = (row["bytes"] for row in report["categories"] if row["name"] == "workspace")
    assert sum(row["peak_bytes"] for row in report["workspaces"]) == held
    assert report["software"]["workspaces"] == "mixed" and "workspaces partly exact (cuDNN" in done.stdout
    note = next(note for note in report["notes"] if note.startswith("workspaces of cuDNN"))
    assert "exact for convolution forward" in note and "modelled for batch norm (0 B of the peak" in note
    # cuDNN was asked for one chip alone.
    cards = {card["name"]: card["known"] for card in report["fits_on"]}
    assert cards["a100-80g"] == cards["a100-40g"] == "measured"
    assert {cards[name] for name in ("rtx3090", "h100-80g", "a30")} == {"likely"}
    assert any(line.startswith("likely   rtx") for line in done.stdout.splitlines())


def test_a_card_without_kernels_is_a_warning(fathom):
    report, done = fathom.code(CONVOLUTIONS, gpu="v100-16g")
    assert report["verdict"] == "fits" and report["gpu"]["has_kernels"] is False
    assert report["headline"].endswith("this torch has no kernels for it")
    (warning,) = report["warnings"]
    assert "compute capability 7.0" in warning and "no kernel image is available" in warning
    lines = done.stdout.splitlines()
    at = next(index for index, line in enumerate(lines) if line.startswith("FITS"))
    assert lines[at + 1].startswith("warning  torch")
    assert {row["known"] for row in report["workspaces"]} == {"modelled"}
    assert report["software"]["workspaces"] == "modelled"
