"""The case studies uni3d-dp3 and dit3d: exact parameter counts, real training on the CPU.

Runs on the phantom are in test_cases.py. torch needs the phantom even to be imported, so that models are built and
trained by `fathom run`, on the meta device and on the CPU.
"""

import json
import re
import sys

import pytest
from conftest import PYTHON, ROOT, sampled

IS_WARM = True

EXAMPLES = ROOT / "examples"
sys.path.insert(0, str(EXAMPLES))
from common.config import ConfigError, load  # noqa: E402

# Whole policy, and the encoder of point clouds in it.
POLICIES = {
    "pointnet": (255_218_138, 59_072),
    "tiny": (261_609_115, 6_450_049),
    "small": (278_048_347, 22_889_281),
    "base": (344_185_283, 89_026_217),
    "large": (562_574_979, 307_415_913),
    "giant": (1_272_582_723, 1_017_423_657),
}
# Whole model, and the part that is trained when the backbone is frozen.
VIDEO_MODELS = {
    "DiT3D-XS/4": (5_149_473, 1_005_921),
    "DiT3D-Tiny/4": (9_011_425, 1_700_833),
    "DiT3D-S/4": (35_914_593, 3_631_329),
    "DiT3D-S/2": (36_195_681, 3_631_329),
    "DiT3D-S/2 sigma": (36_276_474, 3_712_122),
    "DiT3D-B/2": (142_872_801, 13_748_193),
    "DiT3D-L/2": (479_825_377, 24_097_249),
    "DiT3D-XL/2": (702_516_321, 30_353_121),
}
TEXT_ENCODER = 66_362_880
# Nothing here is about memory.
UNRECORDED = ("--steps", "0", "--record", "off")

COUNT = """
import json, sys
sys.path[:0] = ["examples", "examples/uni3d-dp3", "examples/dit3d"]
import torch
from common.config import load
from dit3d import Dit3d
from policy import Dp3
from text_encoder import TextEncoder

def count(parameters):
    return sum(parameter.numel() for parameter in parameters)

counts = {}
with torch.device("meta"):
    for name in POLICIES:
        kind = "pointnet" if name == "pointnet" else "uni3d"
        size = "tiny" if name == "pointnet" else name
        keys = [f"policy.pointnet_type={kind}", f"policy.pointcloud_encoder_cfg.uni3d_size={size}"]
        policy = Dp3(load("examples/uni3d-dp3/dp3.yaml", keys))
        counts[name] = count(policy.parameters()), count(policy.encoder.cloud.parameters())
    for name in VIDEO_MODELS:
        model = Dit3d(name.split()[0], (16, 64, 64), learn_sigma=name.endswith("sigma"))
        counts[name] = count(model.parameters()), count(p for p in model.parameters() if p.requires_grad)
    counts["text encoder"] = count(TextEncoder().parameters())
print("counts", json.dumps(counts))
"""


def configs(case):
    return sorted(path.stem for path in (EXAMPLES / case).glob("*.yaml"))


def example(fathom, case, config, *overrides, flags=("--gpu", "rtx3090"), **options):
    folder = EXAMPLES / case
    command = (PYTHON, folder / "train.py", "--config", folder / f"{config}.yaml", *overrides)
    return fathom(*command, flags=flags, **options)


def losses_on_cpu(fathom, case):
    report, done = example(fathom, case, "small", flags=UNRECORDED)
    assert done.returncode == 0, done.stdout + done.stderr
    return [float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)]


def mean(values):
    return sum(values) / len(values)


@pytest.fixture(scope="module")
def counts(fathom):
    names = f"POLICIES, VIDEO_MODELS = {list(POLICIES)}, {list(VIDEO_MODELS)}\n"
    _, done = fathom.code(names + COUNT, flags=UNRECORDED)
    found = re.search("counts (.*)", done.stdout)
    assert found, done.stdout + done.stderr
    return json.loads(found[1])


@pytest.mark.parametrize("name", POLICIES)
def test_the_policies_have_as_many_parameters_as_published(counts, name):
    assert tuple(counts[name]) == POLICIES[name]


@pytest.mark.parametrize("name", VIDEO_MODELS)
def test_the_video_models_have_as_many_parameters_as_published(counts, name):
    assert tuple(counts[name]) == VIDEO_MODELS[name]


def test_the_text_encoder_has_the_size_of_distilbert(counts):
    assert counts["text encoder"] == TEXT_ENCODER


@pytest.mark.parametrize("case", sampled(["uni3d-dp3", "dit3d"], ["uni3d-dp3"]))
def test_a_small_version_learns_on_the_cpu(fathom, case):
    losses = losses_on_cpu(fathom, case)
    assert len(losses) == 30
    assert mean(losses[-8:]) < 0.75 * mean(losses[:8])


@pytest.mark.parametrize("case", ["uni3d-dp3", "dit3d"])
def test_every_configuration_can_be_read(case):
    assert len(configs(case)) >= 8
    for name in configs(case):
        load(EXAMPLES / case / f"{name}.yaml")


def test_overrides_change_known_settings_only():
    path = EXAMPLES / "uni3d-dp3" / "uni3d-128x64.yaml"
    config = load(path, ["optimizer.lr=3e-4", "policy.down_dims=[8, 16]", "training.amp=true"])
    assert (config.optimizer.lr, config.policy.down_dims, config.training.amp) == (3e-4, [8, 16], True)
    with pytest.raises(ConfigError, match="unknown key `optimizer.rate`.*\nhint: did you mean `optimizer.lr`"):
        load(path, ["optimizer.rate=1"])
    with pytest.raises(ConfigError, match="did you mean `policy.pointcloud_encoder_cfg.num_group`"):
        load(path, ["num_group=1"])
    with pytest.raises(ConfigError, match="write `key=value`"):
        load(path, ["amp"])


def test_a_file_may_not_invent_keys(tmp_path):
    (tmp_path / "base.yaml").write_text("a: {b: 1}\n")
    (tmp_path / "more.yaml").write_text("base: base.yaml\na: {c: 2}\n")
    with pytest.raises(ConfigError, match="unknown key `a.c` in `more.yaml`"):
        load(tmp_path / "more.yaml")
