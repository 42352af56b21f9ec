"""Everything that PyTorch can do runs, and gives what the CPU gives, or says that it does not know."""

import pytest
import torch
from fathom._doorway.values import values
from torch.nn import functional as F


def numbers(*shape, seed=0, dtype=torch.float32):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed)).to(dtype)


def flat(value):
    """The tensors of a result, in order; what sparse and nested ones are made of counts."""
    if isinstance(value, torch.Tensor):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [part for item in value for part in flat(item)] if isinstance(value, (list, tuple)) else []


def known(tensor):
    """What the phantom says a card would hold; `None` if it does not know."""
    if tensor.is_nested:
        parts = [known(part) for part in tensor.detach().unbind()]
        return None if any(part is None for part in parts) else parts
    value, _ = values.get().value(tensor.detach(), 20.0)
    return value


def plain(tensor):
    if tensor.layout is not torch.strided and not tensor.is_nested:
        tensor = tensor.to_dense()
    if tensor.dtype.itemsize == 1 and tensor.is_floating_point():
        tensor = tensor.float()
    return tensor.resolve_conj().resolve_neg()


def check(program, may_be_unknown=False):
    """The same program on both; how many of its results are known."""
    expected = flat(program(lambda x: x.clone()))
    found = flat(program(lambda x: x.to("cuda")))
    assert len(found) == len(expected) > 0
    for one, other in zip(found, expected):
        if not one.is_cuda:
            assert torch.equal(one, other)
            continue
        assert one.dtype == other.dtype and one.layout == other.layout
        value = known(one)
        if value is None:
            assert may_be_unknown, "not known"
            continue
        pairs = zip(value, other.unbind()) if one.is_nested else [(value, other)]
        for mine, theirs in pairs:
            torch.testing.assert_close(plain(mine), plain(theirs.detach()), rtol=1e-3, atol=1e-4, equal_nan=True)


def model(to, width=6, depth=2, seed=0):
    """The same weights on both."""
    layers = []
    for number in range(depth):
        layer = torch.nn.Linear(width, width)
        with torch.no_grad():
            layer.weight.copy_(numbers(width, width, seed=seed + number) / width)
            layer.bias.zero_()
        layers += [layer, torch.nn.Tanh()]
    return torch.nn.Sequential(*layers).to(to(torch.zeros(1)).device)


# -- torch.func ---------------------------------------------------------------------------------------------


def loss(x):
    return (x.sin() * x).sum()


TRANSFORMS = {
    "grad": lambda to: torch.func.grad(loss)(to(numbers(5))),
    "grad_and_value": lambda to: torch.func.grad_and_value(loss)(to(numbers(5))),
    "vmap": lambda to: torch.func.vmap(torch.dot)(to(numbers(4, 5)), to(numbers(4, 5, seed=1))),
    "vmap of grad": lambda to: torch.func.vmap(torch.func.grad(loss))(to(numbers(4, 5))),
    "jvp": lambda to: torch.func.jvp(torch.sin, (to(numbers(5)),), (to(numbers(5, seed=1)),)),
    "vjp": lambda to: (lambda out, back: [out, back(to(numbers(5, seed=1)))])(*torch.func.vjp(torch.sin, to(numbers(5)))),
    "hessian": lambda to: torch.func.hessian(loss)(to(numbers(4))),
    "jacrev": lambda to: torch.func.jacrev(lambda x: x.sin() * x.sum())(to(numbers(4))),
    "jacfwd": lambda to: torch.func.jacfwd(lambda x: x.sin() * x.sum())(to(numbers(4))),
    "linearize": lambda to: torch.func.linearize(torch.sin, to(numbers(4)))[0],
    "functionalize": lambda to: torch.func.functionalize(lambda x: x.clone().add_(1))(to(numbers(4))),
}


@pytest.mark.parametrize("name", TRANSFORMS)
def test_transforms(name, fresh):
    check(TRANSFORMS[name], may_be_unknown=True)


def test_functional_call(fresh):
    def program(to):
        net = model(to)
        weights = {name: value * 2 for name, value in net.named_parameters()}
        return torch.func.functional_call(net, weights, (to(numbers(3, 6)),))

    check(program)


def test_gradients_for_each_sample(fresh):
    def program(to):
        net = model(to)
        weights = {name: value.detach() for name, value in net.named_parameters()}

        def one(weights, x):
            return torch.func.functional_call(net, weights, (x[None],)).square().sum()

        return torch.func.vmap(torch.func.grad(one), in_dims=(None, 0))(weights, to(numbers(3, 6)))

    check(program, may_be_unknown=True)


