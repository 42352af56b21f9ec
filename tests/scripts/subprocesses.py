"""Starts another Python that uses the GPU, and a shell command, before it trains."""

import subprocess
import sys

import torch
from torch import nn

child = "import torch; torch.ones(1, device='cuda')"
subprocess.run([sys.executable, "-c", child], check=True)
said = subprocess.run("echo the shell works", shell=True, check=True, capture_output=True, text=True)
assert said.stdout == "the shell works\n", said
print(said.stdout, end="")

device = "cuda"
model = nn.Sequential(nn.Linear(256, 1024), nn.Tanh(), nn.Linear(1024, 256)).to(device)
optimizer = torch.optim.Adam(model.parameters())

for step in range(50):
    rows = torch.randn(64, 256).to(device)
    loss = nn.functional.mse_loss(model(rows), rows)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
