"""True values for small tensors, so that shapes and control flow computed on the card are right.

Kernels do not run on the phantom. But its memory is ordinary host memory, so an operator whose
tensors are all small is computed a second time by PyTorch's CPU kernel, on the same addresses: first
the operator itself runs (allocations are PyTorch's own), then its result is filled in. A small result
of large inputs is set to zero, so that stale bytes are never read. Large data stays what it is: not
computed, read back as zeros.

Operators whose result *shape* depends on values are computed on the CPU first, and the result is
placed on the card. Where their inputs are too large to be known, that is noted: the report says so.
"""

import collections
import ctypes
import os
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Tensors of at most this many elements, in a storage of at most this many bytes, hold true values.
SMALL_ELEMENTS = int(os.environ.get("FATHOM_SMALL_ELEMENTS") or 1 << 16)
SMALL_BYTES = 8 * SMALL_ELEMENTS

PLAIN = {torch.Tensor, torch.nn.Parameter, getattr(torch.nn, "Buffer", torch.nn.Parameter)}

# What an operator needs from us; found once per operator.
VIEW, NORMAL, DYNAMIC, SCALAR = range(4)

aten = torch.ops.aten
COPIES = {aten._to_copy.default, aten.copy_.default, aten.copy.default, aten.clone.default}
MASKED = {aten.index.Tensor, aten.index_put_.default, aten.index_put.default, aten._index_put_impl_.default}


class Unknown(Exception):
    """An argument whose value is not known."""


class Values(TorchDispatchMode):
    def __init__(self):
        super().__init__()
        self.kinds = {}
        self.without_cpu_kernel = set()
        self.unreal = collections.Counter()
        self.memory = Memory()
        self.generator = torch.Generator().manual_seed(torch.initial_seed() % 2**63)

    @classmethod
    def ignore_compile_internals(cls):
        return True  # torch.compile may compile although this mode is on

    @classmethod
    def _should_skip_dynamo(cls):
        return False  # no wrapper around each call: compiled code never traces into this mode

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kind = self.kinds.get(func)
        if kind is None:
            kind = self.kinds[func] = kind_of(func)
        if kind == VIEW:
            return func(*args, **kwargs) if kwargs else func(*args)
        if kind >= DYNAMIC and is_on_card(args):
            return self.dynamic(func, kind, args, kwargs or {})
        result = func(*args, **kwargs) if kwargs else func(*args)
        if has_large(args) or has_large((result,)):
            if type(result) is torch.Tensor:
                if result.numel() <= SMALL_ELEMENTS and result.is_cuda:
                    self.clear(func, result)
            elif result is not None:
                self.clear(func, result)
            return result
        return self.fill(func, args, kwargs or {}, result)

    # -- the ordinary case: the operator has run, its small results are filled in ------------------

    def fill(self, func, args, kwargs, result):
        if not (is_on_card(args) or is_on_card((result,))):
            return result
        try:
            value = self.compute(func, args, kwargs)
            if is_sparse(result):  # how many elements it has is a matter of values
                return self.to_card(value, result.device)
            self.store(result, value)
        except Unknown:
            self.clear(func, result)
        except NotImplementedError:
            self.without_cpu_kernel.add(func)
            self.clear(func, result)
        except Exception:  # a check that these values do not pass: the result stays unknown
            self.clear(func, result)
        return result

    def compute(self, func, args, kwargs):
        if func in self.without_cpu_kernel:
            raise Unknown
        args = tuple(self.to_cpu(value) for value in args)
        kwargs = {name: self.to_cpu(value) for name, value in kwargs.items()}
        if torch.Tag.nondeterministic_seeded not in func.tags:
            return func(*args, **kwargs)
        if any(argument.name == "generator" for argument in func._schema.arguments):
            return func(*args, **{**kwargs, "generator": self.generator})
        with torch.random.fork_rng(devices=[]):  # the user's own random numbers are not used up
            return func(*args, **kwargs)

    def to_cpu(self, value):
        if isinstance(value, torch.Tensor):
            return self.memory.alias(value) if value.is_cuda else value
        if isinstance(value, (list, tuple)):
            return type(value)(self.to_cpu(item) for item in value)
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        if isinstance(value, torch.Generator):
            return self.generator
        return value

    def store(self, result, value):
        if isinstance(result, torch.Tensor):
            target = self.memory.alias(result) if result.is_cuda else result
            if target.shape != value.shape:  # what is kept for the backward pass differs between CPU and card
                target.zero_()
            elif target.data_ptr() != value.data_ptr():
                target.copy_(value)
        elif isinstance(result, (list, tuple)):
            for item, item_value in zip(result, value):
                self.store(item, item_value)

    def clear(self, func, result):
        """Small results whose value is not known are zero; results written in place stay as they are."""
        results = result if isinstance(result, (list, tuple)) else (result,)
        for item, spec in zip(results, func._schema.returns):
            if not isinstance(item, torch.Tensor) or not item.is_cuda or spec.alias_info is not None:
                continue
            if item.layout is torch.strided and item.numel():
                storage = item.untyped_storage()
                if storage.nbytes() <= SMALL_BYTES:
                    ctypes.memset(storage.data_ptr(), 0, storage.nbytes())

    # -- shapes and scalars that depend on values -------------------------------------------------

    def dynamic(self, func, kind, args, kwargs):
        if func in MASKED:
            return self.masked(func, args, kwargs)
        try:
            value = self.compute(func, args, kwargs)
        except Exception:
            if kind == DYNAMIC:
                self.note(func)
            return func(*args, **kwargs)
        if kind == SCALAR:
            func(*args, **kwargs)  # the operator's own synchronisation and allocations
            return value
        return self.to_card(value, next(tensors(args)).device)

    def masked(self, func, args, kwargs):
        """Boolean masks whose values are known become positions; the operator itself runs."""
        indices = []
        for index in args[1]:
            if index is None or index.dtype not in (torch.bool, torch.uint8) or not index.is_cuda:
                indices.append(index)
                continue
            try:
                positions = self.memory.alias(index).nonzero(as_tuple=True)
                indices.extend(self.to_card(positions, index.device))
            except Unknown:
                self.note(func)
                indices.append(index)
        args = (args[0], indices, *args[2:])
        result = func(*args, **kwargs)
        if has_large(args) or has_large((result,)):
            return result
        return self.fill(func, args, kwargs, result)

    def to_card(self, value, device):
        if is_sparse(value):
            return rebuild(value, lambda part: self.to_card(part, device))
        if isinstance(value, torch.Tensor):
            result = torch.empty(value.shape, dtype=value.dtype, device=device)
            if result.untyped_storage().nbytes() <= SMALL_BYTES:
                self.memory.alias(result).copy_(value)
            return result
        return type(value)(self.to_card(item, device) for item in value)

    def note(self, func):
        from .watch import user_frame

        where = user_frame(sys._getframe(2))
        self.unreal[(str(func), where.get("file"), where.get("line"))] += 1


