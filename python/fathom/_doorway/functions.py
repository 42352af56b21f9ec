"""Sees every torch function that is called from Python, and lets the values and the recorder take part.

A function mode is used, not a dispatch mode: PyTorch's own code takes other paths while a dispatch mode
is on (gradients are added out of place, for one), and the peaks would not be its own any more.
"""

import functools
import os
import threading

import torch
from torch.overrides import TorchFunctionMode

from . import border, native, tracing, unwatched_loops, values, warned
from .border import DOORWAY
from .values import rules

# Tensors that nobody has made a class of his own of.
PLAIN = frozenset({torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.nn.Parameter)})


# What goes wrong with values leaves them unknown.
VALUES = border.Party("values of small tensors may be unknown")


class Functions(TorchFunctionMode):
    """What is done with each function is Rust, `crates/recorder/src/functions.rs`."""

    def __init__(self):
        super().__init__()
        from .storages import storages
        from .values import evaluate, tensor_subclasses
        from .values.values import BYTES, SECONDS

        self.ledger = native.Ledger(PLAIN, storages, evaluate, BYTES, SECONDS)
        settings = {
            "ledger": self.ledger,
            "getters": rules.PLAIN_GETTERS,
            "readers": rules.READERS,
            "special": rules.SPECIAL,
            "pieces": rules.PIECES,
            "draws": rules.DRAWS,
            "is_compiling": torch.compiler.is_compiling,
            "is_loading": is_loading,
            "meet": tensor_subclasses.meet,
            "mode": self,
            "party": VALUES.native,
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
        self.inner.set_recorder(recorder, recorder and recorder.note_taker, recorder and recorder.party.native)

    def compute_values(self, values):
        """What functions do to what is known is noted; see values.py."""
        self.inner.set_values(values)
        if values is not None:
            self.ledger.serve()


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
        os.register_at_fork(after_in_child=DOORWAY.callback(_forked))
        _step_aside()
        unwatched_loops.install()
        warned.install()
    return _mode


def is_installed():
    return _mode is not None


def enter_thread():
    """A mode is of one thread: this one has it from here on."""
    if _mode is not None and not native.set_mode_of_thread(True):
        _mode.__enter__()


def _leave_thread():
    if native.set_mode_of_thread(False):
        _mode.__exit__(None, None, None)


def _follow_threads():
    """Threads that begin have the mode. Daemons have it from their first model on (`recorder.py`): Python ends them
    wherever they are, and those that only bring data to the card are better not in a function of ours then."""

    def begin(thread):
        if not thread.daemon:
            enter_thread()

    DOORWAY.around_thread(threading.Thread, "_bootstrap_inner", begin, lambda _: _leave_thread())


def _forked():
    """What is recorded here is another process's; this one may come to use the card itself."""
    _mode.recorder = None
    _mode.inner.forked()


def _step_aside():
    """Torch's own Python code asks whether somebody overrides it, and then takes another way: not for us.

    So its Python functions run as ever, and the mode sees the built-in functions that they call.
    """
    for name in ("has_torch_function", "has_torch_function_unary", "has_torch_function_variadic"):
        theirs, is_list = getattr(torch.overrides, name), name == "has_torch_function"
        ours = native.HasTorchFunction(DOORWAY.native, theirs, PLAIN, is_list)
        border.put_everywhere(name, theirs, ours, readable=functools.partial(_readable, ours, is_list))
        _known_to_scripts(ours)


def _readable(ours, is_list):
    """The same for the compiler, which knows neither the built-in function nor the stack of modes."""

    def has_torch_function(*values):
        if not torch.compiler.is_dynamo_compiling():
            return ours(*values)
        for value in values[0] if is_list else values:
            if isinstance(value, torch.Tensor) and type(value) not in PLAIN:
                return True
        return False

    return _known_to_scripts(has_torch_function)


def _known_to_scripts(ours):
    """TorchScript knows theirs by name, and would try to read ours."""
    torch.jit._builtins._register_builtin(ours, "aten::has_torch_function")
    return ours


def hide_from(compiler):
    """The compiler reads what torch functions do in a mode, and gives up where it cannot: it need not know of ours.

    The code that it makes runs in our mode, as other code does. Its guards still see the stack as it is.
    """
    border.compiler_is_loaded()
    _leave_rules_alone(compiler)

    def make(inner):
        def __init__(self, py_stack, *args, **kwargs):
            modes = list(py_stack)
            inner(self, [] if modes == [_mode] else modes, *args, **kwargs)

        return __init__

    # Before torch 2.6 the compiler has no such class: it does not look at modes where it makes code.
    state = getattr(compiler.variables.torch_function, "SymbolicTorchFunctionState", None)
    if state is not None:
        DOORWAY.instead(state, "__init__", make)


def _leave_rules_alone(compiler):
    """Rules run inside of functions that the compiler leaves to Python: it would compile them too, and warn of their lines."""
    skipped = getattr(compiler, "trace_rules", None)
    if hasattr(skipped, "add"):
        for module in (values, tracing):
            skipped.add(module.__name__)
