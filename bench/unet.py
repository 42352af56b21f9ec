"""A U-Net of residual blocks on 128 x 128 images, AdamW: what bench/planner.py plans for."""

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, channels_in, channels):
        super().__init__()
        self.norms = nn.ModuleList((nn.GroupNorm(8, channels_in), nn.GroupNorm(8, channels)))
        self.convs = nn.ModuleList((nn.Conv2d(channels_in, channels, 3, 1, 1), nn.Conv2d(channels, channels, 3, 1, 1)))
        self.skip = nn.Conv2d(channels_in, channels, 1)

    def forward(self, x):
        y = x
        for norm, conv in zip(self.norms, self.convs):
            y = conv(nn.functional.silu(norm(y)))
        return y + self.skip(x)


class UNet(nn.Module):
    def __init__(self, widths=(64, 128, 192, 256)):
        super().__init__()
        self.stem = nn.Conv2d(3, widths[0], 3, 1, 1)
        pairs = list(zip((widths[0], *widths), widths))
        self.down = nn.ModuleList(nn.ModuleList((Residual(a, b), Residual(b, b))) for a, b in pairs)
        self.up = nn.ModuleList(nn.ModuleList((Residual(2 * b, b), Residual(b, a))) for a, b in reversed(pairs))
        self.head = nn.Conv2d(widths[0], 3, 3, 1, 1)

    def forward(self, x):
        x, kept = self.stem(x), []
        for first, second in self.down:
            x = second(first(x))
            kept.append(x)
            x = nn.functional.avg_pool2d(x, 2)
        for first, second in self.up:
            x = nn.functional.interpolate(x, scale_factor=2.0)
            x = second(first(torch.cat((x, kept.pop()), 1)))
        return self.head(x)


if __name__ == "__main__":
    model = UNet().cuda()
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False)
    while True:
        images = torch.randn(16, 3, 128, 128, device="cuda")
        (model(images) - images).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
