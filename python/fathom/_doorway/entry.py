"""Opened by the phantom while a process imports torch: installs what `fathom run` asked for.

The user's set-up is left alone. Promises needed: Python's import system marks a module that is being
imported, and whatever is queued with `torch.cuda._lazy_call` runs when CUDA is initialised, before the
first allocation.
"""

import os
import sys

from .. import contract


def open():
    """Go on when torch is imported: this runs in the middle of that."""
    try:
        from .border import DOORWAY
    except Exception as error:  # our own library is missing, or of another kind of machine
        print(f"fathom: the doorway could not be opened: {type(error).__name__}: {error}", file=sys.stderr)
        return
    torch = sys.modules.get("torch")
    spec = getattr(torch, "__spec__", None)
    if spec is not None and getattr(spec, "_initializing", False):
        when_imported(spec, DOORWAY.callback(ready))
    elif torch is not None:
        DOORWAY.contain("the doorway", ready)


def ready():
    """Torch is there; the card is not used yet. What goes wrong in one part leaves the others alone."""
    from .border import DOORWAY

    folder = os.environ.get(contract.RUN)
    if os.environ.get(contract.CONFINED):
        confine(folder)
    if folder:
        DOORWAY.contain("an early end", note_early_end, folder)
    DOORWAY.contain("chance", follow_chance)
    DOORWAY.contain("tuning", shorten_searches)
    if os.environ.get(contract.WORLD_SIZE):
        join_world()
    if os.environ.get(contract.SOURCES) == "on" and folder:
        DOORWAY.contain("sources", note_sources, folder)
    if os.environ.get(contract.LEVERS):
        DOORWAY.contain("levers", apply_levers, folder)
    if os.environ.get(contract.FLOPS) == "on" and folder:
        DOORWAY.contain("flops", count_flops, folder)
    DOORWAY.contain("the watch", wait_for_the_card)


def confine(folder):
    """First of all: nothing of the user's may be written over. Only what is confined may be shortened."""
    from . import confined, whole

    confined.install(folder)
    if os.environ.get(contract.WHOLE) and not confined.is_started_by_script():
        whole.install()


def note_early_end(folder):
    from . import early_end

    early_end.install(folder)


def follow_chance():
    from . import chance

    chance.install()


def shorten_searches():
    from . import tuning

    tuning.install()


def note_sources(folder):
    from . import sources

    sources.install(folder)


def apply_levers(folder):
    import json

    from . import levers

    levers.install(json.loads(os.environ[contract.LEVERS]), folder)


def count_flops(folder):
    from . import flops

    flops.install(folder)


def wait_for_the_card():
    import torch

    from . import functions, lazy_compiler
    from .border import DOORWAY

    lazy_compiler.install(functions.hide_from)
    torch.cuda._lazy_call(DOORWAY.callback(watch_the_card))
    with_values = os.environ.get(contract.VALUES, "on") != "off"
    if with_values or os.environ.get(contract.RECORD, "on") != "off":
        from .values import values

        functions.install().compute_values(values.install() if with_values else None)


def join_world():
    """A rank that waited for the others would wait for ever: if they cannot be stood in for, it ends here."""
    try:
        from . import world

        world.install()
    except Exception as error:
        print(f"fathom: the other ranks cannot be stood in for: {type(error).__name__}: {error}", file=sys.stderr)
        os._exit(3)


def watch_the_card():
    """Runs when CUDA is initialised, before the first allocation."""
    from . import chance, watch

    chance.seed_cards()
    folder, steps = os.environ.get(contract.RUN), int(os.environ.get(contract.STEPS) or 0)
    watch.install(folder, steps, is_recording=os.environ.get(contract.RECORD, "on") != "off")


def when_imported(spec, then):
    """The import system itself says when a module is complete: it clears a flag of the module's spec."""

    class Spec(type(spec)):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "_initializing" and not value:
                self.__class__ = Spec.__base__
                then()

    spec.__class__ = Spec
