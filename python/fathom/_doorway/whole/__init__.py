"""A training made short, so that its evaluation, its checkpoints and its later epochs are seen.

Asked for by `FATHOM_WHOLE`, in a process that is confined already: kernels do not run, so what the script would save is not
real.
"""

import json
import os
import sys

from ... import contract
from ..border import DOORWAY

ending = None  # says when enough was seen
loaders = None
awaited = None


def install():
    """Shortens what this process iterates over."""
    global ending, loaders, awaited
    from . import trainers
    from .awaited import Awaited
    from .ending import Ending
    from .loaders import Loaders

    asked = json.loads(os.environ[contract.WHOLE])
    awaited = Awaited()
    loaders = Loaders(asked, awaited)
    ending = Ending(asked, loaders, awaited)
    DOORWAY.contain("evaluations", awaited.install)
    DOORWAY.contain("loaders", loaders.install)
    DOORWAY.contain("trainers", trainers.install, asked["batches"], asked["steps"] or sys.maxsize)


def followed_by(watch):
    """Steps are counted from here on."""
    if ending is not None:
        watch.ending = ending
        loaders.passes_of = watch.passes


def facts():
    """What was iterated over and what was not reached, for the process's file."""
    if loaders is None:
        return {"loaders": [], "unreached": []}
    return {"loaders": loaders.facts(), "unreached": awaited.sites()}
