"""Trains STDiff on synthetic range images: fp16 autocast, GradScaler, accumulation, EMA, AdamW, clipping.

    fathom run --gpu a100-80g -- python examples/stdiff/train.py --config examples/stdiff/document.yaml

Of the frames to predict only `rand_Tp`, drawn at random, reach the U-Net: its batch is batch_size x rand_Tp.
"""

import argparse
import math
import os
import sys
from pathlib import Path

# As the users' script does, before torch is loaded.
os.environ.setdefault("PYTORCH_CUDA_ALLOC_CONF", "max_split_size_mb:512")

import torch
from torch.nn.utils import clip_grad_norm_

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common.config import from_command_line
from common.ema import Ema
from model import Diffusion, STDiff

# YAML reads a bare `no` as false.
PRECISIONS = {"no": torch.float32, False: torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


def range_images(settings, generator, device):
    """Scenes that turn: observed frames, future frames, their times, and where the sensor saw something.

    (N, To, 1, H, W), (N, rand_Tp, 1, H, W), a list of rand_Tp numbers, (N, rand_Tp, 1, H, W).
    """
    height, width = settings.image_size
    seen, future = settings.num_observed_frames, settings.num_predict_frames
    speed, phase = torch.rand(2, settings.batch_size, 1, 1, 1, generator=generator)
    turn = 0.5 * speed * torch.arange(seen + future).view(1, -1, 1, 1) + math.tau * phase
    angle = torch.linspace(0, math.tau, width)
    rows = torch.linspace(-1, 1, height)[:, None]
    frames = (torch.sin(3 * (angle + turn)) * (1 - rows**2)).unsqueeze(2).to(device)
    chosen = torch.arange(future)
    if settings.rand_predict:
        chosen = torch.randperm(future, generator=generator)[: settings.rand_Tp].sort().values
    times = (seen + chosen).tolist()
    observed, predicted = frames[:, :seen], frames[:, times]
    valid = torch.rand(predicted.shape, device=device) < 0.9
    return observed, predicted, times, valid


def build_optimizer(model, training):
    optimizer = torch.optim.AdamW(
        model.parameters(), lr=training.learning_rate, betas=tuple(training.adam_betas),
        weight_decay=training.adam_weight_decay, eps=training.adam_epsilon,
    )  # fmt: skip

    def warm_up_then_cosine_with_restarts(step):
        if step < training.lr_warmup_steps:
            return (step + 1) / training.lr_warmup_steps
        rest = max(1, training.max_train_steps - training.lr_warmup_steps)
        progress = min(1.0, (step - training.lr_warmup_steps) / rest)
        return 0.5 * (1 + math.cos(math.pi * (training.num_cycles * progress % 1.0)))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, warm_up_then_cosine_with_restarts)


def build_model(config, device):
    training = config.Training
    with device:
        model = STDiff(config.STDiff, training.use_xformers)
    parts = model.motion_encoder, model.sde, model.gru, model
    counts = [f"{sum(p.numel() for p in part.parameters()):,}" for part in parts]
    print("motion encoder {}, SDE {}, GRU {}, all {} parameters".format(*counts), flush=True)
    if training.gradient_checkpointing:
        reached, levels = model.unet.recompute(training.checkpoint_every_level)
        print(f"checkpointing reaches {reached} of {levels} blocks", flush=True)
    return model


def train(config):
    torch.manual_seed(config.seed)
    device, training = torch.device(config.device), config.Training
    model = build_model(config, device)
    ema = Ema(model, training.ema_max_decay, training.ema_power) if training.use_ema else None
    optimizer, schedule = build_optimizer(model, training)
    diffusion = Diffusion(config.STDiff.Diffusion.ddpm_num_steps, device)
    precision = PRECISIONS[training.mixed_precision]
    scaler = torch.amp.GradScaler(device.type, enabled=precision is torch.float16)
    generator = torch.Generator().manual_seed(config.seed)

    for micro_step in range(training.max_train_steps * training.gradient_accumulation_steps):
        observed, predicted, times, valid = range_images(config.Dataset, generator, device)
        previous = torch.cat([observed[:, -1:], predicted[:, :-1]], dim=1).flatten(0, 1)
        clean = predicted.flatten(0, 1)
        noise = torch.randn(clean.shape).to(device)
        steps = torch.randint(diffusion.steps, (len(clean),), device=device)
        noisy = diffusion.add_noise(clean, noise, steps)
        with torch.autocast(device.type, precision, enabled=precision is not torch.float32):
            found = model(observed, times, noisy, steps, previous)
        loss = diffusion.loss(found, noise, valid.flatten(0, 1))
        scaler.scale(loss / training.gradient_accumulation_steps).backward()

        if (micro_step + 1) % training.gradient_accumulation_steps == 0:
            scaler.unscale_(optimizer)
            clip_grad_norm_(model.parameters(), 1.0)
            scaler.step(optimizer)
            scaler.update()
            schedule.step()
            optimizer.zero_grad()
            if ema is not None:
                ema.update(model)
        if device.type == "cuda" and micro_step % 10 == 0:
            torch.cuda.empty_cache()
        print(f"step {micro_step // training.gradient_accumulation_steps} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--device")
    flags, rest = parser.parse_known_args()
    train(from_command_line(__doc__, rest + ([f"device={flags.device}"] if flags.device else [])))
