"""Trains the LiDAR-camera detector on synthetic scenes: fp16 autocast, GradScaler, AdamW, clipping.

    fathom run --gpu v100-32g -- python examples/bev-graph/train.py --config examples/bev-graph/before.yaml

One process of the four: distributed training adds buckets of one more copy of the gradients.
"""

import argparse
import math
import sys
from pathlib import Path

import torch
from torch.nn.utils import clip_grad_norm_

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from common.config import from_command_line
from head import Targets, detection_loss
from model import BevDetector
from scenes import Scenes


def build_optimizer(model, training):
    """What is new (graph, head) learns at the full rate, what was pretrained at a tenth."""
    new = [p for name, p in model.named_parameters() if name.startswith(("graph.", "head."))]
    old = [p for name, p in model.named_parameters() if not name.startswith(("graph.", "head."))]
    groups = [{"params": old, "lr": training.lr * training.backbone_lr_factor}, {"params": new, "lr": training.lr}]
    optimizer = torch.optim.AdamW([group for group in groups if group["params"]], weight_decay=training.weight_decay)

    def warm_up_then_cosine(step):
        warm, total = training.warmup_epochs * training.steps_per_epoch, training.epochs * training.steps_per_epoch
        if step < warm:
            return (step + 1) / warm
        return 0.5 * (1 + math.cos(math.pi * (step - warm) / max(1, total - warm)))

    return optimizer, torch.optim.lr_scheduler.LambdaLR(optimizer, warm_up_then_cosine)


def train(config):
    torch.manual_seed(config.seed)
    device = torch.device(config.device)
    with device:
        model = BevDetector(config.model)
    count = sum(p.numel() for p in model.parameters())
    training, weights = config.training, vars(config.training.loss_weights)
    optimizer, schedule = build_optimizer(model, training)
    scaler = torch.amp.GradScaler(device.type, enabled=training.amp)
    scenes = Scenes(config)
    print(f"{count:,} parameters, map of {scenes.grid.rows} x {scenes.grid.columns} cells", flush=True)
    targets_of = Targets(config.model.head, config.model.bev_x_bound, config.model.bev_y_bound)

    for step in range(training.epochs * training.steps_per_epoch):
        inputs, boxes = scenes.batch(step, training.batch_size, device)
        optimizer.zero_grad()
        with torch.autocast(device.type, torch.float16, enabled=training.amp):
            predictions = model(*inputs)
            rows, columns = predictions[0]["heatmap"].shape[-2:]
            targets = targets_of(boxes, rows, columns, device)
            loss = detection_loss(predictions, targets, weights)
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        clip_grad_norm_(model.parameters(), training.grad_clip)
        scaler.step(optimizer)
        scaler.update()
        schedule.step()
        print(f"step {step} loss {loss.item():.4f}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("--device")
    flags, rest = parser.parse_known_args()
    train(from_command_line(__doc__, rest + ([f"device={flags.device}"] if flags.device else [])))
