"""The image transformer (DiT) that DiT3D takes as its backbone, and its sizes.

Every frame of a video is an image of its own: (frames, 3, height, width) becomes (height/patch)·(width/patch) tokens
a frame, and attention runs within a frame.
"""

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class DitSize:
    width: int
    depth: int
    heads: int


SIZES = {
    "XS": DitSize(192, 6, 3),
    "Tiny": DitSize(256, 6, 4),
    "S": DitSize(384, 12, 6),
    "B": DitSize(768, 12, 12),
    "L": DitSize(1024, 24, 16),
    "XL": DitSize(1152, 28, 16),
}


class StepEmbedding(nn.Module):
    """Diffusion steps as sines and cosines, through two linear layers."""

    FREQUENCIES = 128

    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(2 * self.FREQUENCIES, width), nn.SiLU(), nn.Linear(width, width))

    def forward(self, steps):
        exponents = torch.arange(self.FREQUENCIES, device=steps.device) / self.FREQUENCIES
        angles = steps[:, None] * torch.exp(-math.log(10000) * exponents)
        return self.layers(torch.cat((angles.cos(), angles.sin()), dim=-1))


class DitBlock(nn.Module):
    """Attention and feed-forward, each between a norm and a gate that the diffusion step sets (adaLN).

    As its users wrote it, the input of attention is computed three times over. To `nn.MultiheadAttention` these are
    three different tensors, and it is asked for its weights, which is the default: the matrix of all pairs of tokens
    is really made, for every head of every frame, whatever fused kernels the card has. `fused_attention` is the cure:
    one input, no weights asked for, the same result.
    """

    def __init__(self, width, heads, fused_attention):
        super().__init__()
        self.fused_attention = fused_attention
        self.norm1 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.attention = nn.MultiheadAttention(width, heads, batch_first=True)
        self.norm2 = nn.LayerNorm(width, elementwise_affine=False, eps=1e-6)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width)
        )
        self.modulation = nn.Sequential(nn.SiLU(), nn.Linear(width, 6 * width))

    def attend(self, x, shift, scale):
        if self.fused_attention:
            query = key = value = self.norm1(x) * (1 + scale) + shift
        else:
            query, key, value = (self.norm1(x) * (1 + scale) + shift for _ in range(3))
        return self.attention(query, key, value, need_weights=not self.fused_attention)[0]

    def forward(self, x, condition):
        shift1, scale1, gate1, shift2, scale2, gate2 = self.modulation(condition).unsqueeze(1).chunk(6, dim=-1)
        x = x + gate1 * self.attend(x, shift1, scale1)
        return x + gate2 * self.feed_forward(self.norm2(x) * (1 + scale2) + shift2)


class DitBackbone(nn.Module):
    """One feature vector a frame: the mean of its tokens after all blocks."""

    def __init__(self, size, patch, image, frozen, fused_attention=False, checkpoint_blocks=False):
        super().__init__()
        self.image, self.checkpoint_blocks = image, checkpoint_blocks
        self.patches = nn.Conv2d(3, size.width, patch, stride=patch)
        self.positions = nn.Parameter(0.02 * torch.randn(1, (image // patch) ** 2, size.width))
        self.step = StepEmbedding(size.width)
        self.blocks = nn.ModuleList(DitBlock(size.width, size.heads, fused_attention) for _ in range(size.depth))
        self.requires_grad_(not frozen)

    def forward(self, frames, steps):
        """(frames, 3, height, width), (frames,) -> (frames, width of the model)."""
        if frames.shape[-2:] != (self.image, self.image):
            frames = F.interpolate(frames, size=(self.image, self.image), mode="bilinear")
        tokens = self.patches(frames).flatten(2).transpose(1, 2) + self.positions
        condition = self.step(steps)
        for block in self.blocks:
            if self.checkpoint_blocks and condition.requires_grad:
                tokens = checkpoint(block, tokens, condition, use_reentrant=False)
            else:
                tokens = block(tokens, condition)
        return tokens.mean(dim=1)
