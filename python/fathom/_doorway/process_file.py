"""The file in which this process says what was seen of it, in the run's folder."""

import functools
import os
import sys
import threading
import time

import torch

from .. import contract
from . import border, confined, whole
from .texts import as_json
from .values import values

# What was seen is written after a step, but no more often than this: a killed process loses no more.
SECONDS = 0.25


class ProcessFile:
    def __init__(self, folder):
        self.pid = os.getpid()
        self.path = os.path.join(folder, contract.process_file(self.pid)) if folder else None
        self.writing = threading.Lock()
        self.written = 0.0  # when it was

    def is_of_this_process(self):
        """A process that the script forked has a file of its own, or none."""
        return os.getpid() == self.pid

    def is_due(self):
        return time.monotonic() - self.written > SECONDS

    def write(self, watch):
        if self.path is None or not self.is_of_this_process():
            return
        with self.writing:
            self.written = time.monotonic()
            with open(self.path + ".new", "w", encoding="utf-8") as file:
                file.write(as_json(self.summary(watch)))
            os.replace(self.path + ".new", self.path)

    def summary(self, watch):
        return contract.process(
            pid=self.pid,
            **self.software,
            steps=watch.steps_taken(),
            steps_of_all=sum(watch.steps.values()),
            backward_passes=watch.passes[1],
            step_milliseconds=step_milliseconds(*watch.stepped),
            devices=watch.peaks.rows(),
            refusals=watch.refusals[-20:],
            refusal_count=len(watch.refusals),
            decisions=values.decisions(),
            generations=values.generations(),
            rounds=watch.kind_of_rounds(),
            faults=border.faults,
            **whole.facts(),
            refused=confined.refused(),
            end=watch.end,
        )

    @functools.cached_property
    def software(self):
        return {
            "python": ".".join(map(str, sys.version_info[:3])),
            "torch": str(torch.__version__),
            "cuda": torch.version.cuda,
            "cudnn": cudnn_version(),
            "architectures": torch.cuda.get_arch_list(),
        }


def step_milliseconds(before, last):
    return round(1000 * (last - before)) if before else 0


def cudnn_version():
    try:
        return torch.backends.cudnn.version() or 0
    except RuntimeError:  # torch refuses a version older than its own
        return 0
