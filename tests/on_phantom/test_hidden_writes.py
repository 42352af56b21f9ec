"""Writes that no version counts or that lie behind a wrapper: what was known there is known no longer, or anew."""

import operator

import pytest
import torch
from fathom._doorway.values import values

COUNT = 120_000


def data(device):
    return torch.randn(COUNT, generator=torch.Generator().manual_seed(0)).to(device)


def said():
    return values.get().decisions.total() + values.get().modelled.total()


def asked(program, device):
    """How many numbers are above a bound, and how often nobody knew."""
    before = said()
    return int((program(data(device)) > 0.25).sum()), said() - before


def is_right_or_said(program):
    expected, _ = asked(program, "cpu")
    found, decisions = asked(program, "cuda")
    assert found == expected or decisions > 0, (found, expected)
    return decisions == 0


# -- in inference mode, where versions are not counted ---------------------------------------------------------

LIBRARY = torch.library.Library("fathom_tests", "DEF")
LIBRARY.define("rise(Tensor(a!) x) -> ()")
LIBRARY.define("into(Tensor x, *, Tensor(b!) y) -> ()")
LIBRARY.impl("rise", lambda x: (x.add_(3), None)[1], "CompositeExplicitAutograd")
LIBRARY.impl("into", lambda x, y: (y.copy_(x), None)[1], "CompositeExplicitAutograd")


def augmented(method):
    def program(x):
        mask, other = x > 0, x < -1
        return method(mask.long(), other.long()) if "shift" in method.__name__ else method(mask, other).float()

    return program


UNCOUNTED = {name: augmented(getattr(operator, name)) for name in ("ior", "iand", "ixor", "ilshift", "irshift")}
UNCOUNTED |= {
    "iadd": lambda x: operator.iadd(x, 1),
    "ipow": lambda x: operator.ipow(x, 2),
    "an operator of one's own": lambda x: (torch.ops.fathom_tests.rise(x), x)[1],
    "its overload": lambda x: (torch.ops.fathom_tests.rise.default(x), x)[1],
    "by name": lambda x: (torch.ops.fathom_tests.into(x, y=(y := torch.zeros_like(x))), y)[1],
}


@pytest.mark.parametrize("name", UNCOUNTED)
def test_in_inference_mode(name, fresh):
    def program(x):
        with torch.inference_mode():
            return UNCOUNTED[name](x.clone())

    is_known = is_right_or_said(program)
    assert is_known or " " in name, "what PyTorch itself writes is known"


# -- behind a wrapper ---------------------------------------------------------------------------------------------


class Plain(torch.Tensor):
    pass


