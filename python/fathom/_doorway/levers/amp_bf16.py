"""Autocast to bfloat16: matrix products and convolutions, and what they save, take half the bytes."""

import torch

from . import autocast

CHANGE = """with torch.autocast("cuda", dtype=torch.bfloat16):
    # the forward pass and the loss; the backward pass stays outside"""
ABSENT = "no module was called with gradients"


def apply(options, outcome):
    return autocast.apply(torch.bfloat16, outcome)
