"""`fathom fit` on the case studies: what it advises is what helps there, not what their documents advise."""

import json

import pytest
from conftest import PYTHON

IS_WARM = True

def fit(fathom, folder, case, config, memory, levers):
    path = folder / f"{case}.json"
    script = (f"examples/{case}/train.py", "--config", f"examples/{case}/{config}.yaml")
    flags = ("--memory", memory, "--try", levers, "--steps", "2", "--json", path)
    done = fathom.command("fit", *flags, "--", PYTHON, *script, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    answer = json.loads(path.read_text())
    return answer, answer["plans"][answer["chosen"]]


def checkpoints(plan):
    return [module for lever in plan["levers"] if lever["id"] == "checkpoint" for module in lever["modules"]]


@pytest.mark.matrix
def test_uni3d_is_not_advised_to_checkpoint_its_transformer(fathom, tmp_path):
    """The document's remedy is checkpointing of the ViT; the peak is in the group encoder."""
    answer, plan = fit(fathom, tmp_path, "uni3d-dp3", "uni3d-128x64", "10GB", "checkpoint,accumulate,allocator")
    assert not any("blocks" in module for module in checkpoints(plan)), plan["levers"]
    assert {"id": "accumulate", "parts": 2} in plan["levers"] or {"id": "accumulate", "parts": 4} in plan["levers"]
    # BatchNorm in the group encoder then sees smaller batches.
    assert plan["label"] == "changes batch statistics"
    assert "dataloader.batch_size: 128 → " in plan["patch"]
    assert "group_encoder" in answer["causes"][0]["title"]


@pytest.mark.matrix
def test_stdiff_is_checkpointed_where_its_switch_does_not_reach(fathom, tmp_path):
    """The switch of the script reaches only blocks without attention: the first down and the last up."""
    _, plan = fit(fathom, tmp_path, "stdiff", "document", "32GB", "checkpoint")
    missed = [m for m in checkpoints(plan) if m.startswith("unet.") and not m.startswith(("unet.down.0", "unet.up.4"))]
    assert missed, plan["levers"]
    assert plan["label"] == "exact" and plan["cost"]["flops_ratio"] < 1.34


def test_dit3d_fits_by_attention_alone(fathom, tmp_path):
    """Its own attention asks for weights that nobody reads."""
    answer, plan = fit(fathom, tmp_path, "dit3d", "before", "8GB", "fused-attention,checkpoint")
    assert plan["levers"] == [{"id": "fused-attention"}]
    assert plan["device_bytes"] < answer["baseline"]["device_bytes"] / 6
    assert "need_weights=False" in plan["patch"]
