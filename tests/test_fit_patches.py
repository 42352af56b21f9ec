"""The patch of a plan: applied by `git apply` to a copy and run, it needs what the plan says, to the byte."""

import json
import shutil
import subprocess

import pytest
from conftest import PYTHON, SCRIPTS

IS_WARM = True

LOOP = '''"""A plain loop around a residual network, whose text is written in several ways."""
import argparse
import torch as th, torch.nn as nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.inner = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        return x + self.inner(x)


class Net(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.stages = nn.ModuleDict({"a": nn.Sequential(*(Block(width) for _ in range(depth)))})
        self.head = nn.Linear(width, 10)

    def forward(self, x):
        for stage in self.stages.values():
            x = stage(x)
        return self.head(x)


class Runner:
    def __init__(self, options):
        self.net = Net(512, 8).cuda()  # é
        self.optimizer = th.optim.AdamW(
            self.net.parameters(),
            lr=1e-3, betas=(0.9, 0.95),  # as they say
        )
        data = TensorDataset(th.randn(16384, 512), th.randint(10, (16384,)))
        self.loader = DataLoader(data, batch_size=options.batch_size)

    def train(self):
        for x, y in self.loader:
            x, y = x.cuda(), y.cuda()
            out = self.net(x)
            loss = nn.functional.cross_entropy(out, y)
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8192)
    Runner(parser.parse_args()).train()
'''

LANGUAGE = '''import torch
import torch.nn.functional as F
from torch import nn


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(32000, 128)
        self.layer = nn.TransformerEncoderLayer(128, 4, 256, batch_first=True)
        self.lm_head = nn.Linear(128, 32000, bias=False)

    def forward(self, tokens, targets):
        x = self.layer(self.embed(tokens))
        logits = self.lm_head(x)
        loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.reshape(-1), ignore_index=-1)
        return loss


def main():
    model = Model().cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        tokens = torch.randint(32000, (8, 257), device="cuda")
        model(tokens[:, :-1], tokens[:, 1:]).backward()
        optimizer.step()
        optimizer.zero_grad()


main()
'''


NETWORKS = '''import torch
import torch.nn.functional as F
from torch import nn


class Field(nn.Module):
    def __init__(self, width=256):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(8))

    def forward(self, x):
        for layer in self.layers:
            x = F.relu(layer(x))
        return x


def make():
    nets = {"coarse": Field().cuda(), "fine": Field().cuda()}
    return nets, torch.optim.Adam([p for net in nets.values() for p in net.parameters()], lr=1e-3)


def render(net, x, chunk=8192):
    return torch.cat([net(x[i : i + chunk]) for i in range(0, len(x), chunk)])


nets, optimizer = make()
for _ in range(3):
    x = torch.randn(32768, 256, device="cuda")
    loss = sum(render(each, x).square().mean() for each in nets.values())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
'''


