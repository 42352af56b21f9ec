"""Hands what was recorded to experiment trackers that are in use: nothing is imported that is not there already."""

from __future__ import annotations

import contextlib
import sys
from typing import Any

GIB = 1 << 30


def numbers(report: dict[str, Any]) -> dict[str, float]:
    """The peak and what holds it, in GiB, by names as trackers group them."""
    peak = report["peak"]
    found = {f"memory/{name}_GiB": peak[f"{name}_bytes"] / GIB for name in ("allocated", "reserved")}
    found.update({f"memory/peak/{row['name']}_GiB": row["bytes"] / GIB for row in report["categories"]})
    return found


def to_wandb(report: dict[str, Any], page: str) -> None:
    """As a summary of the run: its steps are not touched."""
    wandb = sys.modules.get("wandb")
    run = getattr(wandb, "run", None)
    if wandb is None or run is None:
        return
    run.summary.update(numbers(report))
    with open(page, encoding="utf-8") as file:
        run.summary.update({"memory/page": wandb.Html(file.read(), inject=False)})


def to_tensorboard(report: dict[str, Any], writer: Any, step: int) -> None:
    """`writer` is a `SummaryWriter`."""
    for name, value in numbers(report).items():
        writer.add_scalar(name, value, step)
    causes = [f"- {finding['title']}: {finding['bytes'] / GIB:.2f} GiB" for finding in report["findings"] if finding["counted"]]
    writer.add_text("memory/causes", "\n".join(causes), step)
    writer.flush()


def to_tensorboard_folder(report: dict[str, Any], folder: str, step: int) -> None:
    """For frameworks that do not give their writer away. Does nothing without TensorBoard."""
    with contextlib.suppress(ImportError):
        from torch.utils.tensorboard import SummaryWriter

        with SummaryWriter(log_dir=folder) as writer:
            to_tensorboard(report, writer, step)
