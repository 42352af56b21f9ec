"""The cosine noise schedule of diffusion models."""

import math

import torch


def cosine_signal(steps, offset=0.008, largest_beta=0.999):
    """How much of the signal's variance is left at each of the diffusion steps."""
    wanted = [math.cos((step / steps + offset) / (1 + offset) * math.pi / 2) ** 2 for step in range(steps + 1)]
    left, signal = 1.0, []
    for before, after in zip(wanted, wanted[1:]):
        left *= 1 - min(1 - after / before, largest_beta)
        signal.append(left)
    return torch.tensor(signal)


def add_noise(clean, signal, steps, noise):
    """The clean samples as they are at their diffusion steps."""
    left = signal[steps].view(-1, *[1] * (clean.dim() - 1))
    return left.sqrt() * clean + (1 - left).sqrt() * noise
