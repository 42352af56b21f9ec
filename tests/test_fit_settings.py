"""Settings that a script has already are taken before anything is written into it, and say what they do only if it is seen."""

import json

import pytest
from conftest import PYTHON
from test_fit_patches import ids
from test_fit_patches import patched as patched  # the fixture

IS_WARM = True

SCRIPT = '''import argparse
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.inner(x)


class Net(nn.Module):
    def __init__(self, width, depth, use_recompute):
        super().__init__()
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.use_recompute = use_recompute
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if self.use_recompute else block(x)
        return self.head(x)


def train(batch_size, grad_ckpt, amp, accum_iter):
    net = Net(512, 8, grad_ckpt).cuda()
    optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
    data = TensorDataset(torch.randn(16384, 512), torch.randint(10, (16384,)))
    for index, (x, y) in enumerate(DataLoader(data, batch_size=batch_size)):
        with torch.autocast("cuda", torch.bfloat16, enabled=amp):
            loss = F.cross_entropy(net(x.cuda()), y.cuda()) / accum_iter
        loss.backward()
        if (index + 1) % accum_iter == 0:
            optimizer.step()
            optimizer.zero_grad()
'''

FLAGS = (
    SCRIPT
    + '''

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8192)
parser.add_argument("--grad-ckpt", action="store_true")
parser.add_argument("--amp", action="store_true")
parser.add_argument("--accum-iter", type=int, default=1)
options = parser.parse_args()
train(options.batch_size, options.grad_ckpt, options.amp, options.accum_iter)
'''
)


def own(plan):
    return [lever["set"] for lever in plan["levers"] if lever["id"] == "own-setting"]


def test_a_flag_for_checkpoints(patched):
    plan, done, _ = patched(FLAGS, "1300MiB", "own-setting,checkpoint,accumulate")
    assert own(plan) == ["--grad-ckpt"] and len(plan["levers"]) == 1 and plan["label"] == "exact"
    assert "--grad-ckpt   # behind the command" in plan["patch"] and "--- a/" not in plan["patch"], done.stdout


@pytest.mark.matrix
def test_flags_for_smaller_batches(patched):
    text = FLAGS.replace("--grad-ckpt", "--g").replace("options.grad_ckpt", "options.g")
    plan, _, _ = patched(text, "1300MiB", "own-setting,accumulate", "--batch-size", "8192")
    (written,) = own(plan)
    assert written in ("--accum-iter 2 --batch-size 4096", "--accum-iter 4 --batch-size 2048"), written
    assert plan["label"] == "numerically equal"


@pytest.mark.matrix
def test_a_flag_that_does_nothing_is_no_plan(fathom, tmp_path):
    text = FLAGS.replace("--grad-ckpt", "--g").replace("options.grad_ckpt", "options.g")
    (tmp_path / "train.py").write_text(text.replace("options.amp,", "False,"))
    flags = ("--memory", "1300MiB", "--try", "own-setting", "--json", "fit.json")
    fathom.command("fit", *flags, "--", PYTHON, "train.py", cwd=tmp_path, timeout=240)
    answer = json.loads((tmp_path / "fit.json").read_text())
    (refused,) = [row for row in answer["not_applicable"] if row["lever"] == "--amp"]
    assert "nothing was seen" in refused["reason"] and not any("--amp" in own(plan) for plan in answer["plans"])


def test_a_key_of_a_yaml_file(patched):
    text = SCRIPT + '''

import yaml
with open("config.yaml") as file:
    options = yaml.safe_load(file)["train"]
train(options["batch_size"], False, options["amp"], 1)
'''
    config = "train:\n  batch_size: 8192  # as it was\n  amp: false\n"
    plan, _, _ = patched(text, "1600MiB", "own-setting,amp-bf16", files={"config.yaml": config})
    assert own(plan) == ["config.yaml: train.amp: true"] and plan["label"] == "changes numerics"
    assert "-  amp: false\n+  amp: true\n" in plan["patch"]


@pytest.mark.matrix
def test_a_field_of_a_data_class(patched):
    text = SCRIPT + '''

from dataclasses import dataclass


@dataclass
class Options:
    batch_size: int = 4 * 2048
    use_checkpoint: bool = False


options = Options()
train(options.batch_size, options.use_checkpoint, False, 1)
'''
    plan, _, _ = patched(text, "1300MiB", "own-setting,checkpoint,accumulate")
    assert own(plan) == ["train.py: use_checkpoint = True"]
    assert "-    use_checkpoint: bool = False\n+    use_checkpoint: bool = True\n" in plan["patch"]


STATE = '''import torch
from torch import nn

net = nn.Sequential(*(nn.Linear(1024, 1024) for _ in range(96))).cuda()
optimizer = torch.optim.AdamW(net.parameters(), lr=1e-3)
while True:  # as a training that is far longer than a trial
    loss = net(torch.randn(4, 1024, device="cuda")).sum()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
'''


def test_state_that_is_too_much_asks_for_no_smaller_batch(fathom, tmp_path):
    """1,536 MiB of weights, gradients and Adam's moments."""
    (tmp_path / "train.py").write_text(STATE)

    def fit(*flags):
        flags = ("--memory", "1900MiB", "--json", "fit.json", *flags)
        done = fathom.command("fit", *flags, "--", PYTHON, "train.py", cwd=tmp_path, timeout=240)
        return json.loads((tmp_path / "fit.json").read_text()), done

    answer, done = fit("--try", "no-foreach,accumulate,8bit-optimizer,freeze")
    assert done.returncode == 1 and answer["chosen"] is None, done.stdout
    proposed = answer["plans"][answer["proposed"]]
    assert "8bit-optimizer" in ids(proposed) and proposed["label"] == "changes training"
    assert "1.50 GiB by themselves" in done.stdout and "`--allow training`" in done.stdout and "smaller batch, model" not in done.stdout
    answer, done = fit("--try", "no-foreach,fsdp")
    shards = answer["plans"][answer["proposed"]]
    assert done.returncode == 1 and answer["chosen"] is None and ids(shards) == ["fsdp"], done.stdout
    assert shards["peak_allocated_bytes"] < 1536 << 20 and f"FSDP on {shards['levers'][0]['gpus']} GPUs" in done.stdout
    answer, done = fit("--try", "no-foreach,8bit-optimizer,freeze", "--allow", "training")
    plan = answer["plans"][answer["chosen"]]
    assert done.returncode == 0 and "8bit-optimizer" in ids(plan) and "freeze" not in ids(plan)
    assert "is not installed" in done.stdout
    answer, done = fit("--try", "no-foreach,offload-optimizer")
    plan = answer["plans"][answer["chosen"]]
    assert ids(plan)[-1] == "offload-optimizer" and plan["label"] == "numerically equal" and plan["cost"]["flops_ratio"] > 1
