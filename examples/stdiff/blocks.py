"""The blocks of the U-Net: residual blocks that are told the motion, attention, and the levels of both paths.

Attention and residual blocks of a level run before its downsampler: level 1 works on maps of half the height and width
of the image, so attention there has 32 x 1024 = 32768 tokens.
"""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class MotionCondition(nn.Module):
    """SPADE: normalised features are scaled and shifted, at each place, by what convolutions read in the motion.

    The motion's 256 channels are first brought to the size of the features, at level 0 that of the whole image.
    """

    def __init__(self, motion_channels, channels):
        super().__init__()
        hidden = (motion_channels + channels) // 2
        self.shared = nn.Sequential(nn.Conv2d(motion_channels, hidden, 3, padding=1), nn.ReLU())
        self.gamma = nn.Conv2d(hidden, channels, 3, padding=1)
        self.beta = nn.Conv2d(hidden, channels, 3, padding=1)

    def forward(self, x, motion):
        seen = self.shared(F.interpolate(motion, size=x.shape[-2:], mode="nearest"))
        return F.instance_norm(x) * (1 + self.gamma(seen)) + self.beta(seen)


class ResidualBlock(nn.Module):
    def __init__(self, channels_in, channels, plan):
        super().__init__()
        self.norm1 = nn.GroupNorm(plan.groups, channels_in)
        self.conv1 = nn.Conv2d(channels_in, channels, 3, padding=1)
        self.motion = MotionCondition(plan.motion_channels, channels)
        self.time = nn.Linear(plan.time_channels, channels)
        self.norm2 = nn.GroupNorm(plan.groups, channels)
        self.conv2 = nn.Conv2d(channels, channels, 3, padding=1)
        self.shortcut = nn.Conv2d(channels_in, channels, 1) if channels_in != channels else nn.Identity()

    def forward(self, x, time, motion):
        h = self.conv1(F.silu(self.norm1(x)))
        h = self.motion(h, motion) + self.time(F.silu(time))[:, :, None, None]
        return self.shortcut(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    """Attention between all places of a map. Naive: the matrix of all pairs is made, in fp32 for the softmax."""

    def __init__(self, channels, head_dim, plan):
        super().__init__()
        self.heads, self.fused = channels // head_dim, plan.fused_attention
        self.norm = nn.GroupNorm(plan.groups, channels)
        self.query, self.key, self.value = (nn.Linear(channels, channels) for _ in range(3))
        self.out = nn.Linear(channels, channels)

    def forward(self, x):
        tokens = self.norm(x).flatten(2).transpose(1, 2)
        q, k, v = (self.split(project(tokens)) for project in (self.query, self.key, self.value))
        mixed = F.scaled_dot_product_attention(q, k, v) if self.fused else self.naive(q, k, v)
        mixed = mixed.transpose(1, 2).flatten(2)
        return x + self.out(mixed).transpose(1, 2).reshape(x.shape)

    def split(self, tokens):
        """(batch, heads, tokens, channels of a head)."""
        return tokens.unflatten(2, (self.heads, -1)).transpose(1, 2)

    @staticmethod
    def naive(q, k, v):
        batch, heads, tokens, width = q.shape
        q, k, v = (x.reshape(batch * heads, tokens, width) for x in (q, k, v))
        # `beta=0` ignores the first argument: the scores are scaled without another matrix.
        nothing = q.new_empty(1).expand(batch * heads, tokens, tokens)
        scores = torch.baddbmm(nothing, q, k.transpose(1, 2), beta=0, alpha=width**-0.5)
        weights = scores.float().softmax(dim=-1).to(v.dtype)
        return torch.bmm(weights, v).reshape(batch, heads, tokens, width)


class Pair(nn.Module):
    """A residual block and, where the level has it, attention: what is worth recomputing as one."""

    def __init__(self, channels_in, channels, head_dim, plan):
        super().__init__()
        self.resnet = ResidualBlock(channels_in, channels, plan)
        self.attention = Attention(channels, head_dim, plan) if head_dim else nn.Identity()

    def forward(self, x, time, motion):
        return self.attention(self.resnet(x, time, motion))


class Level(nn.Module):
    """What the levels of both paths share: their pairs, recomputed in backward if `gradient_checkpointing` is set."""

    def __init__(self, pairs):
        super().__init__()
        self.pairs = nn.ModuleList(pairs)
        self.gradient_checkpointing = False

    def run(self, pair, *inputs):
        return checkpoint(pair, *inputs, use_reentrant=False) if self.gradient_checkpointing else pair(*inputs)


class DownLevel(Level):
    """Pairs, then half the size. Puts out every map in between: the skips of the other path."""

    def __init__(self, channels_in, channels, head_dim, plan, is_last):
        super().__init__(
            Pair(channels_in if number == 0 else channels, channels, head_dim, plan) for number in range(plan.layers)
        )
        self.down = None if is_last else nn.Conv2d(channels, channels, 3, stride=2, padding=1)

    def forward(self, x, time, motion):
        maps = []
        for pair in self.pairs:
            x = self.run(pair, x, time, motion)
            maps.append(x)
        if self.down is not None:
            maps.append(self.down(x))
        return maps


class UpLevel(Level):
    """Pairs that each take one skip, then double the size."""

    def __init__(self, channels_in, skip_channels, channels, head_dim, plan, is_last):
        widths = [channels_in, *[channels] * (len(skip_channels) - 1)]
        super().__init__(
            Pair(before + skip, channels, head_dim, plan) for before, skip in zip(widths, skip_channels, strict=True)
        )
        self.up = None if is_last else nn.Conv2d(channels, channels, 3, padding=1)

    def forward(self, x, skips, time, motion):
        for pair in self.pairs:
            x = self.run(pair, torch.cat([x, skips.pop()], dim=1), time, motion)
        return x if self.up is None else self.up(F.interpolate(x, scale_factor=2.0, mode="nearest"))


class Middle(Level):
    """Residual block, attention, residual block at the smallest size."""

    def __init__(self, channels, head_dim, plan):
        super().__init__([Pair(channels, channels, head_dim, plan), Pair(channels, channels, None, plan)])

    def forward(self, x, time, motion):
        for pair in self.pairs:
            x = self.run(pair, x, time, motion)
        return x
