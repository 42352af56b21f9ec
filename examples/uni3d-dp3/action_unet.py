"""The 1-D diffusion U-Net of DP3: it denoises a sequence of actions, conditioned by FiLM.

Sequences are (batch, channels, steps). With `down_dims` [512, 1024, 2048] it has 255,153,306 parameters, nearly
all of the policy, and yet few activations: an action sequence has only 16 steps.
"""

import math

import torch
from torch import nn


class SinusoidalEmbedding(nn.Module):
    """Diffusion steps as sines and cosines."""

    def __init__(self, width):
        super().__init__()
        self.width = width

    def forward(self, steps):
        half = self.width // 2
        exponents = torch.arange(half, device=steps.device) / (half - 1)
        angles = steps[:, None] * torch.exp(-math.log(10000) * exponents)
        return torch.cat((angles.sin(), angles.cos()), dim=-1)


def conv_block(inputs, outputs, kernel_size, groups):
    """Convolution over the steps, group norm, Mish."""
    convolution = nn.Conv1d(inputs, outputs, kernel_size, padding=kernel_size // 2)
    return nn.Sequential(convolution, nn.GroupNorm(groups, outputs), nn.Mish())


class ConditionedResidual(nn.Module):
    """Two convolution blocks; between them the condition scales and shifts every channel (FiLM)."""

    def __init__(self, inputs, outputs, condition, kernel_size, groups):
        super().__init__()
        self.first = conv_block(inputs, outputs, kernel_size, groups)
        self.film = nn.Sequential(nn.Mish(), nn.Linear(condition, 2 * outputs))
        self.second = conv_block(outputs, outputs, kernel_size, groups)
        self.shortcut = nn.Conv1d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, condition):
        scale, shift = self.film(condition).unsqueeze(-1).chunk(2, dim=1)
        return self.second(scale * self.first(x) + shift) + self.shortcut(x)


class ActionUnet(nn.Module):
    """Predicts clean actions from noisy ones, the diffusion step and the features of the observations.

    Each stage has two residual blocks. The down path halves the steps after all stages but the last; the up path
    has one stage fewer, and each of its stages doubles them.
    """

    def __init__(self, actions, observation_features, down_dims, step_embedding=128, kernel_size=5, groups=8):
        super().__init__()
        self.step_encoder = nn.Sequential(
            SinusoidalEmbedding(step_embedding),
            nn.Linear(step_embedding, 4 * step_embedding),
            nn.Mish(),
            nn.Linear(4 * step_embedding, step_embedding),
        )
        condition = step_embedding + observation_features

        def residual(inputs, outputs):
            return ConditionedResidual(inputs, outputs, condition, kernel_size, groups)

        first, last = down_dims[0], down_dims[-1]
        widths = list(zip([actions, *down_dims], down_dims))
        self.down = nn.ModuleList(
            nn.ModuleList((residual(inputs, outputs), residual(outputs, outputs))) for inputs, outputs in widths
        )
        self.downsample = nn.ModuleList(nn.Conv1d(width, width, 3, stride=2, padding=1) for width in down_dims[:-1])
        self.middle = nn.ModuleList((residual(last, last), residual(last, last)))
        upwards = widths[:0:-1]
        self.up = nn.ModuleList(
            nn.ModuleList((residual(2 * outputs, inputs), residual(inputs, inputs))) for inputs, outputs in upwards
        )
        self.upsample = nn.ModuleList(nn.ConvTranspose1d(width, width, 4, stride=2, padding=1) for width, _ in upwards)
        self.final = nn.Sequential(conv_block(first, first, kernel_size, groups), nn.Conv1d(first, actions, 1))

    def forward(self, noisy_actions, steps, observation):
        """(batch, horizon, actions), (batch,), (batch, features) -> (batch, horizon, actions)."""
        condition = torch.cat((self.step_encoder(steps), observation), dim=-1)
        x = noisy_actions.transpose(1, 2)
        skips = []
        for stage, (first, second) in enumerate(self.down):
            x = second(first(x, condition), condition)
            skips.append(x)
            if stage < len(self.downsample):
                x = self.downsample[stage](x)
        for block in self.middle:
            x = block(x, condition)
        for (first, second), upsample in zip(self.up, self.upsample):
            x = torch.cat((x, skips.pop()), dim=1)
            x = upsample(second(first(x, condition), condition))
        return self.final(x).transpose(1, 2)
