"""Weights, gradients and the optimizer's state in shards on several GPUs (FSDP2). A proposal: more GPUs are the user's to have.

The trial is rank 0 of so many; each keeps the whole batch of the script, so that is the most a rank needs.
"""

import sys

import torch

from ..edits import Blocked
from ..modules import Modules
from .moments import replace

CHANGE = """torch.distributed.init_process_group("nccl")   # started by torchrun --nproc-per-node N
for block in model.blocks: torch.distributed.fsdp.fully_shard(block)
torch.distributed.fsdp.fully_shard(model)   # before the optimizer is made; each rank takes its part of the batch"""
ABSENT = "no optimizer of a model's parameters was made"

# Their own arguments shard a model.
FRAMEWORKS = ("accelerate", "lightning", "pytorch_lightning", "deepspeed")


def apply(options, outcome):
    def make(inner):
        def __init__(optimizer, params, defaults):
            return inner(optimizer, outcome.party.contain("shards", sharded, list(params), outcome) or params, defaults)

        return __init__

    return replace(outcome, torch.optim.Optimizer, "__init__", make)


def sharded(params, outcome):
    """The parameters, or the groups of them, as they are when their models have been sharded."""
    framework = next((name for name in FRAMEWORKS if name in sys.modules), None)
    if framework is not None:
        outcome.reason = f"{framework} shards models by arguments of its own"
        return params
    if torch.distributed.is_initialized():
        outcome.reason = "the script is one of several ranks already"
        return params
    groups = [dict(one) if isinstance(one, dict) else one for one in params]
    each = [p for one in groups for p in (members(one) if isinstance(one, dict) else [one])]
    places = places_of({id(p) for p in each})
    if not places:
        return params
    torch.cuda.set_device(0)
    torch.distributed.init_process_group("nccl")
    for root in {id(root): root for root, _, _ in places.values()}.values():
        shard(root)
        outcome.took(type(root).__name__, "")
    outcome.edits.contain(by_hand)

    def now(p):
        return getattr(places[id(p)][1], places[id(p)][2]) if id(p) in places else p

    return [{**one, "params": [now(p) for p in members(one)]} if isinstance(one, dict) else now(one) for one in groups]


def members(group):
    params = group["params"]
    group["params"] = [params] if isinstance(params, torch.Tensor) else list(params)  # it may be a generator
    return group["params"]


def places_of(wanted):
    """Of each parameter its root, its module and its name there."""
    modules = Modules()
    modules.search()
    found = {}
    for root, _ in modules.living_roots():
        for module in root.modules():
            for name, parameter in module._parameters.items():
                if id(parameter) in wanted:
                    found.setdefault(id(parameter), (root, module, name))
    return found


def shard(root):
    """Numbered blocks one by one, then what is left: as people write it."""
    from torch.distributed.fsdp import fully_shard

    for path, module in list(root.named_modules()):
        numbers = [part for part in path.split(".") if part.isdigit()]
        if len(numbers) == 1 and path.endswith(numbers[0]) and any(True for _ in module.parameters()):
            fully_shard(module)
    fully_shard(root)


def by_hand(edits):
    raise Blocked("", "sharding over several GPUs is written by hand; a rank with its part of the batch needs less than this")
