"""One operator of PyTorch's database on the phantom and on the CPU: forward, backward, in place, and what it was given.

A verdict is a word and a reason. `equal`: all that a GPU would hold is known, and is what the CPU has. `unknown`: the
phantom says that it does not know something. `differs`: it knows something, and has it wrong. `raises`: it refuses what
the CPU does. `not compared`: PyTorch has no such operator on a card, or no samples.
"""

import contextlib
import random
import zlib

import numpy
import torch
from fathom._doorway.values import values
from tables import NOT_ON_A_CARD, OTHER_ON_A_CARD, UNWRITTEN
from torch.testing import _utils

# The worse ones last.
ORDER = ("not compared", "equal", "unknown", "differs", "raises")

# Samples of each type of numbers: most of them of the first type that an operator has.
TYPES = (torch.float32, torch.int64, torch.complex64, torch.bool, torch.bfloat16)
FIRST, LATER = 12, 3

# Of results, by how exact their type is. Both are computed by the CPU's kernels, though maybe by others of these.
CLOSE = {torch.float16: 1e-2, torch.bfloat16: 3e-2, torch.float64: 1e-7, torch.complex128: 1e-7}

# The database sets the seed for some operators, and puts the state back: then nobody could see that they draw.
_utils.freeze_rng_state = contextlib.nullcontext
SEEDED = [torch.Generator().manual_seed(42).get_state()]

# Seconds that a value is worth.
SECONDS = 20.0


def judge(op):
    """The worst of what its samples give."""
    worst = ("not compared", "PyTorch has it for none of the types that are tried, on a card")
    both = [dtype for dtype in TYPES if dtype in op.supported_dtypes("cuda") and dtype in op.supported_dtypes("cpu")]
    for number, dtype in enumerate(both):
        try:
            with seeded(op.name):
                has_gradients = op.supports_autograd and (dtype.is_floating_point or dtype.is_complex)
                samples = list(op.sample_inputs("cpu", dtype, requires_grad=has_gradients))
        except Exception as error:
            worst = worse(worst, ("not compared", f"no samples: {type(error).__name__}"))
            continue
        for sample in spread(samples, LATER if number else FIRST):
            for function in functions(op):
                found, why = compare(op, function, sample)
                worst = worse(worst, (found, why and f"{str(dtype).removeprefix('torch.')}: {why}"))
    return worst


def worse(one, other):
    return other if ORDER.index(other[0]) > ORDER.index(one[0]) else one


def spread(samples, most):
    """So many of them, from the first to the last."""
    if len(samples) <= most:
        return samples
    return [samples[number * (len(samples) - 1) // (most - 1)] for number in range(most)]


def functions(op):
    """The ways to call it: rules of ours go by functions."""
    return [function for function in (op.op, op.method_variant, op.inplace_variant) if function is not None]


def compare(op, function, sample):
    try:
        expected = Results(op, function, sample, "cpu")
    except Exception:
        return "not compared", "the CPU refuses it"
    try:
        found = Results(op, function, sample, "cuda")
        if found.error is not None and expected.error is None:
            raise found.error
    except Exception as error:
        return refused(op, error)
    parts = ["result", "given"] + ["gradients"] * (expected.error is None)
    for part in parts:
        verdict, why = alike(getattr(found, part), getattr(expected, part), expected.is_free)
        if verdict == "differs" and (name_of(op), part, why.split()[0]) in OTHER_ON_A_CARD:
            continue
        if verdict != "equal":
            return verdict, f"{part}: {why}" if why else part
    return "equal", ""


def refused(op, error):
    text = f"{type(error).__name__}: {' '.join(str(error).split())}"
    words = NOT_ON_A_CARD.get(name_of(op))
    if words is not None and words in text:
        return "not compared", f"PyTorch: {words}"
    return "raises", text[:120]


def name_of(op):
    return op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")


class Results:
    """What a function gives, what it leaves in what it was given, and gradients of that where they can be had."""

    def __init__(self, op, function, sample, device):
        with seeded(op.name):
            moved = sample.transform(lambda value: fresh(value, device))
            is_in_place = function is op.inplace_variant
            given = moved.input.clone() if is_in_place and isinstance(moved.input, torch.Tensor) else moved.input
            before = [*SEEDED, torch.get_rng_state()]
            result = function(given, *moved.args, **moved.kwargs)
            # What draws random numbers draws others on a card.
            is_random = not any(torch.equal(state, torch.get_rng_state()) for state in before)
            self.is_free = op.name in UNWRITTEN or is_random
        self.result = list(tensors(result))
        self.given = list(tensors((given, moved.args, list(moved.kwargs.values()))))
        leaves = list(tensors((moved.input, moved.args, list(moved.kwargs.values()))))
        self.error = None
        try:
            self.gradients = gradients(op, self.result, [x for x in leaves if x.is_leaf and x.requires_grad])
        except Exception as error:
            self.gradients, self.error = [], error


def gradients(op, results, leaves):
    outputs = [x for x in results if x.requires_grad and (x.is_floating_point() or x.is_complex())]
    if not (op.supports_autograd and leaves and outputs):
        return []
    total = sum((x.abs() if x.is_complex() else x).sum() for x in outputs)
    return [x for x in torch.autograd.grad(total, leaves, allow_unused=True) if x is not None]


def fresh(value, device):
    if not isinstance(value, torch.Tensor):
        return "cuda" if device == "cuda" and value in ("cpu", torch.device("cpu")) else value
    return value.detach().clone().to(device).requires_grad_(value.requires_grad)


@contextlib.contextmanager
def seeded(name):
    """Random numbers are the same in every run, whichever operators ran before; the state of others is left alone."""
    seed = zlib.crc32(name.encode())
    with torch.random.fork_rng(devices=[]):
        torch.random.default_generator.manual_seed(seed)
        random.seed(seed)
        numpy.random.seed(seed)
        yield


def alike(found, expected, is_free):
    if len(found) != len(expected):
        return "differs", f"{len(found)} tensors for {len(expected)}"
    for one, other in zip(found, expected):
        verdict, why = alike_one(one, other.detach(), is_free)
        if verdict != "equal":
            return verdict, why
    return "equal", ""


def alike_one(one, other, is_free):
    for name in ("shape", "dtype", "layout"):
        if getattr(one, name) != getattr(other, name):
            return "differs", f"{name} {getattr(one, name)} for {getattr(other, name)}"
    if is_free or other.is_cuda:  # some samples name the card themselves
        return "equal", ""
    known, how = values.get().value(one.detach(), SECONDS)
    if known is None:
        return "unknown", "" if how == "unknown" else how
    known, other = dense(known), dense(other)
    close = CLOSE.get(other.dtype, 1e-4)
    if not torch.allclose(known, other, rtol=close, atol=close, equal_nan=True):
        return "differs", "values"
    return "equal", ""


def dense(tensor):
    tensor = tensor if tensor.layout is torch.strided else tensor.to_dense()
    return tensor.resolve_conj().resolve_neg()


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)