@pytest.fixture(scope="module")
def patched(fathom, tmp_path_factory):
    """`fathom fit` in a folder with the script; then the patch is applied there by git, and the script is run."""

    def fit(text, memory, levers, *words, files=()):
        folder = tmp_path_factory.mktemp("patched")
        for name, content in dict(files).items():
            (folder / name).write_text(content)
        script = folder / "train.py"
        script.write_text(text)
        before = sorted(path.name for path in folder.iterdir())
        flags = ("--memory", memory, "--json", "fit.json", *(("--try", levers, "--headroom", "0") if levers else ()))
        done = fathom.command("fit", *flags, "--", PYTHON, "train.py", *words, cwd=folder, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        assert sorted(path.name for path in folder.iterdir()) == [*sorted(["fit.json", *before])]
        answer = json.loads((folder / "fit.json").read_text())
        plan = answer["plans"][answer["chosen"]]
        assert plan["is_diff"], done.stdout
        assert script.read_text() == text, "nothing is written unasked"
        apply(plan, folder)
        more = added(plan)
        flags = ("--memory", memory, "--record", "off")
        report, run = fathom(PYTHON, "train.py", *words, *more, flags=flags, cwd=folder, env=variables(plan))
        assert report["verdict"] == "fits", run.stdout + run.stderr
        assert report["peak"]["reserved_bytes"] == plan["peak_reserved_bytes"], plan["patch"]
        return plan, done, folder

    return fit


def apply(plan, folder):
    if "--- a/" not in plan["patch"]:
        return  # words of the command alone
    (folder / "a.patch").write_text(plan["patch"][plan["patch"].index("--- a/") :])
    shutil.rmtree(folder / ".git", ignore_errors=True)
    subprocess.run(["git", "apply", "a.patch"], cwd=folder, check=True)


def added(plan):
    """Words that belong behind the command."""
    line = [line for line in plan["patch"].splitlines() if line.endswith("# behind the command")]
    return line[0].partition("   #")[0].split() if line else []


def variables(plan):
    """What belongs into the environment of the command."""
    lines = [line for line in plan["patch"].splitlines() if line.endswith("# in the environment of the command")]
    return dict(line.partition("   #")[0].split("=", 1) for line in lines)


def ids(plan):
    return [lever["id"] for lever in plan["levers"]]


def test_plain_loop(patched):
    """Modules below an attribute, in a dictionary and a list; a text with other characters; a call of several lines."""
    plan, _, _ = patched(LOOP, "1300MiB", "checkpoint,no-foreach")
    assert "checkpoint" in ids(plan)
    assert "self.net.stages['a'][" in plan["patch"]


def test_two_networks_that_a_function_makes(patched):
    """Both are called in chunks, and no variable of a running function holds one from the statement on that makes it."""
    plan, _, _ = patched(NETWORKS, "800MiB", "checkpoint")
    (checkpoint,) = plan["levers"]
    assert checkpoint["modules"] == ["Field", "Field#2"] and plan["label"] == "exact"
    assert "+    @lambda forward: lambda *args, **kwargs: torch.utils.checkpoint.checkpoint(" in plan["patch"]


def test_linear_layer_and_loss(patched):
    plan, _, _ = patched(LANGUAGE, "900MiB", "linear-cross-entropy,chunked-cross-entropy")
    assert ids(plan) == ["linear-cross-entropy"] and plan["label"] == "numerically equal"
    assert "-        logits = self.lm_head(x)" in plan["patch"] and "ignore_index=-1" in plan["patch"]


def test_small_batches_in_a_plain_loop(patched):
    plan, _, _ = patched(LOOP, "1300MiB", "accumulate")
    assert ids(plan) == ["accumulate"]
    assert "+            for x, y in zip(x.chunk(" in plan["patch"]


def test_autocast_in_a_plain_loop(patched):
    plan, _, _ = patched(LOOP, "1600MiB", "amp-bf16")
    assert ids(plan) == ["amp-bf16"] and plan["label"] == "changes numerics"
    assert '+            with torch.autocast("cuda", dtype=torch.bfloat16):' in plan["patch"]


@pytest.mark.matrix
def test_huggingface_trainer(patched):
    plan, _, _ = patched((SCRIPTS / "gpt2_trainer.py").read_text(), "4.2GiB", "gradient-checkpointing,checkpoint")
    assert ids(plan) == ["gradient-checkpointing"]
    assert "+            disable_tqdm=True, gradient_checkpointing=True," in plan["patch"]


def test_lightning(patched):
    text = (SCRIPTS / "lightning_module.py").read_text().replace("BATCH = 64", "BATCH = 1024")
    plan, _, _ = patched(text, "1.6GiB", "amp-bf16")
    assert ids(plan) == ["amp-bf16"] and "precision='bf16-mixed'" in plan["patch"]


@pytest.mark.matrix
def test_diffusers(patched):
    text = (SCRIPTS / "sd_unet.py").read_text().replace("BATCH = 2", "BATCH = 8")
    plan, _, _ = patched(text, "22GiB", "gradient-checkpointing")
    assert "+unet.enable_gradient_checkpointing()" in plan["patch"]


@pytest.mark.matrix
def test_timm(patched):
    plan, _, _ = patched((SCRIPTS / "timm_vit.py").read_text(), "3GiB", "gradient-checkpointing")
    assert "+model.set_grad_checkpointing()" in plan["patch"]


def test_write_applies_it_and_what_cannot_be_written_has_its_line(fathom, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(LOOP)
    flags = ("--memory", "1300MiB", "--try", "checkpoint", "--write", "--headroom", "0")
    done = fathom.command("fit", *flags, "--", PYTHON, "train.py", cwd=tmp_path, timeout=240)
    assert done.returncode == 0 and "written: train.py" in done.stdout, done.stdout + done.stderr
    assert "torch.utils.checkpoint.checkpoint, module.forward" in script.read_text()
    # The model gets its value in a loop: no statement behind it holds for it alone.
    text = LOOP.replace("Runner(parser.parse_args()).train()", "options = parser.parse_args()\n    go(options)")
    script.write_text(text.replace("class Runner:", "def go(options):\n    Runner(options).train()\n\n\nclass Runner:").replace(
        "        self.net = Net(512, 8).cuda()  # é", "        for _ in range(1):\n            self.net = Net(512, 8).cuda()"
    ))  # fmt: skip
    before = script.read_text()
    done = fathom.command("fit", *flags, "--", PYTHON, "train.py", cwd=tmp_path, timeout=240)
    assert "no patch: " in done.stdout and "self.net" in done.stdout, done.stdout
    assert done.returncode == 1 and "nothing was written" in done.stdout and script.read_text() == before
