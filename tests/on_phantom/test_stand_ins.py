"""A number that stands for one which nobody knows is like any other, and whoever goes by it is noted."""

import copy
import io
import json
import math
import pickle
import statistics
import struct

import numpy as np
import pytest
import torch
from fathom._doorway.values import values
from fathom._doorway.values.stand_ins import LARGE, StandIn

LARGE_ENOUGH = 1 << 22  # for a gradient that nobody computes


@pytest.fixture
def unknown():
    """One number on the card."""
    weight = torch.ones(LARGE_ENOUGH, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    return weight.grad.mean()


@pytest.fixture
def number(unknown):
    return unknown.item()


def noted(use, *given):
    """What it gives, and how many decisions were noted."""
    before = values.get().decisions.total()
    found = use(*given)
    return found, values.get().decisions.total() - before


def saved(x):
    file = io.BytesIO()
    torch.save({"loss": x}, file)
    file.seek(0)
    return torch.load(file, weights_only=True)["loss"]


# What is the same as with Python's own, and nobody goes by it.
ALIKE = {
    "text": lambda x: (str(x), repr(x), f"{x:.3f} {x:>8} {x!r}", "%.2f %s" % (x, x)),  # noqa: UP031
    "json": lambda x: (json.dumps({"loss": [x]}), json.dumps([x], indent=2), json.dumps(x, allow_nan=False)),
    "pickle": lambda x: [pickle.loads(pickle.dumps([x, x], protocol)) for protocol in range(6)],
    "checkpoint": saved,
    "copy": lambda x: (copy.copy(x), copy.deepcopy({"a": [x]})),
    "bytes": lambda x: struct.pack("df", x, x),
    "arithmetic": lambda x: (1 + x, x - 2, 3 * x, x / 3, 7 // x, x % 3, x**2, 2**x, -x, +x, abs(x), 0.9 * x + 0.1 * x),
    "divmod": lambda x: (divmod(x, 3), divmod(7.5, x)),
    "sum": lambda x: (sum([x, x, 2.5]), math.fsum([x, x])),
    "rounded": lambda x: (round(x, 3), round(x / 3, 2)),
    "finite": lambda x: (math.isfinite(x), math.isnan(x), x != x, x < math.inf, x == math.inf, x > -math.inf),
    "kind": lambda x: (isinstance(x, float), isinstance(x, int), type(x).__name__, str(type(x)), callable(x)),
    "class": lambda x: (type(x)(2.5), type(x)(), type(x).fromhex("0x1p3")),
    "parts": lambda x: (x.real, x.imag, x.conjugate(), x.hex()),
    "tensor": lambda x: (torch.tensor(x), torch.tensor([x, 2.0]), torch.full((2,), x), torch.ones(2) * x, x - torch.ones(2)),
    "methods": lambda x: (torch.zeros(3).fill_(x), torch.zeros(2).add_(torch.ones(2), alpha=x)),
}
# The same, and a decision.
GONE_BY = {
    "less": lambda x: (x < 2, x < 0.5),
    "more": lambda x: (0.5 < x, 2 >= x),
    "equal": lambda x: (x == 1, x != 1),
    "truth": lambda x: (bool(x), not x, x or 3),
    "whole": lambda x: (int(x * 1000), math.floor(x), math.ceil(x / 2), round(x), math.trunc(x), x.is_integer()),
    "loop": lambda x: list(range(int(2 * x))),
    "best": lambda x: (min(x, 0.3), max([x, 3.0]), sorted([x, 0.5])),
    "look-up": lambda x: (hash(x), {1.0: "a"}[x]),
    "list": lambda x: (x in [1.0, 2.0], [0.5, 1.0].index(x)),
    "ordinary": lambda x: (float(x), complex(x), statistics.mean([x, 3.0])),
    "NumPy": lambda x: (np.array([x, 2]), np.mean([x, x]), np.float64(3) * x, x * np.ones(2), np.float64(2) > x, np.float32(x)),
}


def plain(value):
    """For comparison, with the kinds of all that is in it."""
    if isinstance(value, (list, tuple)):
        return [plain(item) for item in value]
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, (torch.Tensor, np.ndarray)):
        return type(value).__name__, str(value.dtype), value.tolist()
    return type(value).__name__, float.__add__(value, 0.0) if isinstance(value, float) else value


@pytest.mark.parametrize("name", ALIKE)
def test_it_is_like_any_other(name, number):
    assert type(number) is StandIn
    found, decisions = noted(lambda: plain(ALIKE[name](number)))
    assert found == plain(ALIKE[name](1.0)) and decisions == 0


@pytest.mark.parametrize("name", GONE_BY)
def test_who_goes_by_it_is_noted(name, number):
    found, decisions = noted(lambda: plain(GONE_BY[name](number)))
    assert found == plain(GONE_BY[name](1.0)) and decisions > 0


def test_errors_are_those_of_the_script(number):
    zeros = (lambda x: x / 0, lambda x: x / 0.0, lambda x: x // 0, lambda x: x % 0)
    for use in (*zeros, lambda x: divmod(x, 0)):
        with pytest.raises(ZeroDivisionError):
            use(number)
    for use in (lambda x: x + "a", lambda x: [] * x, lambda x: x < "a", lambda x: [1][x], lambda x: range(x)):
        with pytest.raises(TypeError):
            use(number)
    assert (number == "a", number != None, number.__lt__("a")) == (False, True, NotImplemented)  # noqa: E711


def test_the_run_with_other_values_goes_the_other_way(number, unknown, monkeypatch):
    monkeypatch.setattr(values.get(), "most", True)
    assert (number < 2, number > 2, bool(number), number == 1, int(number)) == (False, True, False, False, LARGE)
    assert json.dumps(number, indent=1) == "1.0" and number < math.inf and number == number
    numbers = [float(unknown) for _ in range(4)]
    assert min(numbers) < 0.001 and max(numbers) == LARGE  # it is not followed: small and large by turns
    assert not (unknown.cpu() < 2) and int(unknown.cpu()) == LARGE


def test_only_the_places_that_are_named_try_the_most(unknown, monkeypatch):
    line = test_only_the_places_that_are_named_try_the_most.__code__.co_firstlineno
    monkeypatch.setattr(values.get(), "most_at", [f"test_stand_ins.py:{line + 3}"])
    there = unknown.item()
    elsewhere = unknown.item()
    assert not there < 2 and elsewhere < 2


def test_what_is_made_with_it_is_not_known(number):
    for made in (torch.full((3,), number, device="cuda"), torch.ones(3, device="cuda") * number, torch.tensor([number], device="cuda")):
        assert noted(lambda made=made: int(made.sum()))[1] == 1


@pytest.mark.parametrize("kind", ["number", "tensor", "copy"])
def test_it_is_followed_on_the_host(kind, number, unknown):
    """As where losses of an evaluation are collected."""
    losses = torch.zeros(3)
    if kind == "copy":
        losses[1:2].copy_(unknown.reshape(1))
    else:
        losses[1] = number if kind == "number" else unknown
    mean, decisions = noted(losses.mean)
    assert decisions == 0
    assert noted(lambda: bool(mean < 2))[1] > 0 and noted(lambda: mean.item() < 2)[1] > 0 and noted(lambda: mean.numpy() < 2)[1] > 0
    assert noted(lambda: losses.zero_().sum().item() < 2) == (True, 0)


def test_known_tensors_of_the_host_stay_as_they_are(unknown):
    """Views of them come out of functions that are given something unknown as well."""
    labels, pattern = torch.tensor([3, 4, 5]), torch.zeros(3)
    pattern[0] = unknown
    view = labels.expand_as(pattern)
    assert view.tolist() == labels.tolist() == [3, 4, 5]


def test_what_is_compared_with_itself_is_a_number():
    """As the distributions of torch do, for what they are given."""
    weight = torch.ones(LARGE_ENOUGH, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    x = weight.grad
    assert noted(lambda: (bool((x == x).all()), bool((x != x).any()), len(x[x.ne(x)]))) == ((True, False, 0), 0)
    assert noted(lambda: bool((x == x.clone()).all()))[1] > 0


def test_what_is_only_printed_decides_nothing(unknown, capsys):
    host = torch.zeros(3)
    host[1] = unknown

    def show():
        print(unknown, host, f"{unknown:.3f}", unknown.detach().cpu(), [unknown.item()], str(host > 0.5))

    _, decisions = noted(show)
    # A comparison on the host is decided at once: nobody sees who reads it.
    assert decisions == 1 and capsys.readouterr().out


def test_writers_of_logs_decide_nothing(number, unknown, tmp_path):
    yaml = pytest.importorskip("yaml")
    text = [yaml.safe_dump({"loss": number}), yaml.dump([number])]
    assert text == [yaml.safe_dump({"loss": 1.0}), yaml.dump([1.0])]
    tensorboard = pytest.importorskip("torch.utils.tensorboard", exc_type=ImportError)
    with tensorboard.SummaryWriter(tmp_path) as writer:
        _, decisions = noted(lambda: (writer.add_scalar("loss", number, 1), writer.add_scalar("loss", unknown, 2)))
    assert decisions == 0


def test_several_numbers_have_several_places(unknown):
    first = unknown.item()
    second = unknown.item()
    before = set(values.get().decisions)
    assert not first + second < 1
    assert len({key[3] for key in set(values.get().decisions) - before}) == 2


def test_compiled_code_takes_it(number):
    compiled = torch.compile(lambda x, factor: x * factor, backend="eager")
    assert compiled(torch.ones(2), number).tolist() == [1.0, 1.0]
