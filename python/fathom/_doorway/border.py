"""The border between our code and theirs: PyTorch's, Python's, and the user's script's.

Whatever of ours they come to call is put there by this file and by nothing else. So an error of ours
cannot reach them: it is noted, and the part of ours that it happened in ends, or goes on without it. What stands in the
place of a function of theirs calls theirs once, with what it was given, and gives back what comes of it. The work is
done in Rust (`crates/recorder/src/border.rs`, `wrappers.rs`), which leaves no frames on the stack.
"""

import functools
import os
import signal
import sys
import types

from .. import contract
from . import native
from .guard import undisturbed

# An error that comes again and again is noted once, and so many are at most.
MOST = 20

# What went wrong, for the report: {"loss", "error", "place"}, and "phase" and "step" if they are known.
faults: list[contract.Fault] = []

# Gives phase and step of the script, as soon as somebody follows them.
moment = dict

NOTHING = object()


class Deliberate:
    """Marks errors that are meant for the script."""


class Party:
    """Part of ours that takes part in a script. `loss` says in words what its first error costs the user; if it `ends`
    by that, nothing more is asked of it, and `then()` is called. Errors in `passes` are the script's even so."""

    def __init__(self, loss, ends=False, then=None, passes=()):
        self.loss, self.ends, self.then, self.passes = loss, ends, then, passes
        self.undo = []  # takes away again what it has put in the place of theirs
        self.native = native.Party(self.judge)

    @property
    def is_over(self):
        return self.native.is_over

    def judge(self, place, error):
        """Notes an error; `False` if it is not ours."""
        if not is_ours(error) or isinstance(error, self.passes):
            return False
        if not self.is_over:
            note(self.loss, place, error)
        if self.ends and not self.is_over:
            self.native.end()
            if self.then is not None:
                self.contain("the end of a part", self.then)
        return True

    def contain(self, place, ours, *args, **kwargs):
        """`ours(*args, **kwargs)`, or `None` if something goes wrong in it."""
        return self.native.contain(place, ours, *args, **kwargs)

    def withdraw(self):
        """It takes no more part in the script: what it has put there is taken away, or does nothing."""
        self.native.end()
        while self.undo:
            self.undo.pop()()

    def put(self, owner, name, ours, readable=None):
        """Puts ours in the place of theirs; gives what undoes it."""
        undo = put(owner, name, ours, readable)
        self.undo.append(undo)
        return undo

    def callback(self, ours, place=None):
        """Something for them to call, which never raises an error of ours."""
        return native.Callback(self.native, place or ours.__qualname__, ours)

    def around(self, owner, name, before=None, after=None):
        """Has a function of theirs between `before(args, kwargs)` and
        `after(what that gave, args, kwargs, result, error)`; gives what undoes it."""
        theirs = getattr(owner, name)
        return self.put(owner, name, native.Around(self.native, place_of(owner, name), theirs, before, after))

    def around_thread(self, owner, name, before, after):
        """The same for what a whole thread runs in, as a function of Python's: Python ends daemons by unwinding their
        stacks, which must not lead through Rust."""
        theirs = getattr(owner, name)

        @functools.wraps(theirs)
        def call(*args, **kwargs):
            self.contain(f"before {name}", before, *args, **kwargs)
            try:
                return theirs(*args, **kwargs)
            finally:
                self.contain(f"after {name}", after, *args, **kwargs)

        return self.put(owner, name, call)

    def within(self, owner, name, choose):
        """Has theirs run in a context, which `choose(args, kwargs)` gives, or in none; gives what undoes it."""
        theirs = getattr(owner, name)
        return self.put(owner, name, native.Within(self.native, place_of(owner, name), theirs, choose))

    def instead(self, owner, name, make):
        """Has `make(theirs)` in the place of theirs, which it calls itself, once; gives what undoes it."""
        return self.instead_in([owner], name, make)

    def instead_in(self, owners, name, make):
        """The same for a function that has its name in several places: it is one and the same in all of them."""
        theirs = getattr(owners[0], name)
        ours = native.Instead(self.native, place_of(owners[0], name), theirs, make)
        readable = functools.cache(lambda: _readable(ours, make(unwrapped(theirs))))
        inverses = [self.put(owner, name, ours, readable) for owner in owners]
        return lambda: [undo() for undo in inverses]

    def replacing(self, theirs, make, place):
        """The same, to be put into an object of the script's, which is not held."""
        ours = native.Instead(self.native, place, theirs, make)
        return _readable(ours, make(theirs)) if _has_compiler else ours


def place_of(owner, name):
    return f"{getattr(owner, '__name__', type(owner).__name__)}.{name}"


def guarded(method):
    """A method of something that has a `party`: errors are contained, and what it does is not seen by our own mode."""
    return _guarded(method, is_last=False)


def finishing(method):
    """The same, also when its party is over: it undoes what was begun."""
    return _guarded(method, is_last=True)


def _guarded(method, is_last):
    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if self.party.is_over and not is_last:
            return None
        return self.party.native.contain(method.__qualname__, _undisturbed, method, self, *args, **kwargs)

    return call


def _undisturbed(function, *args, **kwargs):
    with undisturbed():
        return function(*args, **kwargs)


# -- errors ------------------------------------------------------------------------------------------------


def is_ours(error):
    """What arrives while we run is not: Ctrl-C, an end that somebody wants, what the handler of a signal raises."""
    is_meant = isinstance(error, Deliberate) or getattr(error, "is_of_script", False)
    return isinstance(error, Exception) and not is_meant and not is_from_signal(error)


