"""Ranks of many worlds, each a fork of one process: `fathom run --steps 0 --out DIR -- python ranks_all.py FOLDER CASE…`.

A case is WAY:SIZE:RANK[:CARDS], with a way of ranks.py, or `shapes`, and as many cards in a node. What a launcher would set is set in
the fork, before it joins its world. FOLDER/<case> says in which process it ran and on which card: its recording is
DIR/recording.<pid>.<card>.fathom.
"""

import os
import sys
from pathlib import Path

import torch._dynamo  # the first optimizer of each case would import it
import torch.distributed.nn.functional
import torch.distributed.optim
import torch.distributed.pipelining
import torch.distributed.tensor.parallel

sys.path.insert(0, str(Path(__file__).resolve().parent / "scripts"))
import forks
import ranks
import ranks_shapes

STEPS = 3


def join(size, rank, cards, letters):
    numbers = {"WORLD_SIZE": size, "RANK": rank, "LOCAL_RANK": rank % cards, "LOCAL_WORLD_SIZE": cards, "MASTER_PORT": 29500}
    ours = {"FATHOM_WORLD_SIZE": size, "FATHOM_RANK": rank, "FATHOM_DEVICES": cards, "FATHOM_LETTERS": letters}
    nccl = {"TORCH_NCCL_RANKS_PER_ROOT": 1 << 20, "TORCH_NCCL_ENABLE_MONITORING": 0}
    os.environ.update({name: str(value) for name, value in {**numbers, **ours, **nccl}.items()}, MASTER_ADDR="127.0.0.1")
    from fathom._doorway import world  # the doorway's, which the phantom has loaded

    world.install()


def run(case, folder):
    way, size, rank, *cards = case.split(":")
    join(int(size), int(rank), int(cards[0]) if cards else min(int(size), 8), folder / "letters" / case)
    ranks_shapes.main() if way == "shapes" else ranks.run(way, STEPS)
    (folder / case).write_text(f"{os.getpid()}.{torch.cuda.current_device()}")


if __name__ == "__main__":
    forks.each(sys.argv[2:], lambda case: run(case, Path(sys.argv[1])))