class Overriding(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return super().__torch_function__(func, types, args, kwargs or {})


class Hiding(torch.Tensor):
    """It does not tell PyTorch what it is made of."""

    @staticmethod
    def __new__(cls, inner):
        return torch.Tensor._make_wrapper_subclass(cls, inner.shape, dtype=inner.dtype, device=inner.device)

    def __init__(self, inner):
        self.inner = inner

    @classmethod
    def __torch_dispatch__(cls, func, types, args=(), kwargs=None):
        return func(*(arg.inner if isinstance(arg, Hiding) else arg for arg in args), **(kwargs or {}))


class Telling(Hiding):
    def __tensor_flatten__(self):
        return ["inner"], None


def by(make):
    def program(x):
        x = x.clone()
        make(x).add_(1)
        return x

    return program


def mapped(x):
    x = x.view(300, 400).clone()
    torch.vmap(lambda row: row.mul_(2))(x)
    return x


def mapped_into(x):
    rows, found = x.view(300, 400), torch.zeros(300, device=x.device)
    torch.vmap(lambda place, row: place.add_(row.sum()))(found, rows)
    return found


BEHIND = {kind.__name__: by(kind) for kind in (Hiding, Telling)}
BEHIND |= {kind.__name__: by(lambda x, kind=kind: x.as_subclass(kind)) for kind in (Plain, Overriding)}
BEHIND |= {
    "out": lambda x: (torch.mul(x, 3, out=(y := x.clone()).as_subclass(Plain)), y)[1],
    "vmap": mapped,
    "vmap, into another": mapped_into,
}


@pytest.mark.parametrize("name", BEHIND)
def test_behind_a_wrapper(name, fresh):
    is_right_or_said(BEHIND[name])


# -- inside of an optimizer's step ------------------------------------------------------------------------------------


class Own(torch.optim.Optimizer):
    """It keeps numbers of its own on the card."""

    def __init__(self, weight, change):
        super().__init__([weight], {})
        self.change = change

    @torch.no_grad()
    def step(self, closure=None):
        for group in self.param_groups:
            for weight in group["params"]:
                weight.add_(weight.grad, alpha=-0.1)
        self.change()


CHANGES = {
    "fill_": lambda x: x.fill_(2),
    "mul_": lambda x: x.mul_(3),
    "piece": lambda x: x[:500].fill_(7),
    "setitem": lambda x: x.__setitem__(slice(500), 7),
    "list": lambda x: torch._foreach_add_([x], 1),
    "out": lambda x: torch.add(x, 1, out=x),
    "operator": lambda x: torch.ops.fathom_tests.rise(x),
}


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("how", ["step", "hook"])
def test_in_a_step(name, how, fresh):
    def program(x):
        kept, weight = x.clone(), torch.zeros(COUNT, device=x.device, requires_grad=True)
        change = lambda: CHANGES[name](kept)  # noqa: E731
        optimizer = Own(weight, change) if how == "step" else torch.optim.SGD([weight], lr=0.1)
        if how == "hook":
            optimizer.register_step_post_hook(lambda *_: (change(), None)[1])
        for _ in range(2):
            (weight * x).sum().backward()
            optimizer.step()
        return kept

    assert is_right_or_said(program), "nothing unknown has part in it"


@pytest.mark.parametrize("kind", [torch.optim.SGD, torch.optim.AdamW, torch.optim.LBFGS])
def test_a_closure_is_the_scripts_own(kind, fresh):
    """As Lightning calls it: the whole step is inside of the optimizer's."""

    def shapes(device):
        x, found, kept = data(device), [], torch.zeros(COUNT, device=device)
        weight = torch.zeros(COUNT, device=device, requires_grad=True)
        optimizer = kind([weight], lr=0.1, **({"max_iter": 1} if kind is torch.optim.LBFGS else {}))

        def closure():
            optimizer.zero_grad()
            kept.add_(x)
            picked = x[x > 0.5]
            found.append((picked.shape, int((kept > 0).sum())))
            loss = ((weight[x > 0.5] - picked) ** 2).sum()
            loss.backward()
            return loss

        optimizer.step(closure)
        optimizer.step(closure=closure)
        return found

    expected = shapes("cpu")
    counted = values.get().decisions.copy()
    assert shapes("cuda") == expected
    ours = [key for key in values.get().decisions - counted if key[3] and key[3][0] == __file__ and key[4] is None]
    assert not ours, ours


# -- what a backward pass reads, while a checkpoint computes its part again --------------------------------------------


@pytest.mark.parametrize("is_reentrant", [False, True])
def test_masks_within_a_checkpoint(is_reentrant, fresh):
    def shapes(device):
        found, weight = [], data(device).requires_grad_()

        def part(x):
            found.append(int((x > 0).sum()))
            picked = x[x > 0] * 2
            return picked[picked > 1]

        torch.utils.checkpoint.checkpoint(part, weight, use_reentrant=is_reentrant).sum().backward()
        return found, weight.grad.shape

    before = said()
    assert shapes("cuda") == shapes("cpu") and said() == before


def test_gradients_of_gradients_of_masks(fresh):
    weight = data("cuda").requires_grad_()
    before = said()
    (gradient,) = torch.autograd.grad((weight[weight > 0] ** 2).sum(), weight, create_graph=True)
    (gradient**2).sum().backward()
    assert weight.grad.shape == weight.shape and said() == before