class Memory:
    """The card's memory seen as CPU tensors."""

    def __init__(self):
        phantom = ctypes.CDLL(None)
        base, size = ctypes.c_uint64(), ctypes.c_uint64()
        if phantom.fathom_arena(ctypes.byref(base), ctypes.byref(size)) != 0:
            raise RuntimeError("the phantom has no memory")
        self.base = base.value
        self.bytes = torch.frombuffer((ctypes.c_uint8 * size.value).from_address(self.base), dtype=torch.uint8)
        self.typed = {}

    def alias(self, tensor):
        """A CPU tensor on the same addresses, if the tensor is small enough to hold values."""
        if type(tensor) not in PLAIN:
            raise Unknown
        if tensor.layout is not torch.strided:
            return rebuild(tensor, self.alias)
        if tensor.untyped_storage().nbytes() > SMALL_BYTES:
            raise Unknown
        dtype = tensor.dtype
        typed = self.typed.get(dtype)
        if typed is None:
            typed = self.typed[dtype] = self.bytes.view(dtype)
        if tensor.numel() == 0:
            return torch.empty_strided(tensor.size(), tensor.stride(), dtype=dtype)
        offset = (tensor.data_ptr() - self.base) // typed.element_size()
        view = typed.as_strided(tensor.size(), tensor.stride(), offset)
        view = view.conj() if tensor.is_conj() else view
        return view._neg_view() if tensor.is_neg() else view


def rebuild(tensor, part):
    """A sparse tensor made of other parts: the same elements elsewhere."""
    if tensor.layout is torch.sparse_coo:
        return torch.sparse_coo_tensor(
            part(tensor._indices()), part(tensor._values()), tensor.size(),
            is_coalesced=tensor.is_coalesced(), check_invariants=False,
        )  # fmt: skip
    if tensor.layout is torch.sparse_csr:
        rows, columns, values = tensor.crow_indices(), tensor.col_indices(), tensor.values()
        return torch.sparse_csr_tensor(
            part(rows), part(columns), part(values), tensor.size(), check_invariants=False
        )
    raise Unknown


def is_sparse(value):
    return isinstance(value, torch.Tensor) and value.layout is not torch.strided


def kind_of(func):
    if torch.Tag.dynamic_output_shape in func.tags or func in MASKED:
        return DYNAMIC
    if torch.Tag.data_dependent_output in func.tags:
        return SCALAR
    returns = func._schema.returns
    views = [r.alias_info is not None and not r.alias_info.is_write for r in returns]
    return VIEW if views and all(views) else NORMAL


def has_large(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            if value.numel() > SMALL_ELEMENTS:
                return True
        elif isinstance(value, (list, tuple)) and has_large(value):
            return True
    return False


def is_on_card(values):
    return any(tensor.is_cuda for tensor in tensors(values))


def tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


_mode = None


def install():
    global _mode
    _mode = Values()
    _mode.__enter__()
    _print_with_values()
    os.register_at_fork(after_in_child=_leave)


def _print_with_values():
    """Tensors are printed with all modes off; with ours on, the printed values are the true ones."""
    inner = torch._tensor_str._str

    def _str(self, *, tensor_contents=None):
        if torch._C._len_torch_dispatch_stack() != 1:
            return inner(self, tensor_contents=tensor_contents)
        with torch.no_grad():
            return torch._tensor_str._str_intern(self, tensor_contents=tensor_contents)

    torch._tensor_str._str = _str


def _leave():
    """A forked data loader has no card: its operators need not pass through here."""
    global _mode
    if _mode is not None:
        _mode.__exit__(None, None, None)
        _mode = None


def unreal():
    """Operators whose result shape was asked of values that are not known, with their lines."""
    if _mode is None:
        return []
    return [
        {"operator": name, "file": file, "line": line, "count": count}
        for (name, file, line), count in _mode.unreal.most_common(20)
    ]
