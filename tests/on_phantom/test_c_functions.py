"""Functions of C read a number's bytes. What they make of one that nobody knows is followed, or noted; they stay what they are."""

import cmath
import dataclasses
import inspect
import marshal
import math
import operator
import pickle
import statistics
import traceback
from math import exp

import numpy as np
import pytest
import torch
from fathom._doorway.values.stand_ins import LARGE, StandIn
from test_stand_ins import noted, number, unknown  # noqa: F401

# Before the first number that stands for another.
LOOKS = {
    name: (id(function), repr(function), function.__doc__, hash(function), pickle.dumps(function))
    for name, function in vars(math).items()
    if callable(function) and not name.startswith("__")
}

# What gives such a number.
FOLLOWED = {
    "exp": lambda x: math.exp(x),
    "by another name": lambda x: exp(x),
    "by map": lambda x: [*map(exp, [0.5, x])][1],
    "log": lambda x: math.log(x),
    "base": lambda x: math.log(x + 1, 2),
    "power": lambda x: math.pow(2, x),
    "root": lambda x: math.sqrt(x),
    "sum": lambda x: math.fsum([x, 1.0]),
    "sum of a generator": lambda x: math.fsum(one for one in (x, 2.0)),
    "product": lambda x: math.prod([x, 2]),
    "distance": lambda x: math.dist([x], (2.0,)),
    "hypotenuse": lambda x: math.hypot(x, 1, 2),
    "rest": lambda x: math.fmod(x, 2),
    "parts": lambda x: math.modf(x)[0],
    "mean": lambda x: statistics.fmean([x, 2.0]),
    "in a loop": lambda x: [math.exp(one) for one in [1.0] * 50 + [x]][-1],
    "perplexity": lambda x: math.exp(x / 2 + 0.1),
}
# What goes by it, or makes an ordinary number of it.
NOTED = {
    "near": lambda x: math.isclose(x, 1),
    "exponent": lambda x: math.frexp(x)[1],
    "complex": lambda x: cmath.exp(x),
    "root of less than nothing": lambda x: (-x) ** 0.5,
    "look-up": lambda x: {2.0: 3}.get(x),
    "set": lambda x: len({x, 3.0}),
    "back from text": lambda x: float(f"{x:.3f}"),
    "back from str": lambda x: round(float(str(x)), 2),
    "back from format": lambda x: np.float64("{:.2f}".format(x)),  # noqa: UP032
    "whole, from text": lambda x: int(f"{x:.0f}"),
    "arange": lambda x: torch.arange(0, x * 10, 0.5).numel(),
    "arange on the card": lambda x: torch.arange(x * 10, device="cuda").numel(),
    "interpolation": lambda x: torch.nn.functional.interpolate(torch.ones(1, 1, 8, 8), scale_factor=x * 2).shape,
    "NumPy's root": lambda x: np.sqrt(x),
    "a number of NumPy's": lambda x: np.float64(3) * x,
    "beside a number of NumPy's": lambda x: x * np.float64(3),
    "compared with NumPy's": lambda x: x < np.float64(3),
    "short number": lambda x: np.float32(3) * x,
    "short array": lambda x: (np.ones(2, np.float32) * x).dtype,
    "array": lambda x: np.array([x, 2.0]),
    "clipped": lambda x: np.clip(x, 0, 0.5),
    "mean of NumPy's": lambda x: np.mean([x, 2.0]),
    "larger": lambda x: np.maximum(x, 2.0),
}


@pytest.mark.parametrize("name", FOLLOWED)
def test_what_math_gives_is_followed(name, number):
    found, decisions = noted(FOLLOWED[name], number)
    assert type(found) is StandIn and decisions == 0
    assert noted(lambda: found < -7) == (False, 1) and repr(found) == repr(FOLLOWED[name](1.0))


