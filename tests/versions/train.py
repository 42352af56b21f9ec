"""Three steps of a small conv net; prints PyTorch's own peak."""

import torch
from torch import nn

net = nn.Sequential(nn.Conv2d(3, 16, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * 30 * 30, 10)).cuda()
optimizer = torch.optim.AdamW(net.parameters())
for _ in range(3):
    images, labels = torch.randn(8, 3, 32, 32, device="cuda"), torch.zeros(8, dtype=torch.long, device="cuda")
    nn.functional.cross_entropy(net(images), labels).backward()
    optimizer.step()
    optimizer.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())
