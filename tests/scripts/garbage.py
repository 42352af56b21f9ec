"""How often Python collects garbage while a deep model trains."""

import gc

import torch

layers = [part for _ in range(60) for part in (torch.nn.Linear(256, 256), torch.nn.GELU(), torch.nn.LayerNorm(256))]
model = torch.nn.Sequential(*layers).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for step in range(12):
    if step == 2:
        before = gc.get_stats()[0]["collections"]
    kept = [[number] for number in range(5000)]  # a script's own objects: several collections in each step
    model(torch.randn(512, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("collections", gc.get_stats()[0]["collections"] - before)
