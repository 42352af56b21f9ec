"""STDiff: motion of the observed frames, carried into the future, tells a diffusion U-Net what to draw."""

import math
from dataclasses import dataclass

import torch
from blocks import DownLevel, Middle, UpLevel
from motion import ConvGru, MotionEncoder, MotionSde
from torch import nn
from torch.nn import functional as F


@dataclass(frozen=True)
class Plan:
    """What all blocks of the U-Net have in common."""

    layers: int
    motion_channels: int
    time_channels: int
    groups: int
    fused_attention: bool


class MotionUNet(nn.Module):
    """Noisy and previous frame (frames, 2, H, W), time steps and motion to the noise (frames, 1, H, W)."""

    def __init__(self, settings, fused_attention):
        super().__init__()
        widths, heads = settings.block_out_channels, settings.attention_head_dim
        first, last = widths[0], len(widths) - 1
        layers, groups = settings.layers_per_block, settings.norm_num_groups
        plan = Plan(layers, settings.m_channels, 4 * first, groups, fused_attention)
        self.conv_in = nn.Conv2d(settings.in_channels, first, 3, padding=1)
        self.time_channels = first
        self.time = nn.Sequential(nn.Linear(first, 4 * first), nn.SiLU(), nn.Linear(4 * first, 4 * first))

        self.down, skips, before = nn.ModuleList(), [first], first
        for level, (width, head_dim) in enumerate(zip(widths, heads, strict=True)):
            self.down.append(DownLevel(before, width, head_dim, plan, level == last))
            skips += [width] * (plan.layers + (level != last))
            before = width
        self.middle = Middle(widths[-1], heads[-1], plan)
        self.up = nn.ModuleList()
        for level, (width, head_dim) in reversed(list(enumerate(zip(widths, heads, strict=True)))):
            taken = [skips.pop() for _ in range(plan.layers + 1)]
            self.up.append(UpLevel(before, taken, width, head_dim, plan, level == 0))
            before = width
        self.out = nn.Sequential(
            nn.GroupNorm(plan.groups, first), nn.SiLU(), nn.Conv2d(first, settings.out_channels, 3, padding=1)
        )

    def forward(self, x, steps, motion):
        time = self.time(wave_embedding(steps, self.time_channels))
        x = self.conv_in(x)
        skips = [x]
        for level in self.down:
            skips += level(skips[-1], time, motion)
        x = self.middle(skips[-1], time, motion)
        for level in self.up:
            x = level(x, skips, time, motion)
        return self.out(x)

    def recompute(self, every_level):
        """Turns checkpointing on: as the users' code has it, in the levels without attention only, or in every one."""
        levels = [*self.down, *self.up]
        reached = levels if every_level else [self.down[0], self.up[-1]]
        for level in [*reached, self.middle] if every_level else reached:
            level.gradient_checkpointing = True
        return len(reached), len(levels)


class STDiff(nn.Module):
    """`settings` is the part `STDiff` of the configuration."""

    def __init__(self, settings, fused_attention):
        super().__init__()
        net = settings.DiffNet
        self.motion_encoder = MotionEncoder(net.MotionEncoder)
        channels = self.motion_encoder.channels
        self.gru = ConvGru(channels)
        self.sde = MotionSde(channels, net.DiffUnet.n_layers, net.Int.sde_options.dt)
        self.unet = MotionUNet(settings.Diffusion.unet_config, fused_attention)

    def forward(self, observed, future_times, noisy, steps, previous):
        """Observed frames (N, To, 1, H, W), noisy and previous frames (N * Tp, 1, H, W) to the noise."""
        motion = self.future_motion(observed, future_times)
        return self.unet(torch.cat([noisy, previous], dim=1), steps, motion)

    def future_motion(self, observed, future_times):
        """The motion at each future frame: (N * Tp, channels, H/4, W/4)."""
        differences = observed[:, 1:] - observed[:, :-1]
        features = self.motion_encoder(differences.flatten(0, 1)).unflatten(0, differences.shape[:2])
        state = torch.zeros_like(features[:, 0], dtype=torch.float32)
        for feature in features.unbind(1):
            state = self.gru(feature, state)
        begin = observed.shape[1] - 1
        return torch.stack(self.sde(state.float(), [begin, *future_times]), dim=1).flatten(0, 1)


def wave_embedding(steps, channels):
    """Diffusion steps as sines and cosines of falling frequency."""
    half = channels // 2
    frequencies = torch.exp(-math.log(10000) * torch.arange(half, device=steps.device) / half)
    angles = steps[:, None].float() * frequencies
    return torch.cat([angles.cos(), angles.sin()], dim=1)


class Diffusion:
    """The forward process with the squared-cosine schedule, and the loss on valid pixels."""

    def __init__(self, steps, device):
        def remaining(t):
            return math.cos((t + 0.008) / 1.008 * math.pi / 2) ** 2

        betas = [min(1 - remaining((i + 1) / steps) / remaining(i / steps), 0.999) for i in range(steps)]
        self.signal = torch.cumprod(1 - torch.tensor(betas), dim=0).to(device)
        self.steps = steps

    def add_noise(self, clean, noise, steps):
        signal = self.signal[steps][:, None, None, None]
        return signal.sqrt() * clean + (1 - signal).sqrt() * noise

    @staticmethod
    def loss(predicted, noise, valid):
        """L1 over the pixels where the sensor saw something."""
        error = F.l1_loss(predicted.float(), noise, reduction="none")
        return (error * valid).sum() / valid.sum().clamp(min=1)
