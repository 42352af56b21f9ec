"""What an expert would take, for the kinds of scripts that people bring: small ones, on cards that are too small in the same
way. Nothing is said of what to try; the patch of the chosen plan is applied by git and run."""

import pytest
from conftest import SCRIPTS
from test_fit_patches import LANGUAGE, NETWORKS, ids
from test_fit_patches import patched as patched  # the fixture
from test_fit_settings import FLAGS, own

IS_WARM = True

UNET = '''import argparse
import torch
from torch import nn
from torch.nn import functional as F


def double(inner, outer):
    layers = [nn.Conv2d(inner, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True)]
    layers += [nn.Conv2d(outer, outer, 3, padding=1, bias=False), nn.BatchNorm2d(outer), nn.ReLU(inplace=True)]
    return nn.Sequential(*layers)


class UNet(nn.Module):
    def __init__(self, width=16, depth=3):
        super().__init__()
        sizes = [width << level for level in range(depth + 1)]
        self.inc = double(3, width)
        self.down = nn.ModuleList(double(a, b) for a, b in zip(sizes, sizes[1:]))
        self.up = nn.ModuleList(nn.ConvTranspose2d(b, a, 2, stride=2) for a, b in reversed(list(zip(sizes, sizes[1:]))))
        self.conv = nn.ModuleList(double(b, a) for a, b in reversed(list(zip(sizes, sizes[1:]))))
        self.out = nn.Conv2d(width, 2, 1)

    def forward(self, x):
        kept = [self.inc(x)]
        for down in self.down:
            kept.append(down(F.max_pool2d(kept[-1], 2)))
        x = kept.pop()
        for up, conv in zip(self.up, self.conv):
            x = conv(torch.cat([kept.pop(), up(x)], dim=1))
        return self.out(x)


parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", "-b", dest="batch_size", type=int, default=1)
parser.add_argument("--amp", action="store_true", default=False, help="Use mixed precision")
args = parser.parse_args()
model = UNet().cuda()
optimizer = torch.optim.RMSprop(model.parameters(), lr=1e-5, momentum=0.999, foreach=True)
scaler = torch.amp.GradScaler("cuda", enabled=args.amp)
for _ in range(3):
    images = torch.randn(args.batch_size, 3, 256, 256).cuda()
    masks = torch.randint(2, (args.batch_size, 256, 256)).cuda()
    with torch.autocast("cuda", enabled=args.amp, dtype=torch.float16):
        loss = F.cross_entropy(model(images), masks)
    optimizer.zero_grad(set_to_none=True)
    scaler.scale(loss).backward()
    scaler.unscale_(optimizer)
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    scaler.step(optimizer)
    scaler.update()
'''

LIGHTNING = (SCRIPTS / "lightning_module.py").read_text().replace("BATCH = 64", "BATCH = 1024")


def test_a_masked_autoencoder_with_its_own_accumulation(patched):
    """Its own settings, and no checkpoint that would have to be written into it."""
    plan, done, _ = patched(FLAGS, "1400MiB", None)
    assert own(plan), done.stdout


@pytest.mark.matrix
def test_a_unet_with_a_flag_for_half_precision(patched):
    plan, done, _ = patched(UNET, "900MiB", None, "--batch-size", "8")
    assert "offload" not in ids(plan) and own(plan) == ["--amp"] or "checkpoint" in ids(plan), done.stdout


@pytest.mark.matrix
def test_a_language_model_with_all_its_logits(patched):
    plan, done, _ = patched(LANGUAGE, "1000MiB", None)
    assert "linear-cross-entropy" in ids(plan), done.stdout


@pytest.mark.matrix
def test_two_networks(patched):
    plan, done, _ = patched(NETWORKS, "800MiB", None)
    assert ids(plan)[-1] == "checkpoint" and plan["label"] == "exact", done.stdout


@pytest.mark.matrix
def test_a_convolutional_network_under_lightning(patched):
    plan, done, _ = patched(LIGHTNING, "1.6GiB", None)
    assert "offload" not in ids(plan) and plan["label"] != "changes batch statistics", done.stdout


@pytest.mark.matrix
def test_a_trainer(patched):
    text = (SCRIPTS / "gpt2_trainer.py").read_text()
    plan, done, _ = patched(text, "4.2GiB", None)
    assert "gradient-checkpointing" in ids(plan), done.stdout
