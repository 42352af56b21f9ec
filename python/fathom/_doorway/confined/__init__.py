"""A run that nobody asked for by name must leave nothing behind: no file, no upload, no job that it hands in.

Asked for by `FATHOM_CONFINED`. Before the script's first line the kernel is told that this process, and all that it starts,
may write nowhere but into the trial's own folder. A fork of the warm process tells it here; any other command is confined
by `fathom` before it starts. If the kernel cannot be told, the trial ends at once.
"""

import json
import os
import sys

from ... import contract
from .. import native
from ..border import DOORWAY

effects = None
mirror = None  # where it writes, and what it sees


def install(folder):
    asked = json.loads(os.environ[contract.CONFINED])
    scratch = os.path.join(folder, "scratch")
    if asked["by"] == "fork":
        confine(folder, scratch, asked)
    follow(scratch, asked)


def is_started_by_script():
    """Whether the script has started this process: only its files are looked after."""
    asked = os.environ.get(contract.CONFINED)
    return bool(asked) and json.loads(asked)["by"] == "parent" and effects is None


def confine(folder, scratch, asked):
    """Nothing of the script has run yet, and there is one thread: a fork has no more."""
    try:
        if "fathom_warm" not in sys.modules:
            raise OSError("only a process that Fathom has forked can confine itself")
        for name in ("files", "tmp"):
            os.makedirs(os.path.join(scratch, name), exist_ok=True)
        native.confine(asked["writable"])
    except Exception as error:
        with open(os.path.join(folder, contract.UNCONFINED_FILE), "w", encoding="utf-8") as file:
            file.write(str(error))
        os._exit(3)
    # What this process starts is confined with it.
    os.environ[contract.CONFINED] = json.dumps({**asked, "by": "parent"})


def follow(scratch, asked):
    global effects, mirror
    from . import files
    from .mirror import Births, Mirror

    allowed = [os.path.realpath(path) for path in (*asked["writable"], "/dev", "/proc", "/sys")]
    births = Births(*asked["unseen"]) if asked["unseen"] else None
    mirror = Mirror(os.path.join(os.path.realpath(scratch), "files"), allowed, births)
    DOORWAY.contain("the mirror of files", files.install, mirror, os.path.join(scratch, "tmp"))
    if asked["by"] != "parent":
        from .effects import Effects

        effects = Effects()
        DOORWAY.contain("effects", effects.install)


def followed_by(watch):
    """Steps are counted from here on."""
    if effects is not None:
        effects.watch = watch


def refused():
    """What was refused, for the process's file."""
    return effects.refused if effects is not None else []
