"""Carries out recipes on the CPU: the other end of `crates/recorder/src/values`, which decides what, when and in which order.

A storage's contents are a *flat* tensor of bytes here. Whatever fails is an error for the ledger, which then calls the
value unknown; nothing of it reaches the script.
"""

import contextlib
import zlib

import torch

from ..tracing import untraced

CPU = torch.device("cpu")
T = torch.Tensor

# A number that stands for one that is not computed: a loss of 1 is finite, and neither a divisor nor a logarithm of it fails.
STAND_IN = 1.0

# Flats have room for whole numbers of every size.
GRAIN = 16


def _same(x, *_, **__):
    return x.clone()


def _typed(x, dtype, *_, **__):
    """`x.type(dtype)`: a dtype, or a type of tensors, which may be one of the card's, or the name of such."""
    if isinstance(dtype, torch.dtype):
        return x.to(dtype, copy=True)
    name = dtype if isinstance(dtype, str) else f"{dtype.__module__}.{dtype.__name__}"
    return x.type(name.replace("torch.cuda.", "torch.")).clone()


def _cudnn_convolution(x, w, padding, stride, dilation, groups, *_, **__):
    return torch.conv2d(x, w, None, stride, padding, dilation, groups)


# What only moves tensors is a copy here.
ON_CPU = {T.cuda: _same, T.cpu: _same, T.pin_memory: _same, T.type: _typed}



def _added(x, other, *, alpha=1, **named):
    """The card puts elements of two sparse tensors one behind the other; the CPU adds those of the same place."""
    if not (isinstance(other, T) and x.layout is torch.sparse_coo and other.layout is torch.sparse_coo):
        return torch.add(x, other, alpha=alpha, **named)
    indices = torch.cat([x._indices(), other._indices()], 1)
    return torch.sparse_coo_tensor(indices, torch.cat([x._values(), other._values() * alpha]), x.shape)


def _counted(x, *args, **named):
    """The card counts whole numbers too, as those of experts; the CPU only such with a fraction."""
    return torch.histc(x if x.is_floating_point() else x.double(), *args, **named)


ON_CPU |= {T.add: _added, torch.add: _added, T.__add__: _added, T.histc: _counted, torch.histc: _counted}

# Kernels of the card's libraries, and what computes the same here.
ON_CPU |= {
    getattr(torch, name): function
    for name, function in {
        "cudnn_batch_norm": lambda x, w, b, mean, var, training, momentum, eps: (
            torch.batch_norm(x, w, b, mean, var, training, momentum, eps, False),
        ),
        "cudnn_convolution": _cudnn_convolution,
    }.items()
    if hasattr(torch, name)
}


def not_inferring():
    return torch._C._InferenceMode(False)


@untraced
def call(function, args, kwargs, autocast_dtype, seed):
    """The same function of the same values."""
    function = ON_CPU.get(function, function)
    kwargs = {name: value for name, value in kwargs.items() if name not in ("pin_memory", "non_blocking", "generator")}
    with torch._C.DisableTorchFunction(), torch.no_grad(), made_on_host():
        if seed is None:
            return _cast(function, args, kwargs, autocast_dtype)
        state = torch.get_rng_state()  # the user's own random numbers are not used up
        try:
            torch.random.default_generator.manual_seed(_mixed(*seed))
            return _cast(function, args, kwargs, autocast_dtype)
        finally:
            torch.set_rng_state(state)


@contextlib.contextmanager
def made_on_host():
    """Older scripts have all tensors made on the card that are not told where (`set_default_tensor_type`): not those here."""
    if torch._C._get_default_device() != "cuda":
        yield
        return
    name = {torch.float16: "Half", torch.bfloat16: "BFloat16", torch.float64: "Double"}.get(torch.get_default_dtype(), "Float")
    torch._C._set_default_tensor_type(getattr(torch, f"{name}Tensor"))
    try:
        yield
    finally:
        torch._C._set_default_tensor_type(getattr(torch.cuda, f"{name}Tensor"))


def _cast(function, args, kwargs, autocast_dtype):
    if "conv" in getattr(function, "__name__", ""):
        return _convolved(function, args, kwargs, autocast_dtype)
    if autocast_dtype is None:
        return _in_float(function, args, kwargs)
    with torch.autocast("cpu", dtype=autocast_dtype):
        return _in_float(function, args, kwargs)


def _convolved(function, args, kwargs, autocast_dtype):
    """With short numbers most CPUs take a hundred times as long. A card adds up in long ones too, and shortens the sum, as
    is done where the result is kept."""

    def given(value):
        is_cast = autocast_dtype is not None and isinstance(value, T) and value.is_floating_point()
        return _longer(value.to(autocast_dtype) if is_cast else value)

    return function(*map(given, args), **{name: given(value) for name, value in kwargs.items()})


def _in_float(function, args, kwargs):
    """Not every kernel of the CPU knows short numbers: then it is computed with longer ones."""
    try:
        return function(*args, **kwargs)
    except (NotImplementedError, RuntimeError) as error:
        if "not implemented" not in str(error) and "not support" not in str(error):
            raise
    longer = [_longer(value) for value in args]
    result = function(*longer, **{name: _longer(value) for name, value in kwargs.items()})
    for given, new in zip(args, longer):
        if isinstance(given, T) and given is not new:  # it may have been written to
            given.copy_(new)
    return result


def _longer(value):
    if isinstance(value, T) and value.is_floating_point() and value.element_size() < 4:
        return value.float()
    if isinstance(value, (list, tuple)):
        return type(value)(map(_longer, value))
    return value


