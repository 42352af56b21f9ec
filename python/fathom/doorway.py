"""Opened by the phantom while a process imports torch: installs what `fathom run` asked for.

The user's set-up is left alone. Promises needed: Python's import system marks a module that is being
imported, and whatever is queued with `torch.cuda._lazy_call` runs when CUDA is initialised, before the
first allocation.
"""

import os
import sys


def open():
    """Go on when torch is imported: this runs in the middle of that."""
    torch = sys.modules.get("torch")
    spec = getattr(torch, "__spec__", None)
    if spec is not None and getattr(spec, "_initializing", False):
        when_imported(spec, ready)
    elif torch is not None:
        ready()


def ready():
    """Torch is there; the card is not used yet."""
    import torch

    if os.environ.get("FATHOM_WORLD_SIZE"):
        join_world()
    try:
        if os.environ.get("FATHOM_SOURCES") == "on" and os.environ.get("FATHOM_RUN"):
            from . import sources

            sources.install(os.environ["FATHOM_RUN"])
        if os.environ.get("FATHOM_LEVERS"):
            import json

            from . import levers

            levers.install(json.loads(os.environ["FATHOM_LEVERS"]), os.environ.get("FATHOM_RUN"))
        if os.environ.get("FATHOM_FLOPS") == "on" and os.environ.get("FATHOM_RUN"):
            from . import flops

            flops.install(os.environ["FATHOM_RUN"])
        from . import functions, uncompiled

        uncompiled.install(functions.hide_from)
        torch.cuda._lazy_call(watch_the_card)
        with_values = os.environ.get("FATHOM_VALUES", "on") != "off"
        if with_values or os.environ.get("FATHOM_RECORD", "on") != "off":
            from . import values

            functions.install().compute_values(values.install() if with_values else None)
    except Exception as error:  # the user's script matters more than our report of it
        complain(error)


def join_world():
    """A rank that waited for the others would wait for ever: if they cannot be stood in for, it ends here."""
    try:
        from . import world

        world.install()
    except Exception as error:
        complain(error)
        os._exit(3)


def watch_the_card():
    """Runs when CUDA is initialised, before the first allocation."""
    try:
        from . import watch

        folder, steps = os.environ.get("FATHOM_RUN"), int(os.environ.get("FATHOM_STEPS") or 0)
        watch.install(folder, steps, is_recording=os.environ.get("FATHOM_RECORD", "on") != "off")
    except Exception as error:
        complain(error)


def complain(error):
    print(f"fathom: the doorway could not be opened: {type(error).__name__}: {error}", file=sys.stderr)


def when_imported(spec, then):
    """The import system itself says when a module is complete: it clears a flag of the module's spec."""

    class Spec(type(spec)):
        def __setattr__(self, name, value):
            super().__setattr__(name, value)
            if name == "_initializing" and not value:
                self.__class__ = Spec.__base__
                then()

    spec.__class__ = Spec
