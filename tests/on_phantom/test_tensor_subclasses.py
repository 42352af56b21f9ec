"""What functions of PyTorch read for themselves on their way, and what they only look at from outside."""

import pytest
import torch
from fathom._doorway import functions
from fathom._doorway.values import values

SIDE = 2000


@pytest.fixture
def unknown():
    """A gradient that is not known."""
    weight = torch.ones(SIDE, SIDE, device="cuda", requires_grad=True)
    (weight * 2).sum().backward()
    assert functions.install().ledger.is_unknown(weight.grad)
    return weight.grad


PATTERNS = {
    "zeros_like": torch.zeros_like,
    "full_like": lambda x: torch.full_like(x, 3),
    "rand_like": torch.rand_like,
    "new_zeros": lambda x: x.new_zeros(4),
    "new_tensor": lambda x: x.new_tensor([1, 2]),
    "new": lambda x: x.new([1.0, 2.0]),
    "type_as": lambda x: torch.arange(3, device="cuda").type_as(x),
    "to": lambda x: torch.arange(3, device="cuda").to(x),
}


@pytest.mark.parametrize("name", PATTERNS)
def test_what_only_gives_its_shape_or_kind_need_not_be_known(name, unknown):
    assert not functions.install().ledger.is_unknown(PATTERNS[name](unknown))


@pytest.mark.parametrize("function", (lambda x: x.new_tensor(x), lambda x: x.to(x.double()), lambda x: x.type_as(x) * 1))
def test_what_gives_its_values_too_must_be(function, unknown):
    assert functions.install().ledger.is_unknown(function(unknown))


def taken(function):
    before = torch.cuda.memory_stats()["allocated_bytes.all.allocated"]
    result = function()
    return torch.cuda.memory_stats()["allocated_bytes.all.allocated"] - before, result


def test_a_sparse_product_adds_up_what_is_there_twice(fresh):
    """It allocates what is left then, also where its other factor is not known."""
    generator = torch.Generator().manual_seed(0)
    places = torch.randint(0, 300, (2, 20_000), generator=generator).cuda()
    doubled = torch.sparse_coo_tensor(places, torch.rand(20_000).cuda(), (300, 300), check_invariants=False)
    other = torch.rand(300, 8, device="cuda")
    torch.sparse.mm(doubled, other)  # the library's own memory
    before = values.get().decisions.total()
    whole, _ = taken(lambda: torch.sparse.mm(doubled, other))
    added, once = taken(doubled.coalesce)
    rest, _ = taken(lambda: torch.sparse.mm(once, other))
    assert once._nnz() < 20_000 and whole == added + rest, (whole, added, rest)
    assert values.get().decisions.total() == before


PRODUCTS = {
    "all": lambda x: x.prod(),
    "of rows": lambda x: x.prod(1),
    "one after the other": lambda x: torch.cumprod(x, 1),
}


@pytest.mark.parametrize("name", PRODUCTS)
def test_products_look_for_zeros_when_they_go_back(name, fresh):
    """In C++, in a thread without a line of the script's: without zeros less is allocated."""
    weight = torch.rand(SIDE, SIDE).cuda().requires_grad_()  # no toy
    zero = torch.ones(SIDE, SIDE)
    zero[3, 5] = 0
    before = values.get().decisions.total()

    def trained(factor):
        PRODUCTS[name]((weight + 1) * factor).sum().backward()

    for factor in (torch.ones_like(zero), zero):
        trained(factor.cuda())
    without, _ = taken(lambda: trained(torch.ones_like(zero).cuda()))
    with_one, _ = taken(lambda: trained(zero.cuda()))
    assert without < with_one, (without, with_one)
    if name == "one after the other" and torch.__version__ < "2.13":
        return  # it looks for the first zero as well, which is not followed there, and said
    assert values.get().decisions.total() == before


def test_a_product_of_what_is_not_known_says_so(unknown):
    weight = torch.ones(SIDE, SIDE, device="cuda", requires_grad=True)
    before = values.decisions()
    torch.cumprod(weight * unknown, 0).sum().backward()
    (noted,) = [row for row in values.decisions() if row not in before]
    assert noted["operator"] == "cumprod" and noted["file"] == __file__ and noted["count"] == 1