def _mixed(seed, offset):
    """One seed from two numbers."""
    return (seed * 0x9E3779B97F4A7C15 + offset * 0xD1B54A32D192ED03) % (1 << 63)


def seed(generator=None):
    """Seed and offset of a generator: PyTorch counts the card's random numbers on the host, for real."""
    if generator is None:
        if not torch.cuda.is_initialized():
            return 0, 0
        generator = torch.cuda.default_generators[torch.cuda.current_device()]
    if generator.device.type != "cuda":
        return generator.initial_seed() % (1 << 64), zlib.crc32(generator.get_state().numpy().tobytes())
    try:
        return generator.initial_seed() % (1 << 64), generator.get_offset()
    except RuntimeError:  # while a graph is captured nobody counts
        return generator.initial_seed() % (1 << 64), 0


def autocast():
    return torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else None


@untraced
def undefined(count):
    return torch.zeros(-(-count // GRAIN) * GRAIN, dtype=torch.uint8, device=CPU)


@untraced
def copied(view):
    flat = undefined(len(view))
    flat.numpy()[: len(view)] = view
    return flat


@untraced
def view(flat, dtype, numbers, is_conjugate, is_negative):
    """A tensor of such a storage."""
    with torch._C.DisableTorchFunction():
        found = flat.view(dtype).as_strided(*numbers)
        found = found.conj() if is_conjugate else found
        return torch._neg_view(found) if is_negative else found


@untraced
def flat(value, dtype, numbers, lazily, count, other=None):
    """A storage in which a tensor of these numbers holds a value; maybe one that holds another already."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        if not isinstance(value, T) or tuple(value.shape) != tuple(numbers[0]):
            raise ValueError("the CPU gives another shape")
        if other is None and not any(lazily) and fills(value, dtype, numbers, count):
            return torch.empty(0, dtype=torch.uint8, device=CPU).set_(value.untyped_storage())
        whole = undefined(count) if other is None else other.clone()
        view(whole, dtype, numbers, *lazily).copy_(value)
        return whole


def fills(value, dtype, numbers, count):
    """Whether a value lies in its own storage as it is to lie in the flat one."""
    return (
        value.dtype is dtype
        and value.layout is torch.strided
        and not value.is_conj()
        and not value.is_neg()
        and (tuple(value.stride()), value.storage_offset()) == (tuple(numbers[1]), numbers[2])
        and value.untyped_storage().nbytes() == count
        and count % GRAIN == 0
    )


@untraced
def parts(tensor):
    """Tensors that a sparse one is made of, and whether no element is there twice."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        if tensor.layout is torch.sparse_coo:
            return [tensor._indices(), tensor._values()], tensor.is_coalesced()
        if tensor.layout in (torch.sparse_csr, torch.sparse_bsr):
            return [tensor.crow_indices(), tensor.col_indices(), tensor.values()], False
        if tensor.layout in (torch.sparse_csc, torch.sparse_bsc):
            return [tensor.ccol_indices(), tensor.row_indices(), tensor.values()], False
        return [], False


@untraced
def part(tensor, number):
    return parts(tensor)[0][number]


@untraced
def assembled(layout, parts, size, is_coalesced):
    """A sparse tensor of these parts."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        if layout is torch.sparse_coo:
            return torch.sparse_coo_tensor(*parts, size, is_coalesced=is_coalesced or None, check_invariants=False)
        return torch.sparse_compressed_tensor(*parts, size, layout=layout, check_invariants=False)


@untraced
def stand_in(dtype, size=()):
    return torch.full(size, STAND_IN, dtype=dtype, device=CPU)


@untraced
def constant(name, size):
    return torch.full(size, name == "isfinite", dtype=torch.bool, device=CPU)


@untraced
def fill(tensor, value):
    """A tensor of the host's gets its values; autograd must not see a change."""
    with torch._C.DisableTorchFunction(), torch.no_grad():
        tensor.data.copy_(value)


# Functions that give places in a tensor: whatever they give is one of them, and nobody goes by it yet.
PLACES = {"argmax", "argmin", "argsort", "kthvalue", "max", "median", "min", "msort", "multinomial", "sort", "topk"}


def is_shared(tensor):
    """Whether NumPy, or somebody else, has the same memory: PyTorch may not move it then. Weights may be a file's."""
    is_weight = isinstance(tensor, torch.nn.Parameter)
    return not is_weight and not tensor.untyped_storage().resizable()


@untraced
def decided_on_host(tensor, why, name, is_there, bounds):
    """A tensor of the host's has values that nobody knows: whether it was decided what they are. Numbers with a fraction are
    nearly always for logging; whole numbers and truths may be read by NumPy and functions in C++, unseen. What the host
    itself computed, with numbers that stand for others, is there."""
    from . import values

    if values.get() is None or tensor.is_quantized:
        return False
    is_for_logging = tensor.is_floating_point() or tensor.is_complex() or is_there and name in PLACES
    if is_for_logging and not is_shared(tensor):
        return False
    return values.get().decide_on_host(tensor, name, why, is_there, bounds)


def say_that_it_takes(seconds):
    """Something is computed that takes a while: that is said once for each line."""
    from . import values

    if values.get() is not None:
        values.get().say_that_it_takes(seconds)


def read_below(size):
    """Code that nobody sees has read so many bytes from the card that nobody knows: what is assumed, `None` for zeros."""
    from . import values

    return values.get().read_below(size) if values.get() is not None else None
