"""Numbers with a fraction that stand for what nobody computed.

A loss is nearly always printed, and 1 does for that. But `if confidence.item() > 0.9: break` goes a way by such a number,
and `int(share.item() * count)` makes a size of it: these are decisions, and noted as such, at the line where the number
was read. To all others it is a number like any other: a `float`, of a class of its own.

Nothing here may fail: a script must not notice it.
"""

import contextlib
import functools
import math
import os
import sys

from .texts import is_read_back

# A whole number that is not known has no most: this one is past the bounds that scripts compare counts with.
LARGE = 1 << 20

# Who only writes numbers down, by the folder or file of its code, and who sets nothing but learning rates. What the first
# compare is the form, as in `x != x` for a NaN.
WRITERS = {
    "_tensor_str.py", "aim", "clearml", "comet_ml", "csv.py", "dvclive", "json", "logging", "lr_scheduler.py",
    "matplotlib", "mlflow", "neptune", "omegaconf",
    "pprint.py", "rich", "swanlab", "tabulate", "tensorboard", "tensorboardX", "tqdm", "wandb", "yaml",
}  # fmt: skip


class Origin:
    """What such a number stands for: what was read where, why it is not known, and who is told."""

    __slots__ = ("key", "values")

    def __init__(self, values, key):
        self.values, self.key = values, key

    @property
    def is_modelled(self):
        return self.key[1] == "modelled"


class Kind(type):
    """Scripts ask `type(x) == float`, and look classes up in dictionaries: it is the same one. Only `is` sees another."""

    def __eq__(cls, other):
        return other is float or other is cls

    def __ne__(cls, other):
        return not cls == other

    def __hash__(cls):
        return hash(float)


class StandIn(float, metaclass=Kind):
    """A number like any other, until somebody goes by it."""

    __slots__ = ("origins",)

    def __new__(cls, number=0.0, origins=()):
        if not origins:
            return float(number)  # as `statistics.mean` makes one of the class of its numbers
        made = super().__new__(cls, number)
        made.origins = origins
        return made

    def __reduce_ex__(self, _):
        return float, (exact(self),)  # in files it is a number

    def __copy__(self):
        return self

    def __deepcopy__(self, _):
        return self

    def __hash__(self):
        """Whoever looks it up finds something, or nothing."""
        return hash(float(LARGE)) if _noted(self.origins, "one") else float.__hash__(self)

    def __repr__(self):
        return float.__repr__(_for_text(self, sys._getframe(1)))

    __str__ = __repr__

    def __format__(self, form):
        return float.__format__(_for_text(self, sys._getframe(1)), form)

    def __bool__(self):
        return truth(self.origins, float.__bool__(self))

    def is_integer(self):
        return truth(self.origins, float.is_integer(self))

    def __float__(self):
        """An ordinary number, as NumPy makes of it: nobody sees what becomes of that."""
        return ordinary(self.origins, exact(self))

    def __complex__(self):
        return complex(float(self))

    def __array_ufunc__(self, function, method, *given, **settings):
        """NumPy's functions. A number of Python's own takes on the type of an array beside it, one of another class does
        not: they get Python's own."""
        number = exact if function.__name__ in ("isnan", "isinf", "isfinite") else float
        given = [number(one) if type(one) is StandIn else one for one in given]
        settings = {name: number(one) if type(one) is StandIn else one for name, one in settings.items()}
        with sys.modules["numpy"].errstate(all="ignore"):  # 1 may be a number that it warns of
            return getattr(function, method)(*given, **settings)

    def __round__(self, digits=None):
        rounded = float.__round__(self, digits)
        return whole(self.origins, rounded) if digits is None else StandIn(rounded, self.origins)

    def __divmod__(self, other):
        return self // other, self % other

    def __rdivmod__(self, other):
        return other // self, other % self

    def as_integer_ratio(self):
        """As `statistics.mean` asks for it."""
        return float.as_integer_ratio(ordinary(self.origins, exact(self)))

    def conjugate(self):
        return self

    real = property(conjugate)


# To the script it is Python's own.
StandIn.__name__ = StandIn.__qualname__ = "float"
StandIn.__module__ = "builtins"
StandIn.__doc__ = float.__doc__


def exact(number):
    return float.__mul__(number, 1.0)


def origins_of(*numbers):
    """Where these come from, each place once, the first few of them."""
    found = {}
    for number in numbers:
        if type(number) is StandIn:
            found.update((origin.key, origin) for origin in number.origins)
    return tuple(found.values())[:4]


