"""`Trainer(…, callbacks=[FathomCallback()])`: where the GPU memory of a Lightning training goes.

The first steps are recorded, on a real GPU too. Then, or when the training fails, report and page are written. They go to the
trainer's loggers as well, if these are TensorBoard's or Weights & Biases'.
"""

from __future__ import annotations

import os
from typing import Any

try:
    from lightning.pytorch import Callback
except ImportError:
    from pytorch_lightning import Callback

from ..monitor import Monitor, is_main_process
from . import trackers


class FathomCallback(Callback):  # type: ignore[misc]
    """Records the first `steps` optimizer steps of the main process into `folder`; `all_ranks` records every process."""

    def __init__(self, folder: str | os.PathLike[str] = "fathom-memory", steps: int = 5, all_ranks: bool = False) -> None:
        self.monitor = Monitor(folder, steps, self.tell_trackers)
        self.is_wanted = all_ranks or is_main_process()
        self.trainer: Any = None
        self.done = 0

    def on_train_start(self, trainer: Any, pl_module: Any) -> None:
        self.trainer, self.done = trainer, trainer.global_step
        if self.is_wanted:
            self.monitor.start()

    def on_train_batch_end(self, trainer: Any, pl_module: Any, *_: Any) -> None:
        # Batches whose gradients are only added up are no steps.
        if self.done < trainer.global_step:
            self.done = trainer.global_step
            self.monitor.step()

    def on_train_end(self, trainer: Any, pl_module: Any) -> None:
        self.monitor.finish()

    def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
        self.monitor.finish()

    def tell_trackers(self, report: dict[str, Any], page: str) -> None:
        for logger in self.trainer.loggers:
            writer = getattr(logger, "experiment", None)
            if hasattr(writer, "add_scalar") and hasattr(writer, "add_text"):
                trackers.to_tensorboard(report, writer, self.done)
            elif type(logger).__name__ == "WandbLogger":
                trackers.to_wandb(report, page)
