"""The case studies stdiff, bev-graph and avatar: exact parameter counts, real training on the CPU.

Runs on the phantom are in test_cases.py. torch needs the phantom even to be imported, so that models are built and
trained by `fathom run`, on the meta device and on the CPU. The three have modules of the same names, so each has its
own process.
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

CASES = ("stdiff", "bev-graph", "avatar")
# Nothing here is about memory.
UNRECORDED = ("--steps", "0", "--record", "off")

# Counts on the meta device, and whether each part computes what it should on the CPU.
STDIFF = """
import copy
from blocks import Attention
from model import Plan, STDiff
from motion import MotionSde
from train import build_model

wide = [
    "STDiff.Diffusion.unet_config.block_out_channels=[128,256,512,768,1024]",
    "STDiff.Diffusion.unet_config.attention_head_dim=[null,32,64,192,256]",
]
with torch.device("meta"):
    model = STDiff(load(f"{case}/document.yaml").STDiff, True)
    committed = STDiff(load(f"{case}/document.yaml", wide).STDiff, True)
found["motion encoder"], found["sde"], found["gru"] = map(count, (model.motion_encoder, model.sde, model.gru))
found["unet"], found["all"], found["committed"] = count(model.unet), count(model), count(committed)

# The adjoint against autograd through every step, with noise of the same seeds.
torch.manual_seed(0)
sde = MotionSde(4, 1, 0.02)
for parameter in sde.parameters():
    torch.nn.init.normal_(parameter, std=0.1)
state = torch.randn(1, 4, 5, 6, requires_grad=True)

def through_steps(state):
    from motion import noise_of
    for number, dt in enumerate(sde.steps(0, 1)):
        state = sde.step(state, dt, noise_of(seed, number, dt, state))
    return state

torch.manual_seed(1)
seed = int(torch.randint(2**31, ()))
torch.manual_seed(1)
by_adjoint = sde(state, [0, 1])[-1]
direct = through_steps(state)
found["sde forward"] = float((by_adjoint - direct).abs().max().detach())
inputs = [state, *sde.parameters()]
both = [torch.cat([g.flatten() for g in torch.autograd.grad(x.square().sum(), inputs)]) for x in (by_adjoint, direct)]
found["sde gradient"] = float((both[0] - both[1]).norm() / both[1].norm())

attention = Attention(16, 8, Plan(1, 4, 4, 4, True))
x = torch.randn(2, 16, 3, 5)
fused = attention(x)
attention.fused = False
found["naive attention"] = float((attention(x) - fused).abs().max().detach())

# Checkpointing changes nothing but memory.
model = build_model(load(f"{case}/small.yaml"), torch.device("cpu"))
again = copy.deepcopy(model)
found["reached"] = [again.unet.recompute(False), again.unet.recompute(True)]
inputs = torch.randn(2, 2, 16, 32), torch.arange(2), torch.randn(2, 16, 4, 8)
for unet in (model.unet, again.unet):
    unet(*inputs).square().sum().backward()
pairs = zip(model.unet.parameters(), again.unet.parameters())
found["recomputed"] = max(float((a.grad - b.grad).abs().max()) for a, b in pairs)
"""

BEV = """
from graph import DepthwiseGate, LocalGraphAttention
from model import BevDetector

for name in ("lidar", "camera", "conv-graph", "before", "after"):
    with torch.device("meta"):
        found[name] = count(BevDetector(load(f"{case}/{name}.yaml").model))

# Attention by unfold against its definition, at every cell.
torch.manual_seed(0)
layer = LocalGraphAttention(8, 3, 2)
torch.nn.init.normal_(layer.place)
x = torch.randn(1, 8, 4, 5)
q, k, v = (t[0].unflatten(0, (2, 4)) for t in layer.qkv(x).chunk(3, dim=1))
k, v = (torch.nn.functional.pad(t, [1] * 4) for t in (k, v))
mixed = torch.empty(2, 4, 4, 5)
for row in range(4):
    for column in range(5):
        near_k, near_v = (t[:, :, row : row + 3, column : column + 3].flatten(2) for t in (k, v))
        logits = (q[:, :, row, column, None] * near_k).sum(1) / 2 + layer.place
        mixed[:, :, row, column] = (logits.softmax(-1)[:, None] * near_v).sum(-1)
found["unfold"] = float((layer(x) - layer.out(mixed.flatten(0, 1)[None])).abs().max().detach())

# The replacement looks at its own cell's gate only: it is another function.
gate = DepthwiseGate(8, 3, 2)
gate.qkv, gate.out = layer.qkv, layer.out
found["depthwise"] = float((gate(x) - layer(x)).abs().max().detach())
"""

AVATAR = """
from unet import ContextUnet

