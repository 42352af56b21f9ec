"""Numbers with a fraction that stand for what nobody computed.

A loss is nearly always printed, and 1 does for that. But `if confidence.item() > 0.9: break` goes a way by such a number,
and `int(share.item() * count)` makes a size of it: these are decisions, and noted as such.
"""

import torch

# A whole number that is not known has no most: this one is past the bounds that scripts compare counts with.
LARGE = 1 << 20


class StandIn(float):
    """A number like any other, until somebody goes by it."""

    __slots__ = ("stands_for",)

    def __new__(cls, number=0.0, stands_for=None):
        if stands_for is None:
            return float(number)  # as `statistics.mean` makes one of the class of its numbers
        made = super().__new__(cls, number)
        made.stands_for = stands_for
        return made

    def __reduce__(self):
        return float, (float.__float__(self),)  # in files it is a number

    def __bool__(self):
        return self.stands_for.truth(float.__bool__(self))

    def __round__(self, digits=None):
        rounded = float.__round__(self, digits)
        return self.stands_for.whole(rounded) if digits is None else StandIn(rounded, self.stands_for)


class Origin:
    """What such a number stands for: what was read where, why it is not known, and who is told."""

    def __init__(self, values, key):
        self.values, self.key = values, key

    def truth(self, found):
        """How it compares: in the run with the most the other way."""
        self.values.go_by(self.key, "either")
        return found != self.values.most

    def whole(self, found):
        """A whole number, as sizes are."""
        self.values.go_by(self.key, "one")
        return LARGE if self.values.most else found


def _arithmetic(name):
    theirs = getattr(float, name)

    def method(self, *others):
        result = theirs(self, *others)
        return StandIn(result, self.stands_for) if type(result) is float else result

    return method


def _comparison(name):
    theirs = getattr(float, name)

    def method(self, other):
        result = theirs(self, other)
        return result if result is NotImplemented else self.stands_for.truth(result)

    return method


def _whole(name):
    theirs = getattr(float, name)
    return lambda self: self.stands_for.whole(theirs(self))


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow"):
    for _method in (f"__{_name}__", f"__r{_name}__"):
        setattr(StandIn, _method, _arithmetic(_method))
for _method in ("__neg__", "__pos__", "__abs__"):
    setattr(StandIn, _method, _arithmetic(_method))
for _method in ("__lt__", "__le__", "__gt__", "__ge__"):
    setattr(StandIn, _method, _comparison(_method))
for _method in ("__int__", "__trunc__", "__floor__", "__ceil__"):
    setattr(StandIn, _method, _whole(_method))


def stood_in(found, origin):
    """Such a number, or a list of them."""
    if isinstance(found, list):
        return [stood_in(one, origin) for one in found]
    return StandIn(found, origin) if type(found) is float else found


def allow_in_checkpoints():
    """In a checkpoint it is a call of `float`, which `torch.load` has to let through."""
    torch.serialization.add_safe_globals([float])


def in_yaml(representer):
    """YAML knows numbers by their class."""
    for kind in (representer.SafeRepresenter, representer.Representer):
        kind.add_representer(StandIn, lambda dumper, number: dumper.represent_float(float(number)))
