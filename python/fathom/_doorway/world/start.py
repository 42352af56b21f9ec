"""What starts ranks starts one: `torchrun`, `accelerate launch`, `mp.spawn`, Lightning's launchers."""

import os
import sys

from ..import_hooks import when_imported
from .patch import WORLD


def install(world):
    spawned = WORLD.callback(lambda module: one_of_spawned(module, world))
    launched = WORLD.callback(lambda module: one_of_launched(module, world))
    when_imported("torch.multiprocessing.spawn", spawned)
    when_imported("torch.distributed.launcher.api", launched)


def one_of_spawned(module, world):
    """`mp.spawn(fn, nprocs=G)`: this rank's index among the processes of its node, in this very process."""

    class Joined:
        """What `join=False` gives."""

        processes, error_files = [], []

        def join(self, *_, **__):
            return True

        def pids(self):
            return [os.getpid()]

    def make_start(inner):
        def start_processes(fn, args=(), nprocs=1, join=True, *_, **__):
            inner.like(fn)(world.rank % max(nprocs, 1), *args)
            return None if join else Joined()

        return start_processes

    def make_spawn(inner):
        start = make_start(inner)
        return lambda fn, args=(), nprocs=1, join=True, *_, **__: start(fn, args, nprocs, join)

    import torch.multiprocessing

    for owner in (module, torch.multiprocessing):
        WORLD.instead(owner, "start_processes", make_start)
        WORLD.instead(owner, "spawn", make_spawn)


def one_of_launched(module, world):
    """The agent of `torchrun` would start a process for each card: it becomes this rank's process instead."""

    def make(inner):
        def __call__(self, *args):
            per_node = getattr(self._config, "nproc_per_node", world.cards_per_node)
            for name, value in of_agent(self._config, world, per_node).items():
                os.environ.setdefault(name, value)
            entrypoint = self._entrypoint or sys.executable
            if callable(entrypoint):
                return {world.rank: inner.like(entrypoint)(*args)}
            sys.stdout.flush()
            sys.stderr.flush()
            return os.execvp(entrypoint, [entrypoint, *map(str, args)])

        return __call__

    WORLD.instead(module.elastic_launch, "__call__", make)


def of_agent(config, world, per_node):
    """What the agent tells its workers besides ranks and sizes, which the launcher has set."""
    return {
        "TORCHELASTIC_RUN_ID": str(getattr(config, "run_id", "") or "fathom"),
        "TORCHELASTIC_RESTART_COUNT": "0",
        "TORCHELASTIC_MAX_RESTARTS": str(getattr(config, "max_restarts", 0)),
        "OMP_NUM_THREADS": "1",
    }