with torch.device("meta"):
    model = ContextUnet(load(f"{case}/document.yaml").model)
    shapes = []
    for part in (model.init, model.down1, model.down2, model.down3):
        part.register_forward_hook(lambda module, inputs, output: shapes.append(list(output.shape)))
    inputs = [torch.empty(128, *shape) for shape in ((3, 64, 64), (217,), (), (1,))]
    found["out"] = list(model(*inputs).shape)
found["all"], found["chain"] = count(model), shapes
"""

PROGRAM = """
import json, sys
case = "examples/CASE"
sys.path[:0] = ["examples", case]
import torch
from common.config import load

def count(module):
    return sum(parameter.numel() for parameter in module.parameters())

found = {}
"""


def learnt(fathom, case, code):
    """What a piece of code found out about the models of a case."""
    program = PROGRAM.replace("CASE", case) + code + "\nprint('found', json.dumps(found))"
    _, done = fathom.code(program, flags=UNRECORDED)
    found = re.search("^found (.*)", done.stdout, re.M)
    assert found, done.stdout + done.stderr
    return json.loads(found[1])


def example(fathom, case, config, *overrides, gpu=None, flags=(), **options):
    folder = EXAMPLES / case
    command = (PYTHON, folder / "train.py", "--config", folder / f"{config}.yaml", *overrides)
    return fathom(*command, flags=(*(("--gpu", gpu) if gpu else ()), *flags), **options)


def mean(values):
    return sum(values) / len(values)


# -- the models ---------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def stdiff(fathom):
    return learnt(fathom, "stdiff", STDIFF)


@pytest.fixture(scope="module")
def bev(fathom):
    return learnt(fathom, "bev-graph", BEV)


@pytest.fixture(scope="module")
def avatar(fathom):
    return learnt(fathom, "avatar", AVATAR)


def test_stdiff_has_as_many_parameters_as_its_users_printed(stdiff):
    parts = {"motion encoder": 1_812_480, "sde": 4_720_640, "gru": 3_539_712, "unet": 194_150_465}
    assert {name: stdiff[name] for name in parts} == parts
    assert (stdiff["all"], stdiff["committed"]) == (204_223_297, 532_990_017)


def test_the_detector_has_as_many_parameters_as_its_users_printed(bev):
    counts = {"lidar": 3_518_278, "camera": 25_603_014, "conv-graph": 25_898_438}
    assert {name: bev[name] for name in counts} == counts
    # The document says 30.25 million; the module before the fix was never published.
    assert abs(bev["before"] / 30.25e6 - 1) < 0.002
    assert (bev["before"], bev["after"]) == (30_291_730, 30_103_750)


def test_the_avatar_model_comes_near_the_number_of_the_document(avatar):
    assert avatar["all"] == 76_520_963
    assert abs(avatar["all"] / 76_464_439 - 1) < 0.00075
    assert avatar["chain"] == [[128, 128, 64, 64], [128, 256, 32, 32], [128, 512, 16, 16], [128, 1024, 8, 8]]
    assert avatar["out"] == [128, 3, 64, 64]


def test_the_adjoint_of_the_sde_gives_the_gradient_of_its_steps(stdiff):
    assert stdiff["sde forward"] < 1e-5
    assert stdiff["sde gradient"] < 0.002


def test_naive_and_fused_attention_and_checkpointing_compute_the_same(stdiff):
    assert stdiff["naive attention"] < 1e-5 and stdiff["recomputed"] < 1e-4
    # The small U-Net has two levels each way; the switch of the users reaches one of each.
    assert stdiff["reached"] == [[2, 4], [4, 4]]


def test_attention_by_unfold_is_attention_and_its_replacement_is_not(bev):
    assert bev["unfold"] < 1e-5 < 1e-2 < bev["depthwise"]


@pytest.mark.parametrize("case", sampled(CASES, ["avatar"]))
def test_a_small_version_learns_on_the_cpu(fathom, case):
    report, done = example(fathom, case, "small", "--device", "cpu", flags=UNRECORDED)
    assert done.returncode == 0, done.stdout + done.stderr
    losses = [float(loss) for loss in re.findall(r"loss (\S+)", done.stdout)]
    assert len(losses) >= 16 and mean(losses[-5:]) < 0.8 * mean(losses[:5]), losses


# -- configurations -----------------------------------------------------------------------------------


@pytest.mark.parametrize("case", CASES)
def test_every_configuration_loads_and_an_unknown_key_is_refused(case):
    paths = sorted((EXAMPLES / case).glob("*.yaml"))
    assert len(paths) >= 4 and all(load(path).device in ("cuda", "cpu") for path in paths)
    with pytest.raises(ConfigError, match="unknown key `seeed`"):
        load(paths[0], ["seeed=1"])


def test_an_unknown_key_on_the_command_line_ends_the_script_with_a_hint(fathom):
    _, done = example(fathom, "avatar", "document", "training.batchsize=2", gpu="a10g")
    assert done.returncode == 3 and "did you mean `training.batch_size`?" in done.stderr
