"""Records a training on the GPU that it runs on, a real one too, and writes what was seen as files.

    monitor = fathom.Monitor("memory", steps=5)
    monitor.start()
    for batch in loader:
        train(batch)
        monitor.step()               # after the fifth: memory/report.txt, memory/report.json, memory/page.html

If the training ends earlier, by an out-of-memory error too, the files are written when the process ends, or in a notebook
when its cell does. Nothing here may end a training: what goes wrong is said on the standard error.
"""

from __future__ import annotations

import atexit
import contextlib
import glob
import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

from . import binary
from .recording import record

# Seconds that the command may take to read a recording.
PATIENCE = 300

Listener = Callable[[dict[str, Any], str], None]


class Monitor:
    """Records the first steps of a training. `listener` is handed the report (`fathom.explain/1`) and the page's path."""

    def __init__(self, folder: str | os.PathLike[str] = "fathom-memory", steps: int = 5, listener: Listener | None = None) -> None:
        if steps < 1:
            raise ValueError(f"steps is {steps}: at least one step is recorded")
        self.folder = os.path.abspath(folder)
        self.steps = steps
        self.listener = listener
        self.seen = 0
        self._recording: contextlib.ExitStack | None = None

    def start(self) -> None:
        """Records from here on. Does nothing while it records already."""
        if self._recording is not None:
            return
        recording = contextlib.ExitStack()
        try:
            recording.enter_context(record(self.folder))
        except Exception as error:
            say(f"not recorded: {error}")
            return
        self.seen, self._recording = 0, recording
        atexit.register(self.finish)
        at_end_of_cell(self.finish)

    def step(self) -> None:
        """One optimizer step is over."""
        self.seen += 1
        if self.seen == self.steps:
            self.finish()

    def finish(self) -> None:
        """Ends the recording and writes the files. Does nothing if there is none."""
        recording, self._recording = self._recording, None
        if recording is None:
            return
        atexit.unregister(self.finish)
        try:
            recording.close()
            files = glob.glob(os.path.join(glob.escape(self.folder), f"recording.{os.getpid()}.*.fathom"))
            report, page = explain(self.folder, sorted(files))
            if report is not None and self.listener is not None:
                self.listener(report, page)
        except Exception as error:
            say(f"the recording in {self.folder} could not be explained: {error}")


def explain(folder: str, files: list[str]) -> tuple[dict[str, Any] | None, str]:
    """Has the command read recordings or snapshots, and write into the folder: the report, and where the page is."""
    text, report, page = (os.path.join(folder, name) for name in ("report.txt", "report.json", "page.html"))
    program = binary.find()
    if not files:
        say("nothing was recorded")
        return None, page
    if program is None:
        say(f"the command `fathom` was not found\nhint: where it is installed, `fathom explain {files[0]}`")
        return None, page
    with open(text, "w", encoding="utf-8") as output:
        ask([program, "explain", *files, "--json", report], output)
    ask([program, "page", *files, "-o", page], subprocess.DEVNULL)
    say(f"wrote {text} and {page}")
    with open(report, encoding="utf-8") as file:
        return json.load(file), page


def ask(words: list[str], output: Any) -> None:
    """Runs the command; what it refuses is an error with its own words."""
    done = subprocess.run(
        words, stdin=subprocess.DEVNULL, stdout=output, stderr=subprocess.PIPE, text=True, timeout=PATIENCE, check=False
    )
    if done.returncode:
        raise RuntimeError(done.stderr.strip() or f"`fathom {words[1]}` ended with {done.returncode}")


def at_end_of_cell(finish: Callable[[], None]) -> None:
    """A notebook outlives an error in one of its cells."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython is not None else None
    if shell is None:
        return

    def once(*_: object) -> None:
        with contextlib.suppress(ValueError):
            shell.events.unregister("post_run_cell", once)
        finish()

    shell.events.register("post_run_cell", once)


def say(text: str) -> None:
    print(f"fathom: {text}", file=sys.stderr)


def is_main_process() -> bool:
    """By what torchrun, Slurm and the frameworks set."""
    return all(os.environ.get(name, "0") in ("", "0") for name in ("RANK", "SLURM_PROCID", "LOCAL_RANK"))
