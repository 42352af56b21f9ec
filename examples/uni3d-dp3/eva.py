"""EVA vision transformers as Uni3D takes them from timm, used without images.

Uni3D builds a complete image model and then calls only its blocks and its last norm, without rotary embeddings.
The patch embedding, the positions, the class token and the classifier stay behind: *dead parameters*. They never
get a gradient nor optimizer state, but they take memory, and the moving average copies them.
"""

from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.checkpoint import checkpoint


@dataclass(frozen=True)
class EvaSize:
    """One model of timm: its widths, which feed-forward it has, and what is dead in it."""

    width: int
    depth: int
    heads: int
    feed_forward: str  # glu: one linear and a gate; swiglu: two linears, a gate and a norm; gelu: the usual one
    hidden: int
    fused_qkv: bool
    image: int
    classes: int


SIZES = {
    "tiny": EvaSize(192, 12, 3, "glu", 512, True, 224, 0),
    "small": EvaSize(384, 12, 6, "glu", 1024, True, 224, 0),
    "base": EvaSize(768, 12, 12, "swiglu", 2048, False, 448, 1000),
    "large": EvaSize(1024, 24, 16, "swiglu", 2730, False, 448, 1000),
    "giant": EvaSize(1408, 40, 16, "gelu", 6144, True, 560, 1000),
    "micro": EvaSize(48, 2, 3, "glu", 128, True, 28, 0),  # ours, to train on a CPU
}


class Attention(nn.Module):
    """Self-attention within one sample; queries and values have a bias, keys have none."""

    def __init__(self, size, fused_attention):
        super().__init__()
        self.heads, self.fused_attention = size.heads, fused_attention
        width = size.width
        if size.fused_qkv:
            self.qkv = nn.Linear(width, 3 * width, bias=False)
            self.query_bias = nn.Parameter(torch.zeros(width))
            self.value_bias = nn.Parameter(torch.zeros(width))
        else:
            self.qkv = None
            self.query, self.value = nn.Linear(width, width), nn.Linear(width, width)
            self.key = nn.Linear(width, width, bias=False)
        self.output = nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        heads = (batch, tokens, self.heads, width // self.heads)
        if self.qkv is not None:
            bias = torch.cat((self.query_bias, torch.zeros_like(self.query_bias), self.value_bias))
            parts = F.linear(x, self.qkv.weight, bias).chunk(3, dim=-1)
        else:
            parts = self.query(x), self.key(x), self.value(x)
        query, key, value = (part.reshape(heads).transpose(1, 2) for part in parts)
        if self.fused_attention:
            attended = F.scaled_dot_product_attention(query, key, value)
        else:
            scores = query * heads[-1] ** -0.5 @ key.transpose(-2, -1)
            attended = scores.softmax(dim=-1) @ value
        return self.output(attended.transpose(1, 2).reshape(batch, tokens, width))


class GatedFeedForward(nn.Module):
    """One linear makes values and gates."""

    def __init__(self, width, hidden):
        super().__init__()
        self.expand, self.shrink = nn.Linear(width, 2 * hidden), nn.Linear(hidden, width)

    def forward(self, x):
        gate, value = self.expand(x).chunk(2, dim=-1)
        return self.shrink(F.silu(gate) * value)


class NormedGatedFeedForward(nn.Module):
    """Values and gates from two linears, and a norm before the last one."""

    def __init__(self, width, hidden):
        super().__init__()
        self.gate, self.value = nn.Linear(width, hidden), nn.Linear(width, hidden)
        self.norm, self.shrink = nn.LayerNorm(hidden, eps=1e-6), nn.Linear(hidden, width)

    def forward(self, x):
        return self.shrink(self.norm(F.silu(self.gate(x)) * self.value(x)))


class FeedForward(nn.Sequential):
    def __init__(self, width, hidden):
        super().__init__(nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width))


FEED_FORWARDS = {"glu": GatedFeedForward, "swiglu": NormedGatedFeedForward, "gelu": FeedForward}


class DropPath(nn.Module):
    """Leaves out a residual branch for some samples."""

    def __init__(self, rate):
        super().__init__()
        self.rate = rate

    def forward(self, x):
        if not self.training or self.rate == 0:
            return x
        kept = x.new_empty(len(x), 1, 1).bernoulli_(1 - self.rate).div_(1 - self.rate)
        return x * kept


class Block(nn.Module):
    def __init__(self, size, drop_path, fused_attention):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(size.width, eps=1e-6), nn.LayerNorm(size.width, eps=1e-6)
        self.attention = Attention(size, fused_attention)
        self.feed_forward = FEED_FORWARDS[size.feed_forward](size.width, size.hidden)
        self.drop_path = DropPath(drop_path)

    def forward(self, x):
        x = x + self.drop_path(self.attention(self.norm1(x)))
        return x + self.drop_path(self.feed_forward(self.norm2(x)))


class Eva(nn.Module):
    """The blocks, the norm of the class token, and the parts of the image model that nothing calls."""

    PATCH = 14

    def __init__(self, size, drop_path_rate=0.0, fused_attention=True, checkpoint_blocks=False, empty_cache=False):
        super().__init__()
        rates = [drop_path_rate * index / (size.depth - 1) for index in range(size.depth)]
        self.blocks = nn.ModuleList(Block(size, rate, fused_attention) for rate in rates)
        self.norm = nn.LayerNorm(size.width, eps=1e-6)
        self.checkpoint_blocks, self.empty_cache = checkpoint_blocks, empty_cache
        # Dead: an image model has these, a point cloud never meets them.
        self.image_patches = nn.Conv2d(3, size.width, self.PATCH, stride=self.PATCH)
        self.image_class_token = nn.Parameter(torch.zeros(1, 1, size.width))
        self.image_positions = nn.Parameter(torch.zeros(1, 1 + (size.image // self.PATCH) ** 2, size.width))
        self.image_classifier = nn.Linear(size.width, size.classes) if size.classes else nn.Identity()

    def forward(self, tokens):
        """(clouds, tokens, width) -> (clouds, width), the first token after all blocks."""
        for index, block in enumerate(self.blocks):
            if self.checkpoint_blocks and torch.is_grad_enabled():
                tokens = checkpoint(block, tokens, use_reentrant=False)
            else:
                tokens = block(tokens)
            if self.empty_cache and index % 4 == 0:
                torch.cuda.empty_cache()
        return self.norm(tokens[:, 0])
