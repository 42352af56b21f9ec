"""The same script, the same answer: with a seed its own, without one still the same in every run."""

import json

import pytest
from conftest import PYTHON, PYTHONS

IS_WARM = True

DRAWS = """
import json, random
import numpy
import torch
length = int(torch.randint(1000, 200000, (1,), device="cuda"))
kept = int((torch.rand(100000, device="cuda") > 0.3).sum())
print(json.dumps([random.random(), numpy.random.rand(), torch.rand(1).item(), hash("text"), length, kept]))
"""
SEEDED = """
import json, random
import numpy
random.seed(5); numpy.random.seed(5)
import torch
print(json.dumps([random.random(), numpy.random.rand()]))
torch.ones(1, device="cuda")
"""


def drawn(fathom, path, python=PYTHON, **more):
    report, done = fathom(python, path, flags=("--steps", "0", "--record", "off"), **more)
    assert done.returncode == 0 and report["decisions"] == [], done.stdout + done.stderr
    return json.loads(done.stdout.splitlines()[0])


@pytest.fixture
def script(tmp_path):
    def write(text):
        path = tmp_path / "draws.py"
        path.write_text(text)
        return path

    return write


def test_without_a_seed_runs_are_the_same(fathom, script):
    path = script(DRAWS)
    first = drawn(fathom, path)
    assert drawn(fathom, path) == first
    assert drawn(fathom, path, env={"FATHOM_SEED": "off"}) != first


def test_a_seed_is_followed(fathom, script):
    one, two, again = (drawn(fathom, script(DRAWS.replace("length =", f"torch.manual_seed({seed})\nlength ="))) for seed in (1, 2, 1))
    assert one == again and one[2:3] + one[4:] != two[2:3] + two[4:]


def test_a_seed_that_was_set_before_torch_was_there_stays(fathom, script):
    import random

    path = script(SEEDED)
    first = drawn(fathom, path)
    assert first[0] == random.Random(5).random() and drawn(fathom, path) == first


@pytest.mark.torches
@pytest.mark.parametrize("version", [version for version in PYTHONS if PYTHONS[version].exists()][1:])
def test_other_versions_of_torch(fathom, script, version):
    path = script(DRAWS)
    assert drawn(fathom, path, PYTHONS[version]) == drawn(fathom, path, PYTHONS[version])