# -- scatter, masks --------------------------------------------------------------------------------------------

SCATTERS = {
    "slice_scatter": lambda to: torch.slice_scatter(to(numbers(6, 4)), to(numbers(2, 4, seed=1)), 0, 1, 5, 2),
    "select_scatter": lambda to: to(numbers(6, 4)).select_scatter(to(numbers(4, seed=1)), 0, 2),
    "diagonal_scatter": lambda to: torch.diagonal_scatter(to(numbers(4, 4)), to(numbers(4, seed=1))),
    "as_strided_scatter": lambda to: torch.as_strided_scatter(to(numbers(9)), to(numbers(2, 2, seed=1)), (2, 2), (1, 3)),
    "index_put": lambda to: to(numbers(6, 4)).index_put((to(numbers(6, 4)) > 0,), to(torch.tensor(7.0))),
    "index_put of rows": lambda to: to(numbers(6, 4)).index_put((to(numbers(6)) > 0,), to(numbers(4, seed=1))),
    "index_put, added": lambda to: to(torch.zeros(6)).index_put_(
        (to(torch.tensor([1, 1, 3])),), to(numbers(3)), accumulate=True
    ),
    "masked_scatter": lambda to: to(numbers(6)).masked_scatter(to(numbers(6)) > 0, to(numbers(6, seed=1))),
    "mask of a mask": lambda to: to(numbers(6))[to(numbers(6)) > 0][to(numbers(6))[to(numbers(6)) > 0] > 0.5],
}


@pytest.mark.parametrize("name", SCATTERS)
def test_scatters(name, fresh):
    check(SCATTERS[name])


# -- nested tensors --------------------------------------------------------------------------------------------


def pieces(to, width=4):
    return [to(numbers(length, width, seed=length)) for length in (2, 5, 3)]


def nested(to, layout):
    return torch.nested.nested_tensor(pieces(to), layout=layout)


NESTED = {
    "made": lambda to, layout: nested(to, layout),
    "as_nested_tensor": lambda to, layout: torch.nested.as_nested_tensor(pieces(to), layout=layout),
    "unbind": lambda to, layout: list(nested(to, layout).unbind()),
    "elementwise": lambda to, layout: nested(to, layout) * 2 + 1,
    "padded": lambda to, layout: torch.nested.to_padded_tensor(nested(to, layout), 9.0),
    "linear": lambda to, layout: F.linear(nested(to, layout), to(numbers(3, 4, seed=9)), to(numbers(3))),
    "matmul": lambda to, layout: nested(to, layout) @ to(numbers(4, 3, seed=9)),
    "softmax": lambda to, layout: nested(to, layout).softmax(-1),
    "layer norm": lambda to, layout: F.layer_norm(nested(to, layout), (4,)),
    "attention": lambda to, layout: attention(to, layout),
}


def attention(to, layout):
    heads = nested(to, layout).unflatten(-1, [2, 2]).transpose(1, 2) if layout is torch.jagged else None
    if heads is None:
        heads = torch.nested.nested_tensor([piece.view(-1, 2, 2).transpose(0, 1).contiguous() for piece in pieces(to)])
    return F.scaled_dot_product_attention(heads, heads, heads)


@pytest.mark.parametrize("layout", [torch.strided, torch.jagged], ids=str)
@pytest.mark.parametrize("name", NESTED)
def test_nested_tensors(name, layout, fresh):
    try:
        NESTED[name](lambda x: x, layout)
    except (NotImplementedError, RuntimeError, ValueError) as error:
        pytest.skip(f"not on the CPU of this torch: {error}")
    # The code of jagged ones is Python, and seen.
    is_seen = layout is torch.jagged and name != "attention"
    check(lambda to: NESTED[name](to, layout), may_be_unknown=not is_seen)


def test_a_write_to_a_jagged_tensor_is_a_write_to_its_values(fresh):
    def program(to):
        given = to(numbers(10, 4))
        whole = torch.nested.nested_tensor_from_jagged(given, to(torch.tensor([0, 2, 7, 10])))
        whole.mul_(3)
        return given

    check(program)


def test_offsets_of_jagged_tensors(fresh):
    def program(to):
        whole = nested(to, torch.jagged)
        return [whole.offsets(), whole.values(), whole.offsets().diff()]

    check(program)
