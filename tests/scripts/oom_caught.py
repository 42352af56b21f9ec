"""Halves the batch whenever the GPU runs out of memory, then trains with the largest that fits."""

import torch
from torch import nn

STEPS = 50

device = "cuda"
model = nn.Sequential(
    nn.Conv2d(3, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
    nn.Conv2d(64, 64, 3, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
    nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 10),
).to(device)  # fmt: skip
optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)


def train_step(batch):
    images = torch.randn(batch, 3, 128, 128, device=device)
    labels = torch.randint(10, (batch,), device=device)
    loss = nn.functional.cross_entropy(model(images), labels)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


batch = 8192
step = 0
while step < STEPS:
    try:
        loss = train_step(batch)
    except torch.OutOfMemoryError:
        if batch == 1:
            raise
        batch //= 2
        print(f"out of memory, trying batch {batch}")
        torch.cuda.empty_cache()
        continue
    print(f"step {step} batch {batch} loss {loss:.4f}")
    step += 1
