"""Groups of some ranks: each gets a communicator of its own, so that the phantom knows its size and this rank's place.

NCCL would split one from its parent, and a split is told neither.
"""

from torch.distributed import distributed_c10d

from .patch import WORLD, replace
from .unanswered import Unanswered


def install(world):
    replace("_get_split_source", lambda inner: lambda *_, **__: None)

    def split_group(inner):
        def split(parent_pg=None, split_ranks=None, timeout=None, pg_options=None, group_desc=None, **_):
            parent = parent_pg or distributed_c10d._get_default_group()
            members = distributed_c10d.get_process_group_ranks(parent)
            own = [[members[rank] for rank in ranks] for ranks in split_ranks or []]
            own = next((ranks for ranks in own if world.rank in ranks), None)
            if own is None:
                return None
            return distributed_c10d.new_group(own, timeout, pg_options=pg_options, group_desc=group_desc)

        return split

    replace("split_group", split_group)
    refuse_rpc(world)


def refuse_rpc(world):
    """Calls into other processes cannot be answered by a process that is alone."""
    import torch.distributed.rpc as rpc

    def init_rpc(*_, **__):
        raise Unanswered(
            f"torch.distributed.rpc.init_rpc calls into the processes of other ranks, and {world.describe()} runs alone"
        )

    WORLD.instead(rpc, "init_rpc", lambda inner: init_rpc)
