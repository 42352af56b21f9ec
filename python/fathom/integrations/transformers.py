"""`Trainer(…, callbacks=[FathomCallback()])`: where the GPU memory of a Hugging Face training goes.

The first steps are recorded, on a real GPU too. Then, or on an out-of-memory error, report and page are written. They go to
TensorBoard and Weights & Biases as well, if the trainer reports there.
"""

from __future__ import annotations

import os
from typing import Any

from transformers import TrainerCallback

from ..monitor import Monitor, is_main_process
from . import trackers


class FathomCallback(TrainerCallback):  # type: ignore[misc]
    """Records the first `steps` optimizer steps of the main process into `folder`; `all_ranks` records every process."""

    def __init__(self, folder: str | os.PathLike[str] = "fathom-memory", steps: int = 5, all_ranks: bool = False) -> None:
        self.monitor = Monitor(folder, steps, self.tell_trackers)
        self.is_wanted = all_ranks or is_main_process()
        self.arguments: Any = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.arguments = args
        if self.is_wanted:
            self.monitor.start()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.monitor.step()

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self.monitor.finish()

    def tell_trackers(self, report: dict[str, Any], page: str) -> None:
        reports_to = getattr(self.arguments, "report_to", None) or []
        if "wandb" in reports_to:
            trackers.to_wandb(report, page)
        if "tensorboard" in reports_to:
            folder = os.environ.get("TENSORBOARD_LOGGING_DIR") or getattr(self.arguments, "logging_dir", None)
            trackers.to_tensorboard_folder(report, folder or os.path.join(self.arguments.output_dir, "runs"), self.monitor.seen)
