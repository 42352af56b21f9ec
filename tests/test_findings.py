"""What is said of ordinary training scripts, reviewed line by line in tests/golden/findings.txt: nobody is accused falsely.

Refreshed with UPDATE_GOLDEN=1. The runs are those of test_scripts.py. And of the case studies: the first finding is the
true cause, whatever their documents blamed.
"""

import os

import pytest
from conftest import ROOT, sampled
from test_cases import QUICK
from test_scripts import EACH

IS_WARM = True

GOLDEN = ROOT / "tests" / "golden" / "findings.txt"
GIB, MIB = 2**30, 2**20

# Of each case a run, the first finding and words of its title, and what the document blamed: it is no tenth of the first.
CAUSES = {
    "uni3d-dp3/stated": ("feature-maps", "encoder.cloud.points.group_encoder", "attention-matrices"),
    "stdiff/document": ("feature-maps", "feature maps at 64 × 2048 in unet.up", "model-copies"),
    "bev-graph/before": ("unfold", "windows are written out by im2col", "attention-matrices"),
    "dit3d/s_2_full": ("activations", "of 16 × 1024 rows in the 12 blocks of backbone.blocks", "unused-parameters"),
    "avatar/half_batch": ("feature-maps", "feature maps at 64 × 64", "attention-matrices"),
}


def size(number):
    return f"{number / GIB:.2f} GiB" if number >= GIB else f"{number / MIB:.1f} MiB"


def rows(report):
    """One line for each finding: what is only remarked has a dot."""
    found = report["findings"]
    return [f"{'+' if row['counted'] else '.'} {row['id']}: {size(row['bytes'])}, {row['title']}" for row in found]


def read():
    """Script -> its lines."""
    sections = GOLDEN.read_text(encoding="utf-8").split("\n\n") if GOLDEN.exists() else []
    return {lines[0]: lines[1:] for lines in (section.strip().splitlines() for section in sections) if lines}


@pytest.mark.parametrize("name", EACH)
def test_findings_of_ordinary_scripts(shared, name):
    report, _ = shared("script", name)
    now, golden = rows(report), read()
    if os.environ.get("UPDATE_GOLDEN") == "1":
        golden[name] = now
        sections = ["\n".join([script, *lines]) for script, lines in sorted(golden.items())]
        GOLDEN.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
        return
    assert now == golden.get(name), f"{name}: intended? then look at each line, and run with UPDATE_GOLDEN=1"


@pytest.mark.parametrize("name", EACH)
def test_findings_explain_the_peak_once(shared, name):
    report, _ = shared("script", name)
    counted = sum(row["bytes"] for row in report["findings"] if row["counted"])
    assert 0.9 * report["peak"]["allocated_bytes"] <= counted <= report["peak"]["allocated_bytes"]


@pytest.mark.parametrize("path", sampled(CAUSES, QUICK))
def test_the_first_finding_of_a_case_is_its_cause(shared, path):
    report, done = shared("case", path)
    assert report, done.stderr
    wanted, words, blamed = CAUSES[path]
    first = report["findings"][0]
    assert (first["id"], words in first["title"]) == (wanted, True), first
    assert sum(row["bytes"] for row in report["findings"] if row["id"] == blamed) < first["bytes"] / 10
    refused = report["out_of_memory"] or {"tried_bytes": 0}
    whole = report["peak"]["allocated_bytes"] + refused["tried_bytes"]
    counted = sum(row["bytes"] for row in report["findings"] if row["counted"])
    assert 0.9 * whole <= counted <= whole


@pytest.mark.matrix
def test_parameters_are_not_what_fills_the_card(shared):
    report, _ = shared("case", "dit3d/s_2_full")
    first, state = (next(row for row in report["findings"] if row["id"] == name) for name in ("activations", "model-state"))
    assert state["bytes"] < first["bytes"] / 5


HALF = """
import torch
layers = [part for _ in range(8) for part in (torch.nn.Linear(512, 512), torch.nn.GELU())]
model = torch.nn.Sequential(*layers, NORM).cuda().to(DTYPE)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model(torch.randn(16384, 512, device="cuda", dtype=DTYPE)).sum().backward()
optimizer.step()
"""


@pytest.mark.parametrize(
    "dtype, norm, has_amp, label",
    [
        ("torch.bfloat16", "torch.nn.GELU()", False, "numerically equal"),
        ("torch.float32", "torch.nn.BatchNorm1d(512)", True, "changes batch statistics"),
    ],
)
def test_remedies_of_activations_are_for_this_model(fathom, dtype, norm, has_amp, label):
    report, done = fathom.code(HALF.replace("NORM", norm).replace("DTYPE", dtype), gpu="rtx3090")
    assert done.returncode == 0, done.stderr
    (finding,) = [each for each in report["findings"] if each["id"] == "activations"]
    remedies = {each["id"]: each["label"] for each in finding["remedies"]}
    assert ("amp-bf16" in remedies) == has_amp
    assert remedies["accumulate"].replace("_", " ") == label
