"""Trains the avatar diffusion model on synthetic avatars: fp32, Adam, StepLR, attributes hidden for one in ten.

    fathom run --gpu a10g -- python examples/avatar/train.py --config examples/avatar/document.yaml
"""

import argparse
import sys
from pathlib import Path

import torch
from torch.nn import functional as F

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common.config import from_command_line
from unet import ContextUnet

# The attributes of the Cartoon Set and how many variants each has: 217 together (its file format, CC BY 4.0).
VARIANTS = [3, 2, 2, 3, 2, 14, 4, 7, 15, 111, 5, 11, 10, 12, 7, 3, 3, 3]


def avatars(count, size, attributes, generator):
    """Disks whose colour and size follow the attributes: images (count, 3, size, size) in -1 … 1, binary vectors."""
    picks = [F.one_hot(torch.randint(n, (count,), generator=generator), n) for n in VARIANTS]
    chosen = torch.cat(picks, dim=1)[:, :attributes].float()
    look = torch.tanh(chosen @ torch.randn(attributes, 4, generator=torch.Generator().manual_seed(0)) / 2)
    axis = torch.linspace(-1, 1, size)
    distance = (axis[:, None] ** 2 + axis**2).sqrt()
    inside = torch.sigmoid(8 * (0.6 + 0.2 * look[:, 3, None, None] - distance))
    return inside[:, None] * look[:, :3, None, None] * 2 - 1, chosen


class Diffusion:
    """The forward process with linearly growing noise."""

    def __init__(self, settings, device):
        first, last = settings.betas
        betas = torch.linspace(first, last, settings.n_T + 1)
        signal = torch.cumprod(1 - betas, dim=0).to(device)
        self.keep, self.add = signal.sqrt(), (1 - signal).sqrt()
        self.steps, self.hide = settings.n_T, settings.drop_prob

    def loss(self, model, images, attributes):
        steps = torch.randint(1, self.steps + 1, (len(images),), device=images.device)
        noise = torch.randn_like(images)
        noisy = self.keep[steps, None, None, None] * images + self.add[steps, None, None, None] * noise
        hidden = torch.bernoulli(torch.full((len(images), 1), self.hide, device=images.device))
        return F.mse_loss(model(noisy, attributes, steps / self.steps, hidden), noise)


def build_model(config, device):
    with device:
        model = ContextUnet(config.model)
    print(f"{sum(p.numel() for p in model.parameters()):,} parameters", flush=True)
    return model


def train(config):
    torch.manual_seed(config.seed)
    device, training = torch.device(config.device), config.training
    torch.backends.cudnn.benchmark = training.cudnn_benchmark
    model = build_model(config, device)
    diffusion = Diffusion(config.diffusion, device)
    optimizer = torch.optim.Adam(model.parameters(), lr=training.lr)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, training.lr_step, training.lr_gamma)
    scaler = torch.amp.GradScaler(device.type, enabled=training.amp)
    generator = torch.Generator().manual_seed(config.seed)

    for _ in range(training.n_epoch):
        for step in range(training.steps_per_epoch):
            batch = avatars(training.batch_size, config.data.image_size, config.model.n_attributes, generator)
            images, attributes = (x.to(device) for x in batch)
            optimizer.zero_grad()
            with torch.autocast(device.type, torch.float16, enabled=training.amp):
                loss = diffusion.loss(model, images, attributes)
            scaler.scale(loss).backward()
            scaler.step(optimizer)
            scaler.update()
            print(f"step {step} loss {loss.item():.4f}", flush=True)
        schedule.step()


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--device")
    flags, rest = parser.parse_known_args()
    train(from_command_line(__doc__, rest + ([f"device={flags.device}"] if flags.device else [])))
