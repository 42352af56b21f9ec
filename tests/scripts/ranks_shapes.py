"""Shapes that depend on the rank: each has a batch of its own length, and all of them are gathered."""

import os

import torch
import torch.distributed as dist
from torch import nn

WIDTH, ROWS = 1024, 1024


def main():
    torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl")
    rank, size = dist.get_rank(), dist.get_world_size()
    model = nn.parallel.DistributedDataParallel(nn.Linear(WIDTH, WIDTH).cuda())
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    for _ in range(3):
        out = model(torch.randn(ROWS * (rank + 1), WIDTH, device="cuda"))
        everybody = [torch.empty(ROWS * (other + 1), WIDTH, device="cuda") for other in range(size)]
        dist.all_gather(everybody, out.detach())
        assert [len(part) for part in everybody] == [ROWS * (other + 1) for other in range(size)]
        out.sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    lengths = [torch.zeros(1, dtype=torch.long, device="cuda") for _ in range(size)]
    dist.all_gather(lengths, torch.tensor([len(out)], device="cuda"))
    print("LENGTHS", rank, [int(length) for length in lengths], flush=True)


if __name__ == "__main__":
    main()
