"""Says which collectives a rank makes and with which shapes: over gloo in real processes, or over NCCL on the phantom."""

import json
import os
import sys

import torch
import torch.distributed as dist
from torch import nn


def main(backend):
    dist.init_process_group(backend)
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if backend == "nccl" else torch.device("cpu")
    if backend == "nccl":
        torch.cuda.set_device(device)
    rank, size = dist.get_rank(), dist.get_world_size()
    calls = []

    def seen(name, tensor):
        calls.append([name, list(tensor.shape), str(tensor.dtype)])
        return tensor

    def hook(_, bucket):
        work = dist.all_reduce(seen("bucket", bucket.buffer()).div_(size), async_op=True)
        return work.get_future().then(lambda future: future.value()[0])

    model = nn.parallel.DistributedDataParallel(nn.Sequential(nn.Linear(64, 256), nn.ReLU(), nn.Linear(256, 10)).to(device))
    model.register_comm_hook(None, hook)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for step in range(2):
        # How many rows a rank has is told to the others, who pad to the most.
        counts = [torch.zeros(1, dtype=torch.long, device=device) for _ in range(size)]
        dist.all_gather(counts, seen("all_gather", torch.tensor([8 + step], device=device)))
        rows = max(int(count) for count in counts)
        model(torch.randn(rows, 64, device=device)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        total = torch.tensor([1.0 + step], device=device)
        dist.all_reduce(seen("all_reduce", total))
        calls.append(["total", total.item()])
    names = [None] * size
    dist.all_gather_object(names, "rank")
    flag = torch.tensor([5 if rank == 0 else 0], device=device)
    dist.broadcast(seen("broadcast", flag), 0)
    calls.append(["flag", flag.item(), names])
    dist.barrier()
    os.write(1, f"CALLS {json.dumps([rank, calls])}\n".encode())  # at once: two ranks write to one pipe
    dist.destroy_process_group()


if __name__ == "__main__":
    main(sys.argv[1])
