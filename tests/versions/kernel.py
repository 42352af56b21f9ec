"""A Triton kernel in a training step; prints PyTorch's own peak."""

import torch
import triton
import triton.language as tl


@triton.jit
def double(source, target, count, block: tl.constexpr):
    at = tl.program_id(0) * block + tl.arange(0, block)
    tl.store(target + at, 2 * tl.load(source + at, mask=at < count), mask=at < count)


weight = torch.randn(1 << 20, device="cuda", requires_grad=True)
optimizer = torch.optim.AdamW([weight])
for _ in range(3):
    doubled = torch.empty_like(weight)
    double[(triton.cdiv(weight.numel(), 1024),)](weight, doubled, weight.numel(), block=1024)
    (weight * doubled).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
print("PEAK", torch.cuda.max_memory_allocated())
