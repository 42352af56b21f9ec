"""Trains a DP3 policy with PointNet or Uni3D on synthetic demonstrations of the shapes of Adroit's hammer task.

    python examples/uni3d-dp3/train.py --config examples/uni3d-dp3/uni3d-128x64.yaml
    python examples/uni3d-dp3/train.py --config examples/uni3d-dp3/dp3.yaml dataloader.batch_size=64
"""

import math
import sys
from contextlib import nullcontext
from itertools import cycle
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.config import from_command_line
from common.ema import Ema
from policy import Dp3


def demonstrations(config):
    """The batches of one epoch. The action follows from the robot's state and from where the object is."""
    shapes, batch, horizon = config.shape_meta, config.dataloader.batch_size, config.horizon
    points, channels = shapes.obs.point_cloud.shape
    states, actions = shapes.obs.agent_pos.shape[0], shapes.action.shape[0]
    random = torch.Generator().manual_seed(config.training.seed)
    from_state = torch.randn(states, actions, generator=random) / math.sqrt(states)
    from_object = torch.randn(3, actions, generator=random)
    progress = torch.linspace(0, 1, horizon).view(1, horizon, 1)
    for _ in range(config.dataloader.batches):
        state = torch.randn(batch, 1, states, generator=random)
        place = torch.rand(batch, 1, 3, generator=random) - 0.5
        cloud = torch.rand(batch, horizon, points, channels, generator=random) - 0.5
        cloud[..., :3] += place.unsqueeze(2)
        yield {
            "point_cloud": cloud,
            "agent_pos": state.expand(-1, horizon, -1),
            "action": torch.tanh(state @ from_state + progress * (place @ from_object)),
        }


def warm_cosine(warm_up, total):
    """A factor for the learning rate: it grows for `warm_up` steps, then falls along a cosine."""

    def factor(step):
        if step < warm_up:
            return (step + 1) / warm_up
        return 0.5 * (1 + math.cos(math.pi * min(1, (step - warm_up) / max(1, total - warm_up))))

    return factor


def count(parameters):
    return sum(parameter.numel() for parameter in parameters)


def describe(policy):
    encoder = count(policy.encoder.cloud.parameters())
    trained = count(p for p in policy.parameters() if p.requires_grad)
    print(f"parameters {count(policy.parameters()):,}, trained {trained:,}, encoder of clouds {encoder:,}")


def train(config):
    training = config.training
    torch.manual_seed(training.seed)
    device = torch.device(training.device)
    with device:
        policy = Dp3(config)
    describe(policy)
    ema = Ema(policy, config.ema.max_value, config.ema.power) if training.use_ema else None
    settings = config.optimizer
    optimizer = torch.optim.AdamW(
        policy.parameters(), settings.lr, settings.betas, settings.eps, settings.weight_decay
    )
    rate = warm_cosine(training.lr_warmup_steps, training.max_train_steps)
    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, rate)
    scaler = torch.amp.GradScaler(device.type, enabled=training.amp)
    precision = torch.autocast(device.type, torch.float16) if training.amp else nullcontext()
    data = cycle(demonstrations(config))
    policy.train()
    for step in range(training.max_train_steps):
        for _ in range(training.gradient_accumulate_every):
            batch = {name: tensor.to(device) for name, tensor in next(data).items()}
            with precision:
                loss = policy.loss(batch) / training.gradient_accumulate_every
            scaler.scale(loss).backward()
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        scheduler.step()
        if ema:
            ema.update(policy)
        print(f"step {step} loss {loss.item() * training.gradient_accumulate_every:.4f}", flush=True)


if __name__ == "__main__":
    train(from_command_line(__doc__))
