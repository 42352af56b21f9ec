"""A U-Net that denoises images, with skips, attention, bfloat16 casts and an average of its weights."""

import copy

import torch
from torch import nn
from torch.nn import functional as F


class Residual(nn.Module):
    def __init__(self, inputs, outputs, times):
        super().__init__()
        self.norm1, self.conv1 = nn.GroupNorm(8, inputs), nn.Conv2d(inputs, outputs, 3, padding=1)
        self.norm2, self.conv2 = nn.GroupNorm(8, outputs), nn.Conv2d(outputs, outputs, 3, padding=1)
        self.time = nn.Linear(times, outputs)
        self.skip = nn.Conv2d(inputs, outputs, 1) if inputs != outputs else nn.Identity()

    def forward(self, x, t):
        h = self.conv1(F.silu(self.norm1(x)))
        h = h + self.time(F.silu(t))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(h)))


class Attention(nn.Module):
    def __init__(self, channels, heads=4):
        super().__init__()
        self.heads, self.norm = heads, nn.GroupNorm(8, channels)
        self.qkv, self.out = nn.Conv2d(channels, 3 * channels, 1), nn.Conv2d(channels, channels, 1)

    def forward(self, x):
        b, c, h, w = x.shape
        q, k, v = self.qkv(self.norm(x)).reshape(b, 3 * self.heads, c // self.heads, h * w).transpose(2, 3).chunk(3, 1)
        return x + self.out(F.scaled_dot_product_attention(q, k, v).transpose(2, 3).reshape(b, c, h, w))


class UNet(nn.Module):
    def __init__(self, width=64, times=256):
        super().__init__()
        self.width = width
        self.embed = nn.Sequential(nn.Linear(width, times), nn.SiLU(), nn.Linear(times, times))
        self.first = nn.Conv2d(3, width, 3, padding=1)
        sizes = [width, 2 * width, 4 * width]
        self.down = nn.ModuleList(Residual(a, b, times) for a, b in zip([width, *sizes[:-1]], sizes, strict=True))
        self.middle = nn.ModuleList([Residual(sizes[-1], sizes[-1], times), Attention(sizes[-1])])
        self.up = nn.ModuleList(Residual(2 * b, a, times) for a, b in zip([width, *sizes[:-1]], sizes, strict=True))
        self.last = nn.Conv2d(width, 3, 3, padding=1)

    def forward(self, x, t):
        waves = torch.exp(-torch.arange(self.width // 2, device=x.device) / 8) * t[:, None]
        t = self.embed(torch.cat([waves.sin(), waves.cos()], 1))
        x, skips = self.first(x), []
        for block in self.down:
            x = block(x, t)
            skips.append(x)
            x = F.avg_pool2d(x, 2)
        x = self.middle[1](self.middle[0](x, t))
        for block in reversed(self.up):
            x = F.interpolate(x, scale_factor=2, mode="nearest")
            x = block(torch.cat([x, skips.pop()], 1), t)
        return self.last(x)


model = UNet().cuda()
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
for _ in range(3):
    images, t = torch.randn(16, 3, 64, 64, device="cuda"), torch.rand(16, device="cuda")
    noise = torch.randn_like(images)
    noisy = images * (1 - t)[:, None, None, None] + noise * t[:, None, None, None]
    with torch.autocast("cuda", dtype=torch.bfloat16):
        loss = F.mse_loss(model(noisy, t).float(), noise)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    optimizer.zero_grad(set_to_none=True)
    with torch.no_grad():
        for slow, fast in zip(average.parameters(), model.parameters(), strict=True):
            slow.lerp_(fast, 0.01)
