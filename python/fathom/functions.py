"""Sees every torch function that is called from Python, and lets the values and the recorder take part.

A function mode is used, not a dispatch mode: PyTorch's own code takes other paths while a dispatch mode
is on (gradients are added out of place, for one), and the peaks would not be its own any more.
"""

import functools
import os
import sys
import threading

import torch
from torch.overrides import TorchFunctionMode

from . import unseen
from . import value_rules as rules

# Tensors that nobody has made a class of his own of.
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.nn.Parameter)})


class Functions(TorchFunctionMode):
    """What is done with each function is Rust, `crates/recorder/src/functions.rs`."""

    def __init__(self):
        super().__init__()
        from . import native
        from .card_memory import SMALL_BYTES, SMALL_ELEMENTS
        from .storages import storages

        self.small = native.Small(PLAIN, storages, SMALL_ELEMENTS, SMALL_BYTES)
        settings = {
            "small": self.small,
            "getters": rules.PLAIN_GETTERS,
            "readers": rules.READERS,
            "special": rules.SPECIAL,
            "nothing_to_fill": rules.NOTHING_TO_FILL,
            "not_tensors": rules.NOT_TENSORS,
            "add": torch.Tensor.add_,
            "is_compiling": torch.compiler.is_compiling,
            "is_loading": is_loading,
            "mode": self,
        }
        self.inner = self.__torch_function__ = native.Functions(settings)
        self._recorder = None

    @property
    def recorder(self):
        """Wants to know who allocates; see recorder.py."""
        return self._recorder

    @recorder.setter
    def recorder(self, recorder):
        self._recorder = recorder
        self.inner.set_recorder(recorder, recorder and recorder.scribe)

    def compute_values(self, values):
        """Small results are computed; see values.py."""
        self.inner.set_values(values)


def is_loading():
    """A worker of a data loader has no card: its functions need not be looked at."""
    return torch.utils.data.get_worker_info() is not None


_mode = None


def install():
    """The mode of this process; made once."""
    global _mode
    if _mode is None:
        _mode = Functions()
        enter_thread()
        _follow_threads()
        os.register_at_fork(after_in_child=_forked)
        _step_aside()
        unseen.install()
    return _mode


_thread = threading.local()


def enter_thread():
    """A mode is of one thread: this one has it from here on."""
    if _mode is not None and not hasattr(_thread, "has_mode"):
        _thread.has_mode = True
        _mode.__enter__()


def _leave_thread():
    if hasattr(_thread, "has_mode"):
        del _thread.has_mode
        _mode.__exit__(None, None, None)


def _follow_threads():
    """Threads that begin have the mode. Daemons have it from their first model on (`recorder.py`): Python ends them
    wherever they are, and those that only bring data to the card are better not in a function of ours then."""
    inner = threading.Thread._bootstrap_inner

    def _bootstrap_inner(thread):
        if not thread.daemon:
            enter_thread()
        try:
            inner(thread)
        finally:
            _leave_thread()

    threading.Thread._bootstrap_inner = _bootstrap_inner


def _forked():
    """What is recorded here is another process's; this one may come to use the card itself."""
    _mode.recorder = None
    _mode.inner.forked()


def _step_aside():
    """Torch's own Python code asks whether somebody overrides it, and then takes another way: not for us.

    So its Python functions run as ever, and the mode sees the built-in functions that they call.
    """
    for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
        inner = getattr(torch.overrides, name)
        replacement = _ignoring_our_mode(inner, is_list=name == "has_torch_function")
        for module in list(sys.modules.values()):
            if getattr(module, "__name__", "").startswith("torch") and vars(module).get(name) is inner:
                setattr(module, name, replacement)


def _ignoring_our_mode(inner, is_list):
    @functools.wraps(inner)
    def has_torch_function(*values):
        # The compiler reads this function too, and knows neither the built-in one nor its stack.
        if not torch.compiler.is_dynamo_compiling() and (_mode is None or torch._C._len_torch_function_stack() != 1):
            return inner(*values)
        for value in values[0] if is_list else values:
            if isinstance(value, torch.Tensor) and type(value) not in PLAIN:
                return True
        return False

    return has_torch_function


def hide_from(compiler):
    """The compiler reads what torch functions do in a mode, and gives up where it cannot: it need not know of ours.

    The code that it makes runs in our mode, as other code does. Its guards still see the stack as it is.
    """
    state = compiler.variables.torch_function.SymbolicTorchFunctionState
    inner = state.__init__

    def __init__(self, py_stack, *args, **kwargs):
        modes = list(py_stack)
        inner(self, [] if modes == [_mode] else modes, *args, **kwargs)

    state.__init__ = __init__
