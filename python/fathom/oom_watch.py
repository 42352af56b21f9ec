"""`fathom.on_oom()`, once, before training: an out-of-memory error leaves a report of who held the memory.

PyTorch calls an observer when a request cannot be met, before the exception is raised. It writes a memory snapshot; the
command reads it when the process ends, or in a notebook when its cell does. Errors that a script catches are seen too.
"""

from __future__ import annotations

import atexit
import os

from .monitor import at_end_of_cell, explain, say


def on_oom(folder: str | os.PathLike[str] = "fathom-oom", *, history: int = 100_000) -> None:
    """Watches for the first out-of-memory error of this process. `history` is how many events of PyTorch's allocator are
    kept, so that the report can name lines; 0 keeps none, and the report names sizes alone."""
    import torch

    if not torch.cuda.is_available():
        raise RuntimeError("fathom.on_oom: torch sees no CUDA device\nhint: `fathom run python …` brings one along")
    torch.cuda.init()
    if 0 < history:
        torch.cuda.memory._record_memory_history(max_entries=history)
    torch._C._cuda_attach_out_of_memory_observer(Watch(os.path.abspath(folder)).see)


class Watch:
    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.file: str | None = None

    def see(self, device: int, request: int, total: int, free: int) -> None:
        """The first error counts: what comes after it is often its consequence. Nothing here may hide it."""
        if self.file is not None:
            return
        self.file = os.path.join(self.folder, f"snapshot.{os.getpid()}.pickle")
        try:
            import torch

            os.makedirs(self.folder, exist_ok=True)
            torch.cuda.memory._dump_snapshot(self.file)
            say(f"out of memory on GPU {device} ({request >> 20} MiB wanted, {free >> 20} of {total >> 20} MiB free): wrote {self.file}")
            atexit.register(self.explain)
            at_end_of_cell(self.explain)
        except Exception as error:
            say(f"the out-of-memory error could not be recorded: {error}")

    def explain(self) -> None:
        atexit.unregister(self.explain)
        try:
            explain(self.folder, [self.file] if self.file else [])
        except Exception as error:
            say(f"{self.file} could not be explained: {error}")