def of_script(error):
    """An error of PyTorch's that the script would have got without us, too."""
    error.is_of_script = True
    return error


def is_from_signal(error):
    handlers = {code_of(signal.getsignal(number)) for number in signal.valid_signals()} - {None}
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code in handlers:
            return True
        trace = trace.tb_next
    return False


def code_of(handler):
    """Of a function, a method, a partial or an object that can be called."""
    while isinstance(handler, functools.partial):
        handler = handler.func
    if not hasattr(handler, "__code__") and not isinstance(handler, (int, types.BuiltinFunctionType)):
        handler = getattr(type(handler), "__call__", None)  # noqa: B004  its code is wanted
    return getattr(handler, "__code__", None)


def keep_theirs(error):
    """For our own `except Exception`: what is not ours goes on."""
    if not is_ours(error):
        raise error


def note(loss, place, error):
    """Says once, in short, what went wrong: to the user at once, and in the report."""
    fault = {"loss": loss, "error": text_of(error), "place": line_of(error) or place}
    if fault in [{key: each[key] for key in fault} for each in faults] or len(faults) >= MOST:
        return
    try:
        now = moment()
    except Exception:
        now = {}
    faults.append(contract.fault(**fault, **now))
    try:
        print(f"fathom: {loss}: {fault['error']} ({fault['place']})", file=sys.stderr, flush=True)
    except Exception:  # closed, or replaced by the script
        pass


def text_of(error):
    try:
        lines = str(error).strip().splitlines()
    except Exception:
        lines = []
    return f"{type(error).__name__}: {lines[0][:300]}" if lines else type(error).__name__


def line_of(error):
    """The innermost line of ours, such as `recorder.py:12`."""
    trace, found = error.__traceback__, None
    while trace is not None:
        code = trace.tb_frame.f_code
        if code.co_filename.startswith(os.path.dirname(__file__)) and code is not _undisturbed.__code__:
            found = f"{os.path.basename(code.co_filename)}:{trace.tb_lineno}"
        trace = trace.tb_next
    return found


# -- what stands in the place of theirs ------------------------------------------------------------------------

OURS = (
    native.Around, native.Instead, native.Within,
    native.ModuleCall, native.HasTorchFunction, native.RegisterHook,
)  # fmt: skip

_patches: list = []
_has_compiler = False


class Patch:
    """Ours under a name of theirs."""

    def __init__(self, owner, name, ours, readable):
        self.owner, self.name, self.ours = owner, name, ours
        self.theirs = getattr(owner, name)
        self.had = vars(owner).get(name, NOTHING)
        self.readable, self.read = readable, None
        functools.update_wrapper(ours, self.theirs)

    def face(self):
        """Ours, in a form that torch's compiler can read, if it is there: a function of Python's."""
        is_readable = self.readable or isinstance(unwrapped(self.theirs), types.FunctionType)
        if _has_compiler and self.read is None and is_readable:
            self.read = self.make_readable()
        return self.read or self.ours

    def make_readable(self):
        return self.readable() if self.readable else _readable(self.ours, unwrapped(self.theirs))

    def is_in_place(self):
        there = vars(self.owner).get(self.name, NOTHING)
        return there is self.ours or there is self.read

    def undo(self):
        """Leaves alone what somebody has put there since."""
        if self in _patches:
            _patches.remove(self)
            if self.is_in_place() and self.had is NOTHING:
                delattr(self.owner, self.name)
            elif self.is_in_place():
                below = next((patch for patch in _patches if self.had in (patch.ours, patch.read)), None)
                setattr(self.owner, self.name, below.face() if below else self.had)


class Exchanged:
    """A class of ours, or the like, under a name of theirs."""

    def __init__(self, owner, name, ours):
        self.owner, self.name, self.ours, self.read = owner, name, ours, None

    def is_in_place(self):
        return vars(self.owner).get(self.name) is self.ours

    def face(self):
        return self.ours


def put(owner, name, ours, readable=None):
    """Puts ours in the place of theirs; gives what undoes it. `readable()` makes what the compiler is to read, if that
    is not theirs."""
    patch = Patch(owner, name, ours, readable)
    _patches.append(patch)
    setattr(owner, name, patch.face())
    return patch.undo


def exchange(owner, name, ours):
    """Puts something of ours there that is no function, such as a class: it answers for its own errors."""
    _patches.append(Exchanged(owner, name, ours))
    setattr(owner, name, ours)


def put_everywhere(name, theirs, ours, readable=None):
    """Under this name in every module of torch that has imported theirs."""
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("torch") and vars(module).get(name) is theirs:
            put(module, name, ours, readable)


def unwrapped(theirs):
    """What was there before all of ours."""
    while isinstance(theirs, OURS):
        theirs = theirs.__wrapped__
    return theirs


def _readable(ours, read):
    from torch.compiler import is_dynamo_compiling

    @functools.wraps(ours)
    def call(*args, **kwargs):
        if is_dynamo_compiling():
            return read(*args, **kwargs)
        return ours(*args, **kwargs)

    return call


def compiler_is_loaded():
    """It reads functions that it meets, and can only read Python."""
    global _has_compiler
    _has_compiler = True
    for patch in _patches:
        if patch.is_in_place():
            setattr(patch.owner, patch.name, patch.face())


def patches():
    """(owner, name, ours) of everything that stands in the place of theirs."""
    return [(patch.owner, patch.name, patch.ours) for patch in _patches]


# What opens the doorway, and what is not of another part.
DOORWAY = Party("the report may be incomplete")