@pytest.mark.parametrize("name", NOTED)
def test_what_is_not_followed_is_noted(name, number):
    found, decisions = noted(NOTED[name], number)
    expected = NOTED[name](1.0)
    assert decisions > 0 and type(found) is type(expected) and repr(found) == repr(expected)


def test_the_run_with_other_values_gets_other_numbers(number, monkeypatch):
    from fathom._doorway.values import values

    monkeypatch.setattr(values.get(), "most", True)
    assert not math.isclose(number, 1) and torch.arange(number).numel() != 1
    assert {float(f"{number:.1f}") for _ in range(4)} == {0.0, float(LARGE)}
    assert f"{number:.1f}" == "1.0"  # what is only written down is as it was
    with pytest.raises(ValueError, match="math domain error"):
        math.log(1 - number)
    with pytest.raises(ZeroDivisionError):
        1 / (1 - number)


def test_an_unknown_number_is_none_that_is_refused(number):
    for refused in (lambda: math.log(1 - number), lambda: 1 / (1 - number), lambda: math.exp(number * 1e9), lambda: (number * 1e300) ** 2):
        found, decisions = noted(refused)
        assert type(found) is StandIn and decisions == 1


def test_functions_stay_what_they_are(number):
    math.exp(number)
    for name, looks in LOOKS.items():
        function = getattr(math, name)
        assert (id(function), repr(function), function.__doc__, hash(function), pickle.dumps(function)) == looks, name
    assert str(inspect.signature(math.exp)) == "(x, /)" and exp is math.exp
    assert type(math.exp(1.0)) is float and type(math.fsum([1, 2.0])) is float and math.exp(0) == 1.0


def test_errors_are_those_of_theirs(number):
    cases = {
        "must be real number, not str": lambda x: math.exp("a"),
        "exactly one argument": lambda x: math.exp(x, x),
        "not iterable": lambda x: math.fsum(3),
        "must be real number": lambda x: math.fsum([x, "a"]),
        "math domain error": lambda x: math.log(-1),
        "expected 2 arguments": lambda x: math.pow(x),
        "division by zero": lambda x: math.fsum(1 / 0 for _ in [x]),
        "unmarshallable": lambda x: marshal.dumps([x, object()]),
    }
    for words, use in cases.items():
        with pytest.raises((TypeError, ValueError, ZeroDivisionError), match=words) as raised:
            use(number)
        files = {frame.filename for frame in traceback.extract_tb(raised.value.__traceback__)}
        assert files == {__file__}, words


def test_classes_are_asked_for_by_equality(number):
    kind = type(number)
    assert kind == float and not operator.ne(kind, float) and kind in (int, float) and {float: 1}[kind] == 1  # noqa: E721
    assert kind != int and kind not in (int, str) and float in {kind}  # noqa: E721


@dataclasses.dataclass
class Row:
    loss: float


ENCODERS = {
    "marshal": lambda x: marshal.loads(marshal.dumps({"a": [x, (x,)]})),
    "orjson": lambda x: pytest.importorskip("orjson").dumps({"a": [x], "b": Row(x)}),
    "orjson with options": lambda x: pytest.importorskip("orjson").dumps([x], option=1),
    "msgspec": lambda x: pytest.importorskip("msgspec").json.encode({"a": [x], "b": Row(x)}),
    "msgspec's encoder": lambda x: pytest.importorskip("msgspec").msgpack.Encoder().encode({"a": x}),
    "msgpack": lambda x: pytest.importorskip("msgpack").packb([x]),
}


@pytest.mark.parametrize("name", ENCODERS)
def test_encoders_that_know_numbers_by_their_class_take_it(name, number):
    found, decisions = noted(ENCODERS[name], number)
    assert found == ENCODERS[name](1.0) and decisions == 0


def test_what_msgspec_converts_is_an_ordinary_number(number):
    msgspec = pytest.importorskip("msgspec")
    found, decisions = noted(msgspec.convert, {"loss": number}, Row)
    assert found == Row(1.0) and type(found.loss) is float and decisions == 1
