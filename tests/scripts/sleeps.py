"""Hangs for ever after its first step."""

import time

import torch
from torch import nn

device = "cuda"
model = nn.Linear(512, 512).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

for step in range(50):
    loss = model(torch.randn(64, 512, device=device)).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}", flush=True)
    while True:
        time.sleep(1)
