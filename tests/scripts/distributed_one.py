"""DistributedDataParallel over NCCL with one process: torchrun --nproc-per-node 1 distributed_one.py"""

import os

import torch
import torch.distributed as dist
from torch import nn
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.data.distributed import DistributedSampler

BATCH = 64
STEPS = 50


def main():
    local_rank = int(os.environ["LOCAL_RANK"])
    torch.cuda.set_device(local_rank)
    dist.init_process_group("nccl")
    device = torch.device("cuda", local_rank)

    model = nn.Sequential(nn.Linear(1024, 4096), nn.GELU(), nn.Linear(4096, 1000)).to(device)
    model = DistributedDataParallel(model, device_ids=[local_rank])
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)

    count = STEPS * BATCH * dist.get_world_size()
    data = TensorDataset(torch.randn(count, 1024), torch.randint(1000, (count,)))
    loader = DataLoader(data, batch_size=BATCH, sampler=DistributedSampler(data))
    for step, (rows, labels) in enumerate(loader):
        loss = nn.functional.cross_entropy(model(rows.to(device)), labels.to(device))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if dist.get_rank() == 0:
            print(f"step {step} loss {loss.item():.4f}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
