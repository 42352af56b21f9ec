"""Three steps of a compiled block; prints PyTorch's own peak."""

import torch
from torch import nn

block = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1024), nn.LayerNorm(1024)).cuda()
compiled = torch.compile(block)
optimizer = torch.optim.AdamW(block.parameters())
for _ in range(3):
    compiled(torch.randn(4096, 1024, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())
