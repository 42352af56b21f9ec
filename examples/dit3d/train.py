"""Trains DiT3D, a text-to-video diffusion model, on synthetic videos.

    python examples/dit3d/train.py --config examples/dit3d/tiny-4.yaml
    python examples/dit3d/train.py --config examples/dit3d/s-2.yaml DIT_FREEZE_BACKBONE=false
"""

import sys
from contextlib import nullcontext
from itertools import cycle
from pathlib import Path

import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from common.config import from_command_line
from common.noise import add_noise, cosine_signal
from dit3d import Dit3d
from text_encoder import TextEncoder


def videos(config):
    """The batches of one epoch: a bright square that moves, and the numbers of its text's tokens."""
    random = torch.Generator().manual_seed(config.RANDOM_SEED)
    channels, frames, height, width = config.INPUT_SHAPE
    side = height // 4
    for _ in range(config.BATCHES):
        batch = torch.full((config.BATCH_SIZE, channels, frames, height, width), -1.0)
        for video in batch:
            top, left = torch.randint(height - side, (2,), generator=random).tolist()
            for frame in range(frames):
                at = (left + frame) % (width - side)
                video[:, frame, top : top + side, at : at + side] = 1
        yield batch, torch.randint(TextEncoder.VOCABULARY, (len(batch), config.TEXT_MAX_LENGTH), generator=random)


class TextFeatures:
    """The features of texts, from the encoder or, if the configuration names none, made once for all."""

    def __init__(self, config, device):
        known = {"distilbert-base-uncased": TextEncoder, None: None}
        if config.TEXT_ENCODER_MODEL not in known:
            raise SystemExit(f"error: unknown text encoder `{config.TEXT_ENCODER_MODEL}`")
        kind = known[config.TEXT_ENCODER_MODEL]
        self.encoder = kind() if kind else None
        self.constant = torch.randn(config.BATCH_SIZE, config.TEXT_EMBED_DIM, device=device)

    def __call__(self, tokens):
        return self.encoder(tokens) if self.encoder else self.constant


def diffusion_loss(model, signal, video, text):
    """The squared error of the noise that is predicted at a random diffusion step."""
    steps = torch.randint(len(signal), (len(video),), device=video.device)
    noise = torch.randn_like(video)
    predicted = model(add_noise(video, signal, steps, noise), steps, text)
    return F.mse_loss(predicted[:, :3], noise)


def count(parameters):
    return sum(parameter.numel() for parameter in parameters)


def build(config):
    """The model of a configuration, on the default device."""
    return Dit3d(
        config.DIT_MODEL_SIZE,
        config.DIT_VIDEO_SIZE,
        config.TEXT_EMBED_DIM,
        config.DIT_LEARN_SIGMA,
        config.DIT_FREEZE_BACKBONE,
        fused_attention=config.FUSED_ATTENTION,
        checkpoint_blocks=config.GRADIENT_CHECKPOINTING,
    )


def train(config):
    torch.manual_seed(config.RANDOM_SEED)
    device = torch.device(config.DEVICE)
    with device:
        model, text_features = build(config), TextFeatures(config, device)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    print(f"parameters {count(model.parameters()):,}, trained {count(trained):,}")
    optimizer = torch.optim.AdamW(trained, config.LEARNING_RATE, config.ADAM_BETAS, weight_decay=config.WEIGHT_DECAY)
    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, config.MAX_STEPS, config.COSINE_ETA_MIN)
    signal = cosine_signal(config.TIMESTEPS, config.COSINE_S, config.COSINE_MAX_BETA).to(device)
    scaler = torch.amp.GradScaler(device.type, enabled=config.MIXED_PRECISION)
    precision = torch.autocast(device.type, torch.float16) if config.MIXED_PRECISION else nullcontext()
    data = cycle(videos(config))
    model.train()
    for step in range(config.MAX_STEPS):
        total = 0
        for _ in range(config.GRADIENT_ACCUMULATION_STEPS):
            video, tokens = (tensor.to(device) for tensor in next(data))
            with precision:
                loss = diffusion_loss(model, signal, video, text_features(tokens))
            scaler.scale(loss / config.GRADIENT_ACCUMULATION_STEPS).backward()
            total += loss.item() / config.GRADIENT_ACCUMULATION_STEPS
        scaler.unscale_(optimizer)
        torch.nn.utils.clip_grad_norm_(trained, config.GRADIENT_CLIP)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        scheduler.step()
        print(f"step {step} loss {total:.4f}", flush=True)


if __name__ == "__main__":
    train(from_command_line(__doc__))
