"""Rules for nested tensors with the layout `strided`, whose code is C++ and reads sizes from the card.

They are for functions that every model calls, and so are put in force by the first nested tensor only.
"""

import torch

from .. import functions
from ..guard import undisturbed
from . import rules

T = torch.Tensor

# What makes such tensors.
MAKERS = ("nested_tensor", "as_nested_tensor", "narrow")


def install():
    for name in MAKERS:
        if hasattr(torch.nested, name):
            functions.VALUES.around(torch.nested, name, before=_begin)
    rules.SPECIAL[torch._nested_tensor_from_mask] = _from_mask


def _begin(*_):
    rules.SPECIAL.update(NESTED)


def _from_mask(values, func, args, kwargs):
    """Layers of transformers make one of what is padded. It counts on the card what each row keeps, and reads that: its own
    allocations, and then the tensor of the true sizes."""
    _begin()
    padded, mask = args[:2]
    kept = values.to_cpu(mask, func)
    with undisturbed():
        lengths = kept.sum(1)
        sizes = torch.stack([lengths, torch.full_like(lengths, padded.shape[2])], 1)
    values.run(func, (padded, mask, False), {})
    return values.note(torch._nested_from_padded, (padded, sizes), {})


def matmul(values, func, args, kwargs):
    """Of nested tensors with heads it reads how many elements the result has."""
    given = [*args, *kwargs.values()]
    if len(given) > 1 and has_heads(given[0]) and has_heads(given[1]):
        return values.with_answers([elements(given[0], given[1])], func, args, kwargs)
    return values.note(func, args, kwargs)


def attention(values, func, args, kwargs):
    """Where it is made of products, it reads how many elements each of these has."""
    if len(args) < 3 or not all(has_heads(value) for value in args[:3]):
        return values.note(func, args, kwargs)
    with undisturbed():
        is_fused = func is not MATH and torch._fused_sdp_choice(*args, **kwargs) != 0
    if is_fused:
        return values.note(func, args, kwargs)
    query, key, value = args[:3]
    numbers = [elements(query, key.transpose(-1, -2)), elements(query, value)]
    return values.with_answers(numbers, func, args, kwargs)


def has_heads(value):
    return isinstance(value, T) and value.is_nested and value.layout is torch.strided and value.dim() == 4


def elements(one, other):
    """Of all the products of two nested tensors, part by part; rows of the one, columns of the other."""
    with undisturbed():
        pairs = zip(one.unbind(), other.unbind())
        return sum(left.shape[0] * left.shape[1] * right.shape[2] for left, right in pairs)


MATH = torch._scaled_dot_product_attention_math
NESTED = {
    **dict.fromkeys((torch.matmul, T.matmul, T.__matmul__), matmul),
    **dict.fromkeys((torch.nn.functional.scaled_dot_product_attention, MATH), attention),
}
