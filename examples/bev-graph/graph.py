"""Reasoning between neighbouring cells of the map: three modules that were called the graph module.

- `unfold`: attention of each cell over its 49 neighbours. `F.unfold` copies the whole map 49 times, for keys and for
  values: this is the allocation of 98.00 GiB.
- `depthwise`: what replaced it. A fixed depthwise kernel and one sigmoid gate for each cell and head, so it is another
  function, not the same one in less memory.
- `conv`: what was published in the end, two convolutions and a residual.
"""

import math

import torch
from torch import nn
from torch.nn import functional as F


class ChannelNorm(nn.LayerNorm):
    """Layer norm over the channels of a map."""

    def forward(self, x):
        return super().forward(x.movedim(1, -1)).movedim(-1, 1)


class LocalGraphAttention(nn.Module):
    """Each cell attends to the `kernel` x `kernel` cells around it, with a learnt bias for each of these places."""

    def __init__(self, channels, kernel, heads):
        super().__init__()
        self.kernel, self.heads = kernel, heads
        self.qkv = nn.Conv2d(channels, 3 * channels, 1, bias=False)
        self.place = nn.Parameter(torch.zeros(heads, kernel * kernel))
        self.out = nn.Conv2d(channels, channels, 1, bias=False)

    def forward(self, x):
        batch, channels, rows, columns = x.shape
        q, k, v = self.qkv(x).chunk(3, dim=1)
        q = q.reshape(batch, self.heads, channels // self.heads, rows * columns)
        logits = torch.einsum("bhcn,bhcjn->bhjn", q, self.neighbours(k)) / math.sqrt(channels // self.heads)
        weights = (logits + self.place[:, :, None]).softmax(dim=2)
        mixed = torch.einsum("bhjn,bhcjn->bhcn", weights, self.neighbours(v))
        return self.out(mixed.reshape(batch, channels, rows, columns))

    def neighbours(self, x):
        """(batch, heads, channels, neighbours, cells): 49 copies of the map."""
        padded = F.pad(x, [self.kernel // 2] * 4)
        unfolded = F.unfold(padded, self.kernel)
        return unfolded.view(len(x), self.heads, -1, self.kernel**2, unfolded.shape[-1])


class DepthwiseGate(nn.Module):
    """A depthwise convolution of q, k and v, then v gated by one sigmoid for each cell and head."""

    def __init__(self, channels, kernel, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Conv2d(channels, 3 * channels, 1, bias=False)
        every = 3 * channels
        self.spread = nn.Conv2d(every, every, kernel, padding=kernel // 2, groups=every, bias=False)
        self.out = nn.Conv2d(channels, channels, 1, bias=False)

    def forward(self, x):
        parts = self.spread(self.qkv(x)).chunk(3, dim=1)
        q, k, v = (part.unflatten(1, (self.heads, -1)) for part in parts)
        gate = torch.sigmoid((q * k).sum(dim=2, keepdim=True) / math.sqrt(q.shape[2]))
        return self.out((gate * v).flatten(1, 2))


class AttentionGraph(nn.Module):
    """Layers of one of the two above with residuals and norms, and a projection."""

    def __init__(self, settings):
        super().__init__()
        layer = {"unfold": LocalGraphAttention, "depthwise": DepthwiseGate}[settings.edge_type]
        channels = settings.hidden_channels
        layers = range(settings.num_layers)
        self.layers = nn.ModuleList(layer(channels, settings.kernel_size, settings.num_heads) for _ in layers)
        self.norms = nn.ModuleList(ChannelNorm(channels) for _ in layers)
        self.out = nn.Conv2d(channels, settings.out_channels, 1, bias=False)

    def forward(self, x):
        for layer, norm in zip(self.layers, self.norms, strict=True):
            x = norm(x + layer(x))
        return self.out(x)


class ConvGraph(nn.Module):
    """Convolutions with batch norm and a residual; the last one without its own ReLU."""

    def __init__(self, settings):
        super().__init__()
        count, layers = settings.num_layers, []
        widths = [settings.in_channels, *[settings.hidden_channels] * (count - 1), settings.out_channels]
        for before, after in zip(widths, widths[1:], strict=False):
            conv = nn.Conv2d(before, after, settings.kernel_size, padding=settings.kernel_size // 2, bias=False)
            layers += [conv, nn.BatchNorm2d(after), nn.ReLU(inplace=True)]
        self.layers = nn.Sequential(*layers[:-1])

    def forward(self, x):
        return F.relu(self.layers(x) + x)


def graph_module(settings):
    return ConvGraph(settings) if settings.edge_type == "conv" else AttentionGraph(settings)
