"""The recorder's hot paths, written in Rust: `crates/recorder`, a library that lies beside the phantom."""

import importlib.machinery
import importlib.util
import os

from .. import contract

# The folder of `fathom`, written as in the names of our code objects: by it our files are told from others.
PACKAGE = os.path.dirname(os.path.dirname(__file__))

NAME = "fathom_recorder"
LIBRARY = f"lib{NAME}.so"


def find():
    """Where the library is: the launcher says so; without one it is in the package, or in the tree that was built."""
    root = os.path.dirname(os.path.dirname(PACKAGE))
    places = [os.environ.get(contract.RECORDER), f"{PACKAGE}/lib/{LIBRARY}", f"{root}/{LIBRARY}"]
    places += [f"{root}/target/{profile}/{LIBRARY}" for profile in ("release", "debug")]
    for place in places:
        if place and os.path.isfile(place):
            return place
    raise ImportError(f"{LIBRARY} is missing: `make build` makes it in the tree, `pip install .` installs it")


def load():
    """The module of Python that it is."""
    loader = importlib.machinery.ExtensionFileLoader(NAME, find())
    spec = importlib.util.spec_from_file_location(NAME, loader.path, loader=loader)
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    return module


_module = load()
Around, Callback, Instead, Party = _module.Around, _module.Callback, _module.Instead, _module.Party
Functions, HasTorchFunction, ModuleCall = _module.Functions, _module.HasTorchFunction, _module.ModuleCall
RegisterHook, NoteTaker, Within = _module.RegisterHook, _module.NoteTaker, _module.Within
FileOwner, Ledger = _module.FileOwner, _module.Ledger
fail_at, places_passed = _module.fail_at, _module.places_passed
is_mode_alone, set_mode_of_thread = _module.is_mode_alone, _module.set_mode_of_thread
live_objects, confine, born = _module.live_objects, _module.confine, _module.born
follow_c_function = _module.follow_c_function
