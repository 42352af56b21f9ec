"""A small residual network for 64 x 64 images, in plain PyTorch."""

import torch
from torch import nn


class Residual(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, padding=1), nn.BatchNorm2d(width),
        )  # fmt: skip

    def forward(self, x):
        return torch.relu(x + self.layers(x))


stem, head = nn.Conv2d(3, 128, 3, padding=1), nn.Linear(128, 10)
blocks = [Residual(128) for _ in range(6)]
model = nn.Sequential(stem, *blocks, nn.AdaptiveAvgPool2d(1), nn.Flatten(), head).to("cuda")
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

for step in range(100):
    images, labels = torch.randn(256, 3, 64, 64).to("cuda"), torch.randint(10, (256,)).to("cuda")
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
