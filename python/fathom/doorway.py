"""Opened by the phantom while a process imports torch: installs what `fathom run` asked for.

The user's set-up is left alone. The only promise needed from torch is that whatever is queued with
`torch.cuda._lazy_call` runs when CUDA is initialised, before the first allocation.
"""

import importlib.util
import os
import sys


def open():
    """Arrange for :func:`install` to run when this process first uses CUDA."""
    cuda = sys.modules.get("torch.cuda")
    if cuda is not None and hasattr(cuda, "_lazy_call"):
        cuda._lazy_call(install)
    else:
        sys.meta_path.insert(0, _AfterImport("torch.cuda", lambda module: module._lazy_call(install)))


def install():
    """Install the watch and the values in a process that is about to use the card."""
    try:
        from . import values, watch

        watch.install()
        if os.environ.get("FATHOM_VALUES", "on") != "off":
            values.install()
    except Exception as error:  # the user's script matters more than our report of it
        print(f"fathom: the doorway could not be opened: {type(error).__name__}: {error}", file=sys.stderr)


class _AfterImport:
    """A finder that calls `then(module)` once, when the named module has been executed."""

    def __init__(self, name, then):
        self.name, self.then = name, then

    def find_spec(self, name, path=None, target=None):
        if name != self.name:
            return None
        sys.meta_path.remove(self)
        spec = importlib.util.find_spec(name)
        if spec is None or spec.loader is None:
            return spec
        execute = spec.loader.exec_module

        def exec_module(module):
            execute(module)
            self.then(module)

        spec.loader.exec_module = exec_module
        return spec
