"""DiT3D: a video diffusion model around an image transformer.

The backbone sees single frames and gives one vector for each. Between these vectors there is attention over time;
then text modulates them, and convolutions make frames out of them again. Unless `freeze_backbone` is off, only what
comes after the backbone is trained.
"""

import torch
import torch.nn.functional as F
from torch import nn

from dit import SIZES, DitBackbone


class TextProjection(nn.Module):
    """The text's features; in training some texts are left out, for guidance without a classifier."""

    def __init__(self, text, width, dropout=0.1):
        super().__init__()
        self.dropout = dropout
        self.layers = nn.Sequential(nn.Linear(text, width), nn.GELU(), nn.Dropout(dropout), nn.Linear(width, width))

    def forward(self, text):
        if self.training:
            kept = torch.rand(len(text), 1, device=text.device) >= self.dropout
            text = text * kept
        return self.layers(text)


class TemporalAttention(nn.Module):
    """A transformer layer over the frames of a video, one vector a frame."""

    def __init__(self, width, frames, heads=8, dropout=0.1):
        super().__init__()
        self.positions = nn.Parameter(0.02 * torch.randn(1, frames, width))
        self.attention = nn.MultiheadAttention(width, heads, dropout, batch_first=True)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.feed_forward = nn.Sequential(
            nn.Linear(width, 4 * width),
            nn.GELU(),
            nn.Dropout(dropout),
            nn.Linear(4 * width, width),
            nn.Dropout(dropout),
        )

    def forward(self, x):
        x = x + self.positions
        x = self.norm1(x + self.attention(x, x, x)[0])
        return self.norm2(x + self.feed_forward(x))


class Film(nn.Module):
    """The condition scales and shifts the features."""

    def __init__(self, width):
        super().__init__()
        self.projection = nn.Linear(width, 2 * width)

    def forward(self, x, condition):
        scale, shift = self.projection(condition).unsqueeze(1).chunk(2, dim=-1)
        return x * (1 + scale) + shift


def group_norm(channels):
    """A group norm with the most groups up to eight that divide the channels."""
    return nn.GroupNorm(next(groups for groups in (8, 4, 2, 1) if channels % groups == 0), channels)


class FrameDecoder(nn.Module):
    """Makes a frame of 128 x 128 out of a vector, then resizes it."""

    def __init__(self, width, channels, size):
        super().__init__()
        self.channels, self.size = channels, size
        self.start = nn.Sequential(
            nn.Linear(width, width), nn.LayerNorm(width), nn.GELU(), nn.Linear(width, channels * 8 * 8)
        )
        layers = []
        for inputs, outputs in ((channels, 2 * channels), (2 * channels, 2 * channels), (2 * channels, channels)):
            layers += [nn.ConvTranspose2d(inputs, outputs, 4, stride=2, padding=1), group_norm(outputs), nn.GELU()]
        self.upwards = nn.Sequential(*layers, nn.ConvTranspose2d(channels, channels, 4, stride=2, padding=1))

    def forward(self, features):
        frames = self.upwards(self.start(features).view(-1, self.channels, 8, 8))
        if frames.shape[-2:] != self.size:
            frames = F.interpolate(frames, size=self.size, mode="bilinear")
        return frames


class Dit3d(nn.Module):
    """Predicts the noise in a video, and with `learn_sigma` also its variance."""

    def __init__(self, name, video, text=768, learn_sigma=False, freeze_backbone=True, **of_blocks):
        """`name` is such as `DiT3D-Tiny/4`, `video` is (frames, height, width), `text` the width of its features.

        `of_blocks` are the backbone's `fused_attention` and `checkpoint_blocks`.
        """
        super().__init__()
        size, patch = self.parse(name)
        frames, *image = video
        channels = 6 if learn_sigma else 3
        self.backbone = DitBackbone(size, patch, max(image), freeze_backbone, **of_blocks)
        self.text = TextProjection(text, size.width)
        self.temporal = TemporalAttention(size.width, frames)
        self.films = nn.ModuleList(Film(size.width) for _ in range(3))
        self.mix = nn.Sequential(nn.Linear(size.width, size.width), nn.GELU(), nn.Linear(size.width, size.width))
        self.decoder = FrameDecoder(size.width, channels, tuple(image))
        self.smooth = nn.Sequential(
            nn.Conv3d(channels, 2 * channels, 3, padding=1),
            group_norm(2 * channels),
            nn.GELU(),
            nn.Conv3d(2 * channels, channels, 3, padding=1),
        )

    @staticmethod
    def parse(name):
        """The size and the patch of a name; the name is all that decides about the patch."""
        size, _, patch = name.removeprefix("DiT3D-").partition("/")
        if size not in SIZES or patch not in ("2", "4"):
            raise SystemExit(f"error: unknown model `{name}`\nhint: one of {', '.join(SIZES)}, then /2 or /4")
        return SIZES[size], int(patch)

    def forward(self, video, steps, text):
        """(batch, 3, frames, height, width), (batch,), (batch, text) -> the noise, and the variance if learned."""
        batch, _, frames, *_ = video.shape
        features = self.backbone(video.transpose(1, 2).flatten(0, 1), steps.repeat_interleave(frames))
        features = self.temporal(features.view(batch, frames, -1))
        condition = self.text(text)
        for film in self.films:
            features = film(features, condition)
        made = self.decoder(self.mix(features).flatten(0, 1))
        made = self.smooth(made.view(batch, frames, *made.shape[1:]).transpose(1, 2))
        noise, variance = made[:, :3], made[:, 3:]
        return torch.cat((noise + video, variance), dim=1) if variance.shape[1] else noise + video