def _arithmetic(name):
    theirs = getattr(float, name)
    is_division = name in ("__truediv__", "__floordiv__", "__mod__")

    def method(self, *others):
        if _is_numpys(others):
            return NotImplemented
        try:
            result = theirs(self, *others)
        except ArithmeticError:
            # A division by 0 is the script's. An unknown number is none that cannot be divided by, but in the other run.
            origins = origins_of(self, *others)
            is_script_s = is_division and type(others[0]) is not StandIn
            if not is_script_s and truth(origins, True):
                return StandIn(1.0, origins)
            # The script's own error, which Python's numbers raise if this one does not answer.
            if others and type(others[0]) is float:
                return NotImplemented
            raise
        if type(result) is complex:  # a root of less than nothing
            return complex(ordinary(origins_of(self, *others), result.real), result.imag)
        return StandIn(result, origins_of(self, *others)) if type(result) is float else result

    return method


def _is_numpys(others):
    """NumPy's numbers give numbers of NumPy's, and are not followed."""
    return others != () and type(others[0]).__module__ == "numpy"


def _comparison(name):
    theirs = getattr(float, name)

    def method(self, other):
        if _is_numpys((other,)):
            return NotImplemented
        result = theirs(self, other)
        # It is finite, as a run that goes well has it, and the same as itself.
        if result is NotImplemented or self is other or isinstance(other, float) and not math.isfinite(other):
            return result
        return truth(origins_of(self, other), result)

    return method


def _whole(name):
    theirs = getattr(float, name)
    return lambda self: whole(self.origins, theirs(self))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(StandIn, _method, _arithmetic(_method))
for _method in ("__neg__", "__pos__", "__abs__"):
    setattr(StandIn, _method, _arithmetic(_method))
for _method in ("__lt__", "__le__", "__gt__", "__ge__", "__eq__", "__ne__"):
    setattr(StandIn, _method, _comparison(_method))
for _method in ("__int__", "__trunc__", "__floor__", "__ceil__"):
    setattr(StandIn, _method, _whole(_method))


# -- somebody goes by it --------------------------------------------------------------------------------


def truth(origins, found):
    """How it compares: in the run with the most the other way."""
    return not found if _noted(origins, "either") else found


def whole(origins, found):
    """A whole number, as sizes are."""
    return LARGE if _noted(origins, "one") else found


def ordinary(origins, found):
    """A number that is not followed: a small one and a large one by turns in the run with the most."""
    if not _noted(origins, "one"):
        return found
    values, key = origins[0].values, origins[0].key
    values.turns[key] += 1
    return float(LARGE) if values.turns[key] % 2 == 0 else 1 / LARGE


def _for_text(number, frame):
    """What is written down is nobody's business, unless it is read back at once."""
    try:
        return ordinary(number.origins, exact(number)) if is_read_back(frame) else exact(number)
    except Exception:
        return exact(number)


def _noted(origins, assumed):
    """Notes who goes by it; whether this is the run that tries something else."""
    with contextlib.suppress(Exception):
        if only_writes(sys._getframe(2)):
            return False
        for origin in origins:
            origin.values.go_by(origin.key, assumed)
        return any(not origin.is_modelled and origin.values.tries_most(origin.key[2]) for origin in origins)
    return False


def only_writes(frame):
    """Whether somebody between here and the user's own line only writes numbers down."""
    from ..file_owner import is_library

    while frame is not None and is_library(frame.f_code.co_filename):
        if is_writer(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


@functools.cache
def is_writer(file):
    """By the part of the path that is the library's own."""
    parts = file.split(os.sep)
    starts = [at for at, part in enumerate(parts) if part.endswith("-packages") or part.startswith("python3")]
    return not WRITERS.isdisjoint(parts[max(starts, default=-1) + 1 :])


# -- for Python -------------------------------------------------------------------------------------------


def stood_in(found, origin):
    """Such a number, or a list of them."""
    _follow()
    if isinstance(found, list):
        return [stood_in(one, origin) for one in found]
    return StandIn(found, (origin,)) if type(found) is float else found


@functools.cache
def _follow():
    """Functions of C are followed from the first such number on: a script that reads none does not pay for it."""
    from .c_functions import follow

    follow()


# -- libraries that know numbers by their class ------------------------------------------------------------------


def allow_in_checkpoints():
    """In a checkpoint it is a call of `float`, which `torch.load` has to let through."""
    import torch

    torch.serialization.add_safe_globals([float])


def in_yaml(representer):
    for kind in (representer.SafeRepresenter, representer.Representer):
        kind.add_representer(StandIn, lambda dumper, number: dumper.represent_float(exact(number)))
