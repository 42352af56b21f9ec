"""DeepSpeed's ZeRO as a rank of 4; needs the environment of the benchmarks, which has DeepSpeed."""

import math

import pytest
from conftest import ROOT, SCRIPTS, missing
from test_ranks import BLOCKS, FLAGS, areas, block_shapes, categories

PYTHON = ROOT / ".venvs" / "peers" / "bin" / "python"
RANKS = 4
ELEMENTS = BLOCKS * sum(math.prod(shape) for shape in block_shapes())


@pytest.fixture(scope="module")
def zero(fathom):
    """A stage's report."""
    if not PYTHON.exists():
        missing(PYTHON, "run `make .venvs/peers/peers.stamp`")

    def run(*words):
        report, done = fathom(
            PYTHON, SCRIPTS / "ranks_deepspeed.py", *words, flags=(*FLAGS, "--world-size", RANKS), timeout=120
        )
        assert done.returncode == 0, done.stdout + done.stderr
        assert report["steps"] == 3
        return report

    return run


def near(found, expected):
    """To partitions' padding."""
    return expected <= found <= 1.01 * expected


def test_stage_1_keeps_a_rank_s_part_of_the_state(zero):
    report = zero("1")
    held = categories(report)
    assert near(held["weights"], 2 * ELEMENTS + 4 * ELEMENTS // RANKS), "all in bfloat16, a part in float32"
    assert near(areas(report)["gradient buckets (DeepSpeed)"]["bytes"], 2 * 500_000_000), "DeepSpeed's `reduce_bucket_size`"
    assert near(held["optimizer"], 2 * 4 * ELEMENTS // RANKS), "two moments in float32"


@pytest.mark.matrix
def test_stage_3_keeps_a_rank_s_part_of_the_weights_too(zero):
    report = zero("3")
    held = categories(report)
    assert near(held["optimizer"], 2 * 4 * ELEMENTS // RANKS)
    assert held["weights"] < 2 * ELEMENTS
    assert "gathered weights (DeepSpeed)" in areas(report)


@pytest.mark.matrix
def test_offloaded_state_is_not_on_the_card(zero):
    report = zero("2", "offload")
    assert categories(report)["optimizer"] == 0
