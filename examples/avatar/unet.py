"""A diffusion U-Net for cartoon avatars that is told their attributes, by cross attention and by scale and shift.

The notebook behind the document is not public. This model has every shape the document and its sister posts give: the
chain 3 -> 128 at 64², 256 at 32², 512 at 16², 1024 at 8², 217 attributes in one binary vector, embedded in 1280
numbers by linear layers ("Tau"), attention of four heads twice on the way down and twice on the way up. What they leave
open is as in the MNIST model that the post names as its origin: blocks of convolution, batch norm and GELU, max
pooling, time and context embeddings at each level of the way up. It has 76,520,963 parameters; the document's has
76,464,439, which is 0.07 % less.
"""

import torch
from torch import nn
from torch.nn import functional as F


class ConvBlock(nn.Module):
    """Two times convolution, batch norm, GELU: each of the three saves a map for backward."""

    def __init__(self, channels_in, channels, is_residual=False):
        super().__init__()
        self.is_residual = is_residual
        self.conv1 = self.layer(channels_in, channels)
        self.conv2 = self.layer(channels, channels)

    @staticmethod
    def layer(channels_in, channels):
        return nn.Sequential(nn.Conv2d(channels_in, channels, 3, padding=1), nn.BatchNorm2d(channels), nn.GELU())

    def forward(self, x):
        first = self.conv1(x)
        second = self.conv2(first)
        return (first + second) / 1.414 if self.is_residual else second


class Down(nn.Sequential):
    """More channels, then half the size: the block runs at the size before the pooling."""

    def __init__(self, channels_in, channels):
        super().__init__(ConvBlock(channels_in, channels), nn.MaxPool2d(2))


class Up(nn.Module):
    """Twice the size, beside the map of the way down."""

    def __init__(self, channels_in, channels):
        super().__init__()
        self.up = nn.ConvTranspose2d(channels_in, channels, 2, stride=2)
        self.block = ConvBlock(channels, channels)

    def forward(self, x, skip):
        return self.block(self.up(torch.cat([x, skip], dim=1)))


class Embedding(nn.Sequential):
    """Numbers to a vector for each channel."""

    def __init__(self, numbers, channels):
        super().__init__(nn.Linear(numbers, channels), nn.GELU(), nn.Linear(channels, channels))


class Tau(nn.Sequential):
    """Attributes to their embedding, by a stack of linear layers."""

    def __init__(self, attributes, channels, layers):
        parts = [nn.Linear(attributes, channels)]
        for _ in range(layers - 1):
            parts += [nn.GELU(), nn.Linear(channels, channels)]
        super().__init__(*parts)


class CrossAttention(nn.Module):
    """Each place of the map looks at the embedded attributes."""

    def __init__(self, channels, context_channels, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(channels, channels, bias=False)
        self.key = nn.Linear(context_channels, channels, bias=False)
        self.value = nn.Linear(context_channels, channels, bias=False)
        self.out = nn.Linear(channels, channels)

    def forward(self, x, context):
        places = x.flatten(2).transpose(1, 2)
        q, k, v = self.query(places), self.key(context)[:, None], self.value(context)[:, None]
        q, k, v = (part.unflatten(2, (self.heads, -1)).transpose(1, 2) for part in (q, k, v))
        mixed = F.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2)
        return x + self.out(mixed).transpose(1, 2).reshape(x.shape)


class ContextUnet(nn.Module):
    """`settings` is the part `model` of the configuration."""

    def __init__(self, settings):
        super().__init__()
        width, context = settings.n_feat, settings.context_dim
        half, quarter, eighth = 2 * width, 4 * width, 8 * width
        self.tau = Tau(settings.n_attributes, context, settings.tau_layers)
        self.init = ConvBlock(settings.in_channels, width, is_residual=True)
        self.down1, self.down2, self.down3 = Down(width, half), Down(half, quarter), Down(quarter, eighth)
        self.to_vector = nn.Sequential(nn.AvgPool2d(4), nn.GELU())
        # The embedded attributes stand beside the pooled image.
        from_vector = nn.ConvTranspose2d(2 * eighth, eighth, 4, stride=4)
        self.from_vector = nn.Sequential(from_vector, nn.GroupNorm(8, eighth), nn.ReLU())
        self.up1, self.up2, self.up3 = Up(2 * eighth, quarter), Up(2 * quarter, half), Up(2 * half, width)
        attended = half, quarter, quarter, half
        self.attend = nn.ModuleList(CrossAttention(channels, context, settings.heads) for channels in attended)
        levels = eighth, quarter, half
        self.time = nn.ModuleList(Embedding(1, channels) for channels in levels)
        self.context = nn.ModuleList(Embedding(context, channels) for channels in levels)
        self.out = nn.Sequential(
            nn.Conv2d(half, width, 3, padding=1), nn.GroupNorm(8, width), nn.ReLU(),
            nn.Conv2d(width, settings.in_channels, 3, padding=1),
        )  # fmt: skip

    def forward(self, x, c, t, context_mask):
        """Images, attributes, times in 0 … 1, and for whom the attributes are hidden, to the noise in the images."""
        c = self.tau(c * (1 - context_mask))
        scales = [embed(c)[:, :, None, None] for embed in self.context]
        shifts = [embed(t[:, None])[:, :, None, None] for embed in self.time]

        x = self.init(x)
        down1 = self.attend[0](self.down1(x), c)
        down2 = self.attend[1](self.down2(down1), c)
        down3 = self.down3(down2)
        vector = self.to_vector(down3)
        up = self.from_vector(torch.cat([vector, scales[0].expand_as(vector)], dim=1))
        up = self.attend[2](self.up1(scales[0] * up + shifts[0], down3), c)
        up = self.attend[3](self.up2(scales[1] * up + shifts[1], down2), c)
        up = self.up3(scales[2] * up + shifts[2], down1)
        return self.out(torch.cat([up, x], dim=1))
