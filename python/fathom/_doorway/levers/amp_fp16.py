"""Autocast to float16, for cards without bfloat16. It needs loss scaling to be stable, which takes no memory."""

import torch

from . import autocast

CHANGE = """scaler = torch.amp.GradScaler("cuda")
with torch.autocast("cuda", dtype=torch.float16):
    # the forward pass and the loss
scaler.scale(loss).backward(); scaler.step(optimizer); scaler.update()"""
ABSENT = "no module was called with gradients"


def apply(options, outcome):
    return autocast.apply(torch.float16, outcome)
