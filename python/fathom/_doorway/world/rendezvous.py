"""The rendezvous: every rank meets at once, whatever the script calls the meeting place."""

import sys
from urllib.parse import parse_qsl, urlparse

import torch.distributed as dist
from torch.distributed import distributed_c10d

from ..border import exchange
from .patch import replace
from .store import WorldStore
from .unanswered import Unanswered, answering

# The function of this name hides the module.
rendezvous = sys.modules["torch.distributed.rendezvous"]


def install(world, mailbox):
    store = WorldStore(world, mailbox)  # one for the process, as a server would be

    @answering
    def meet(url, timeout=None, **_):
        asked = {name: int(value) for name, value in parse_qsl(urlparse(url).query) if value.lstrip("-").isdigit()}
        rank, size = asked.get("rank", world.rank), asked.get("world_size", world.size)
        check(world, world.rank if rank < 0 else rank, world.size if size < 0 else size)
        return iter([(store, world.rank, world.size)])

    for scheme in ("env", "tcp", "file"):
        rendezvous._rendezvous_handlers[scheme] = meet

    def any_store(*_, **__):
        return store

    for name in ("TCPStore", "FileStore"):
        for module in (dist, distributed_c10d, rendezvous):
            if hasattr(module, name):
                exchange(module, name, any_store)
    watch_groups_with_a_store(world, store)
    replace("_store_based_barrier", lambda inner: lambda *_, **__: None)


def watch_groups_with_a_store(world, store):
    """A store that the script made itself, a `HashStore` for one, cannot hold keys of other ranks."""

    def init_process_group(inner):
        def init(*args, **kwargs):
            if kwargs.get("store") is not None:
                check(world, kwargs.get("rank", world.rank), kwargs.get("world_size", world.size))
                kwargs["store"] = dist.PrefixStore("default_pg", store)
            return inner(*args, **kwargs)

        return init

    replace("init_process_group", init_process_group)


def check(world, rank, size):
    """The script's world must be the one that was asked for."""
    if size != world.size:
        raise Unanswered(
            f"init_process_group: the script makes a world of {size} ranks, "
            f"and `fathom run --world-size {world.size}` asks for {world.size}"
        )
    if rank != world.rank:
        raise Unanswered(
            f"init_process_group: the script calls itself rank {rank}, and this process is {world.describe()}"
        )
