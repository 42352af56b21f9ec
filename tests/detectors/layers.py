"""Parameters without gradients, frozen layers, checkpointing that works and that does not, buckets of gradients."""

import torch
from torch import nn
from torch.distributed.fsdp import fully_shard
from torch.utils.checkpoint import checkpoint

from blowups import Calls
from case import fires, randn, spares, train
from copies import wide
from training import mlp

MIB = 1 << 20


def distributed(**options):
    """One process is enough for the wrapper to make its buckets."""
    torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0, world_size=1)
    train(nn.parallel.DistributedDataParallel(wide(2048).cuda(), **options), randn(8, 2048))
    torch.distributed.destroy_process_group()


@fires("gradient-buckets", "a second time", {"bucket-view": "exact"})
def buckets_beside_gradients():
    distributed()
    return 4 * 16 * MIB


@spares("gradient-buckets", "data-parallel", "collectives")
def gradients_in_buckets():
    distributed(gradient_as_bucket_view=True)


@fires("collectives", "weights gathered for use")
def weights_of_two_ranks():
    """The other rank does not run, and nothing waits for it."""
    torch.distributed.init_process_group("nccl", store=torch.distributed.HashStore(), rank=0, world_size=2)
    model = wide(2048).cuda()
    for layer in model:
        fully_shard(layer)
    train(fully_shard(model), randn(8, 2048))
    torch.distributed.destroy_process_group()


# -- parameters ---------------------------------------------------------------------------------------


@fires("unused-parameters", "1 parameter without a gradient", {"remove-unused": "exact"})
def a_layer_that_is_not_called():
    train(Calls(lambda self, x: self.used(x), used=wide(), idle=wide(layers=1)).cuda(), randn(64, 1024))
    return 4 * MIB


@spares("unused-parameters")
def layers_that_are_all_called():
    train(Calls(lambda self, x: self.other(self.used(x)), used=wide(), other=wide(layers=1)).cuda(), randn(64, 1024))


@spares("unused-parameters")
def a_frozen_layer():
    model = Calls(lambda self, x: self.used(self.frozen(x)), used=wide(), frozen=wide(layers=1).requires_grad_(False))
    train(model.cuda(), randn(64, 1024))


@fires("frozen-layers-save", "one flows through them", {"checkpoint": "exact", "half-frozen": "changes numerics"}, without=("freeze",))
def frozen_behind_a_prompt():
    model = Calls(lambda self, x: self.body(x + self.prompt), body=mlp(), prompt=nn.Parameter(torch.zeros(512)))
    model.body.requires_grad_(False)
    train(model.cuda(), randn(16384, 512))
    return 4 * 16384 * 512 * 4


@spares("frozen-layers-save")
def frozen_before_a_head():
    model = Calls(lambda self, x: self.head(self.body(x)), body=mlp().requires_grad_(False), head=nn.Linear(512, 512))
    train(model.cuda(), randn(16384, 512))


@spares("frozen-layers-save")
def frozen_and_without_gradients():
    def forward(self, x):
        with torch.no_grad():
            features = self.body(x)
        return self.head(features)

    train(Calls(forward, body=mlp().requires_grad_(False), head=mlp()).cuda(), randn(16384, 512))


# -- checkpointing ------------------------------------------------------------------------------------


class Body(nn.Module):
    """Blocks and a switch; whether anybody looks at it is another matter."""

    def __init__(self, is_looked_at, is_on=True):
        super().__init__()
        self.gradient_checkpointing, self.is_looked_at = is_on, is_looked_at
        self.blocks = nn.ModuleList(mlp(layers=2) for _ in range(6))

    def forward(self, x):
        for block in self.blocks:
            is_on = self.gradient_checkpointing and self.is_looked_at
            x = checkpoint(block, x, use_reentrant=False) if is_on else block(x)
        return x


@fires("checkpointing-misses", "none of its modules ran again", {"whole-checkpoint": "exact"})
def a_switch_that_nobody_looks_at():
    train(Body(is_looked_at=False).cuda(), randn(16384, 512))
    return 11 * 16384 * 512 * 4  # all inputs of layers but the first, which is no activation


@spares("checkpointing-misses")
def a_switch_that_works():
    train(Body(is_looked_at=True).cuda(), randn(16384, 512))


@spares("checkpointing-misses")
def a_switch_that_is_off():
    train(Body(is_looked_at=False, is_on=False).cuda(), randn(16384, 512))


@fires("checkpointing-misses", "reaches only a part", {"whole-checkpoint": "exact"})
def a_switch_for_the_smaller_part():
    def forward(self, x):
        return self.rest(self.body(x))

    train(Calls(forward, body=Body(is_looked_at=True), rest=mlp(layers=12)).cuda(), randn(16384, 512))
    return 12 * 16384 * 512 * 4
