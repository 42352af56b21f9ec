"""What a rank of N costs beside the same model on one card, on the phantom: seconds of a step and of the whole command.

    python3 bench/ranks.py

A decoder of 24 layers, alone and under DDP and FSDP2 in worlds of 8, 64 and 4,096 ranks, of which rank 0 runs. A rank's
time must not grow with N: the other ranks do not run. Processor time is compared, since the machine is shared. What
FSDP2 itself takes is measured with nothing of Fathom's but its libraries, and PyTorch's own fake collectives.
Started with a way it is one case; with a number of ranks too, on fake collectives.
"""

import json
import os
import resource
import statistics
import subprocess
import sys
import time

import tools
from result import FATHOM, PYTHON, Table, save

STEPS, WARM = 8, 3
LAYERS, WIDTH, BATCH, TOKENS = 24, 1024, 4, 512
CASES = [("alone", None), *((way, size) for way in ("ddp", "fsdp2") for size in (8, 64, 4096))]


def join(ranks):
    """A world of this launcher's, or one that PyTorch only plays."""
    import torch.distributed as dist

    if not ranks:
        return dist.init_process_group("nccl")
    from torch.testing._internal.distributed.fake_pg import FakeStore

    return dist.init_process_group("fake", rank=0, world_size=ranks, store=FakeStore())


def measure(way, ranks=0):
    import torch
    from torch import nn
    from torch.distributed.fsdp import fully_shard

    layers = [nn.TransformerEncoderLayer(WIDTH, 16, 4 * WIDTH, batch_first=True) for _ in range(LAYERS)]
    model = nn.Sequential(*layers).cuda()
    if way != "alone":
        join(ranks)
    if way == "ddp":
        model = nn.parallel.DistributedDataParallel(model)
    if way == "fsdp2":
        for layer in model:
            fully_shard(layer)
        fully_shard(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, fused=True)
    seconds = []
    for _ in range(WARM + STEPS):
        began = time.process_time()
        model(torch.randn(BATCH, TOKENS, WIDTH, device="cuda")).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        seconds.append(time.process_time() - began)
    print("RESULT", json.dumps(statistics.median(seconds[WARM:])))


def step_of(output):
    return next(json.loads(line[7:]) for line in output.splitlines() if line.startswith("RESULT "))


def without_fathom(way, size):
    """Processor seconds of a step of PyTorch's own; DDP does not run on fake collectives."""
    if way == "ddp":
        return None
    command = [str(PYTHON), os.path.abspath(__file__), way, str(size or 0)]
    return step_of(subprocess.run(command, env=tools.bare(), capture_output=True, text=True, check=True).stdout)


def case(way, size, record):
    """Processor seconds of a step, and of the whole command."""
    world = ("--world-size", str(size)) if size else ()
    flags = ["--quiet", "--steps", "0", "--gpu", "a100-80g", "--record", record, *world]
    command = [str(FATHOM), "run", *flags, "--", str(PYTHON), os.path.abspath(__file__), way]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    output = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return step_of(output), after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def main():
    rows = []
    for way, size in CASES:
        (bare, _), (recorded, whole) = case(way, size, "off"), case(way, size, "on")
        rows.append([way, size, without_fathom(way, size), bare, recorded, whole])
        print(*rows[-1], flush=True)
    alone = rows[0]
    rows = [[*row, *(value and value / base for value, base in zip(row[2:], alone[2:], strict=True))] for row in rows]
    kinds = ("PyTorch's own step", "step", "recorded step", "whole command")
    columns = {"way": "text", "ranks": "count", **dict.fromkeys(kinds, "seconds")}
    columns.update({f"{kind}, of alone": "ratio" for kind in kinds})
    own, ours, _, whole = (max(filter(None, column)) for column in list(zip(*rows, strict=True))[2 + len(kinds) :])
    notes = [
        f"A whole command takes at most {whole:.2f} times that of one card; the goal is 2 at any number of ranks.",
        f"A step takes up to {ours:.2f} times a step on one card; PyTorch's own with fake collectives, up to {own:.2f} times.",
    ]
    about = f"Processor time of rank 0 of N beside the same decoder ({LAYERS} layers of {WIDTH}) on one card; {WARM + STEPS} steps."
    table = Table("", columns, rows, notes)
    save("ranks", "One rank of N", about, "python3 bench/ranks.py", [table])


if __name__ == "__main__":
    measure(sys.argv[1], *map(int, sys.argv[2:])) if len(sys.argv) > 1 else main()
