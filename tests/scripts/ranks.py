"""A model of two blocks in every way of training on several cards: ranks.py WAY [--steps N].

The world comes from the launcher, as with torchrun. At the end rank and state are printed as JSON.
"""

import argparse
import json
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

WIDTH, BATCH, BLOCKS = 1024, 16, 2


class Block(nn.Module):
    def __init__(self, width=WIDTH):
        super().__init__()
        self.up = nn.Linear(width, 4 * width)
        self.down = nn.Linear(4 * width, width)

    def forward(self, x):
        return x + self.down(nn.functional.gelu(self.up(x)))


def sharded(model, **options):
    for block in model:
        fully_shard(block, **options)
    return fully_shard(model, **options)


def alone(model):
    return model.cuda()


def ddp(model, **options):
    return nn.parallel.DistributedDataParallel(model.cuda(), device_ids=[torch.cuda.current_device()], **options)


def ddp_views(model):
    return ddp(model, gradient_as_bucket_view=True)


def fsdp2(model):
    return sharded(model.cuda())


def fsdp2_mixed(model):
    return sharded(model.cuda(), mp_policy=MixedPrecisionPolicy(param_dtype=torch.bfloat16))


def fsdp2_offload(model):
    return sharded(model, offload_policy=CPUOffloadPolicy())


def fsdp2_keep(model):
    return sharded(model.cuda(), reshard_after_forward=False)


def hybrid(model):
    """Replicated over nodes, sharded inside of each."""
    nodes = dist.get_world_size() // int(os.environ["LOCAL_WORLD_SIZE"])
    mesh = init_device_mesh("cuda", (nodes, int(os.environ["LOCAL_WORLD_SIZE"])), mesh_dim_names=("replicate", "shard"))
    return sharded(model.cuda(), mesh=mesh)


def tensor_parallel(model):
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    for block in model.cuda():
        parallelize_module(block, mesh, {"up": ColwiseParallel(), "down": RowwiseParallel()})
    return model


def train(model, steps):
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for _ in range(steps):
        loss = model(torch.randn(BATCH, WIDTH, device="cuda")).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def pipeline(steps):
    """Four stages, each with the blocks of its rank; the shapes of activations go from stage to stage."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    rank, size = dist.get_rank(), dist.get_world_size()
    stage = PipelineStage(nn.Sequential(*[Block() for _ in range(BLOCKS)]).cuda(), rank, size, torch.device("cuda"))
    schedule = Schedule1F1B(stage, n_microbatches=8, loss_fn=lambda y, target: (y - target).square().mean())
    optimizer = torch.optim.AdamW(stage.submod.parameters(), lr=1e-3)
    x, target = (torch.randn(8 * BATCH, WIDTH, device="cuda") for _ in range(2))
    for _ in range(steps):
        given = (x,) if rank == 0 else ()
        schedule.step(*given, **({"target": target} if rank == size - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("way")
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    if options.way != "alone":
        dist.init_process_group("nccl")
    if options.way == "pipeline":
        pipeline(options.steps)
    else:
        model = globals()[options.way](nn.Sequential(*[Block() for _ in range(BLOCKS)]))
        train(model, options.steps)


if __name__ == "__main__":
    main()
