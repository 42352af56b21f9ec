"""What begins late in a run: state that is there for some steps only, and memory that no torch function asks for."""

import torch

model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
late = torch.nn.Linear(1024, 2048).cuda()
raw = []
for step in range(16):
    if step == 5:
        optimizer.add_param_group({"params": late.parameters(), "momentum": 0.9})
    if 8 <= step < 12:
        raw.append(torch.cuda.caching_allocator_alloc(1 << 20))  # no function of torch
    loss = model(torch.randn(64, 256, device="cuda")).sum()
    if 5 <= step < 12:
        loss = loss + late(torch.randn(64, 1024, device="cuda")).sum()
    loss.backward()
    if 8 <= step < 12:
        raw.append(torch.cuda.caching_allocator_alloc(1 << 20))  # after a backward pass
    optimizer.step()
    optimizer.zero_grad()
    if step == 12:
        optimizer.state.clear()
        for address in raw:
            torch.cuda.caching_allocator_delete(address)
