"""A training made short, so that its evaluation, its checkpoints and its later epochs are seen.

Asked for by `FATHOM_WHOLE`, in a trial that was forked from the warm process. Kernels do not run, so what the script
would save is not real: before its first line the kernel is told that this process may write nowhere but into the trial's
own folder. If it cannot be told, the trial ends at once.
"""

import json
import os
import sys

from ... import contract
from .. import native
from ..border import DOORWAY

# Folders and devices that every program may write to.
DEVICES = ("null", "zero", "full", "tty", "ptmx", "pts", "shm", "random", "urandom")

# What is compiled is kept there, by the variables that name such folders, or where it is without them.
CACHES = ("TORCHINDUCTOR_CACHE_DIR", "TRITON_CACHE_DIR", "CUDA_CACHE_PATH", contract.CACHE)

ending = None  # says when enough was seen
loaders = None
effects = None


def install(folder):
    """Confines this process, then shortens what it iterates over."""
    asked = json.loads(os.environ[contract.WHOLE])
    scratch = os.path.join(folder, "scratch")
    if not asked.get("is_confined"):
        confine(folder, scratch, asked)
    follow(folder, scratch, asked)


def confine(folder, scratch, asked):
    """Nothing of the script has run yet, and there is one thread: a fork has no more."""
    try:
        if "fathom_warm" not in sys.modules:
            raise OSError("only a process that Fathom has forked can be confined")
        for name in ("files", "tmp"):
            os.makedirs(os.path.join(scratch, name), exist_ok=True)
        native.confine([folder, *writable()])
    except Exception as error:
        with open(os.path.join(folder, contract.UNCONFINED_FILE), "w", encoding="utf-8") as file:
            file.write(str(error))
        os._exit(3)
    # What this process starts is confined with it.
    os.environ[contract.WHOLE] = json.dumps({**asked, "is_confined": True})


def writable():
    """Beside the trial's own folder."""
    home = os.path.expanduser("~")
    named = [os.environ[name] for name in CACHES if os.environ.get(name)]
    user = os.environ.get("USER") or os.environ.get("LOGNAME") or "root"
    usual = [f"{home}/.triton/cache", f"/tmp/torchinductor_{user}", f"{home}/.nv/ComputeCache"]
    caches = [path for path in (*named, *usual) if is_apart(path, home)]
    return [*caches, *(f"/dev/{name}" for name in DEVICES)]


def is_apart(path, home):
    """Whether it is a folder of its own, and not one in which the user's files lie."""
    path = os.path.realpath(path).rstrip("/") + "/"
    return not any((os.path.realpath(other) + "/").startswith(path) for other in (home, os.getcwd()))


def follow(folder, scratch, asked):
    global ending, loaders, effects
    from . import files
    from .effects import Effects
    from .ending import Ending
    from .loaders import Loaders
    from .mirror import Mirror

    allowed = [os.path.realpath(path) for path in (folder, *writable(), "/dev", "/proc", "/sys")]
    mirror = Mirror(os.path.join(os.path.realpath(scratch), "files"), allowed)
    DOORWAY.contain("the mirror of files", files.install, mirror, os.path.join(scratch, "tmp"))
    if asked.get("is_confined"):
        return  # a process that the script has started: only its files are looked after
    from . import trainers

    effects, loaders = Effects(), Loaders(asked["batches"])
    ending = Ending(asked, loaders)
    DOORWAY.contain("effects", effects.install)
    DOORWAY.contain("loaders", loaders.install)
    DOORWAY.contain("trainers", trainers.install, asked["batches"], asked["steps"] or sys.maxsize)


def followed_by(watch):
    """Steps are counted from here on."""
    if effects is not None:
        effects.watch = watch
        watch.ending = ending


def facts():
    """What was iterated over, and what was refused, for the process's file."""
    if loaders is None:
        return {"loaders": [], "refused": []}
    return {"loaders": loaders.facts(), "refused": effects.refused}
