"""Records a script on whatever card is there, a real one too: for `fathom explain`, `fathom replay` and the page.

    import fathom

    with fathom.record("run"):       # writes run/recording.<pid>.<device>.fathom
        train()

or, for a whole script, `python -m fathom record train.py …`.
"""

from __future__ import annotations

import contextlib
import os
import runpy
import sys
from collections.abc import Iterator

USAGE = "usage: python -m fathom record [--out FOLDER] SCRIPT [ARGUMENTS…]"


@contextlib.contextmanager
def record(folder: str = "fathom-recording") -> Iterator[str]:
    """Records from here to the end of the block; gives the folder."""
    import torch

    from ._doorway import functions, watch

    if not torch.cuda.is_available():
        raise RuntimeError("fathom.record: torch sees no CUDA device\nhint: `fathom run -- python …` brings one along")
    torch.cuda.init()
    if functions.install().recorder is not None:
        raise RuntimeError("fathom.record: this process is being recorded already")
    os.makedirs(folder, exist_ok=True)
    watching = watch.install(folder, is_recording=True)
    try:
        yield folder
    finally:
        watching.finish()
        if watching.recorder is not None:
            watching.recorder.withdraw()
        watching.withdraw()


def main(words: list[str]) -> int:
    """`python -m fathom WORDS…`; gives the exit code."""
    folder: str | None = "fathom-recording"
    if words[:1] != ["record"]:
        return complain("only `record` is known")
    words = words[1:]
    if words[:1] == ["--out"]:
        folder, words = next(iter(words[1:2]), None), words[2:]
    if folder is None or not words or words[0].startswith("-"):
        return complain("a script is needed")
    if not os.path.isfile(words[0]):
        return complain(f"there is no file {words[0]}")
    sys.argv = words
    sys.path[0] = os.path.dirname(os.path.abspath(words[0]))
    with record(folder):
        runpy.run_path(words[0], run_name="__main__")
    print(f"fathom: recorded in {folder}", file=sys.stderr)
    return 0


def complain(why: str) -> int:
    print(f"fathom: {why}\n{USAGE}", file=sys.stderr)
    return 2
