"""Functions of C that are given numbers which stand for unknown ones (`stand_ins.py`).

They read a number's bytes and ask nobody. What functions of `math` make of such a number is such a number too. Those that
write numbers down, and know them by their class alone, get them as Python's own.
"""

import copy
import marshal
import math

from .. import native
from ..import_hooks import when_imported
from .stand_ins import StandIn, exact, ordinary, origins_of, truth, whole

# Those that give a number, of one or several.
OF_NUMBERS = """acos acosh asin asinh atan atan2 atanh cbrt copysign cos cosh degrees erf erfc exp exp2 expm1 fabs fma fmod frexp
    gamma hypot isclose ldexp lgamma log log10 log1p log2 modf nextafter pow radians remainder sin sinh sqrt tan tanh ulp"""
# Those that are given a list of them.
OF_LISTS = "fsum prod dist sumprod"

# So deep is looked for such a number in what is to be written down.
DEEP = 20


def follow():
    """From here on; before the first such number there is nothing to follow."""
    from ..functions import VALUES

    for names, when in ((OF_NUMBERS, "given"), (OF_LISTS, "within")):
        for name in names.split():
            if hasattr(math, name):
                native.follow_c_function(getattr(math, name), StandIn, when, VALUES.callback(stands_in, f"math.{name}"))

    def as_pythons_own(function, is_only_written=True):
        ours = VALUES.callback(again(function, is_only_written), function.__qualname__)
        native.follow_c_function(function, StandIn, "refused", ours)

    def in_msgspec(module):
        for kind in (module.json, module.msgpack):
            for function in (kind.encode, kind.Encoder.encode):
                as_pythons_own(function)
        for function in (module.convert, module.to_builtins):
            as_pythons_own(function, is_only_written=False)

    as_pythons_own(marshal.dumps)
    when_imported("orjson", VALUES.callback(lambda module: as_pythons_own(module.dumps), "the import of orjson"))
    when_imported("msgspec", VALUES.callback(in_msgspec, "the import of msgspec"))


# -- functions of numbers -----------------------------------------------------------------------------------


def stands_in(given, names, result, error):
    """What a function gives of what nobody knows. None of these is a number that it refuses, such as the logarithm of 0: only
    in the run that goes the other way."""
    origins = origins_of(*flat(given))
    if error is not None:
        is_of_number = issubclass(error, (ValueError, ArithmeticError))
        return StandIn(1.0, origins) if is_of_number and truth(origins, True) else None
    return standing(result, origins)


def standing(result, origins):
    if isinstance(result, tuple):
        return tuple(standing(one, origins) for one in result)
    if isinstance(result, bool):
        return truth(origins, result)
    if isinstance(result, int):
        return whole(origins, result)
    return StandIn(result, origins) if type(result) is float else result


def flat(given):
    for one in given:
        if isinstance(one, (list, tuple)):
            yield from one
        else:
            yield one


# -- who knows numbers by their class -------------------------------------------------------------------------


def again(function, is_only_written):
    """What it gives of the same with numbers of Python's own; `None` if there is none of ours among them."""
    number = exact if is_only_written else lambda one: ordinary(one.origins, exact(one))

    def call(given, names, result, error):
        names = names or ()
        count = len(given) - len(names)
        try:
            replaced = plain(given, number)
            if replaced is not given:
                return function(*replaced[:count], **dict(zip(names, replaced[count:])))
        except Exception:
            pass  # something else is wrong with it: theirs says what
        return None

    return call


def plain(value, number, depth=0):
    """The same with numbers of Python's own; the very same if there is none of ours in it."""
    if type(value) is StandIn:
        return number(value)
    if depth == DEEP:
        return value
    inner = lambda one: plain(one, number, depth + 1)  # noqa: E731
    if type(value) in (list, tuple, set, frozenset):
        found = [inner(one) for one in value]
        return value if all(one is other for one, other in zip(value, found)) else type(value)(found)
    if type(value) is dict:
        found = {inner(key): inner(one) for key, one in value.items()}
        return value if all(found.get(key, value) is one for key, one in value.items()) else found
    return value if isinstance(value, type) else replaced_fields(value, inner)


def replaced_fields(value, inner):
    """Of an object with named fields."""
    kind = type(value)
    put = setattr if hasattr(kind, "__struct_fields__") else object.__setattr__  # msgspec has its own
    names = getattr(kind, "__struct_fields__", None) or getattr(kind, "__dataclass_fields__", ())
    held = {name: getattr(value, name) for name in names if hasattr(value, name)}
    found = {name: inner(one) for name, one in held.items()}
    changed = [name for name, one in held.items() if found[name] is not one]
    other = copy.copy(value) if changed else value
    for name in changed:
        put(other, name, found[name])
    return other
