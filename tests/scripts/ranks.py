"""A model of two blocks in every way of training on several cards: ranks.py WAY, or ranks.py --strategy WAY.

The world comes from the launcher, as with torchrun.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import CPUOffloadPolicy, MixedPrecisionPolicy, fully_shard

WIDTH, BATCH, BLOCKS = 1024, 16, 2
ROWS = 4096  # of a batch, where activations are to be seen


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


def sequence_parallel(model):
    """Between the blocks a rank has a part of the rows; inside of them all rows, and a part of the columns."""
    from torch.distributed.tensor import Shard
    from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

    mesh = init_device_mesh("cuda", (dist.get_world_size(),))
    ways = {"up": ColwiseParallel(input_layouts=Shard(0)), "down": RowwiseParallel(output_layouts=Shard(0))}
    for block in model.cuda():
        parallelize_module(block, mesh, ways)
    return model


def fsdp1(model):
    from torch.distributed.fsdp import FullyShardedDataParallel
    from torch.distributed.fsdp.wrap import ModuleWrapPolicy

    return FullyShardedDataParallel(model.cuda(), auto_wrap_policy=ModuleWrapPolicy({Block}))


class Experts(nn.Module):
    """One expert on each rank: rows go to their expert's rank and come back."""

    def __init__(self, size):
        super().__init__()
        self.gate, self.expert = nn.Linear(WIDTH, size), Block()

    def forward(self, x):
        from torch.distributed.nn.functional import all_to_all_single

        there = all_to_all_single(torch.empty_like(x), x)
        back = self.expert(there)
        return all_to_all_single(torch.empty_like(back), back) * self.gate(x).softmax(-1).amax(-1, keepdim=True)


def experts(model):
    return nn.Sequential(*[Experts(dist.get_world_size()) for _ in model]).cuda()


def zero(model):
    return ddp(model)


def optimizer_of(model, way):
    if way == "zero":
        from torch.distributed.optim import ZeroRedundancyOptimizer

        return ZeroRedundancyOptimizer(model.parameters(), optimizer_class=torch.optim.AdamW, lr=1e-3)
    return torch.optim.AdamW(model.parameters(), lr=1e-3)


def train(way, steps):
    model = globals()[way](nn.Sequential(*[Block() for _ in range(BLOCKS)]))
    optimizer = optimizer_of(model, way)
    rows = ROWS if way in ("tensor_parallel", "sequence_parallel", "experts") else BATCH
    for _ in range(steps):
        loss = model(torch.randn(rows, WIDTH, device="cuda")).float().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()


def pipeline(steps, **shapes):
    """A stage for each rank, with blocks of its own; the shapes of activations go from stage to stage."""
    from torch.distributed.pipelining import PipelineStage, Schedule1F1B

    rank, size = dist.get_rank(), dist.get_world_size()
    model = nn.Sequential(*[Block() for _ in range(BLOCKS)]).cuda()
    stage = PipelineStage(model, rank, size, torch.device("cuda"), **shapes)
    schedule = Schedule1F1B(stage, n_microbatches=8, loss_fn=lambda y, target: (y - target).square().mean())
    optimizer = torch.optim.AdamW(stage.submod.parameters(), lr=1e-3)
    x, target = (torch.randn(8 * ROWS, WIDTH, device="cuda") for _ in range(2))
    for _ in range(steps):
        given = (x,) if rank == 0 else ()
        schedule.step(*given, **({"target": target} if rank == size - 1 else {}))
        optimizer.step()
        optimizer.zero_grad()


def pipeline_static(steps):
    """The same, and every stage knows the shapes."""
    example = torch.empty(ROWS, WIDTH, device="meta", requires_grad=True)
    pipeline(steps, input_args=(example,), output_args=(example,))


def run(way, steps):
    torch.cuda.set_device(int(os.environ.get("LOCAL_RANK", 0)))
    if way != "alone":
        dist.init_process_group("nccl")
    globals()[way](steps) if way.startswith("pipeline") else train(way, steps)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("way", nargs="?", default="ddp")
    parser.add_argument("--strategy")
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    run((options.strategy or options.way).replace("-", "_"), options.steps)


if __name__ == "__main__":
    main()
