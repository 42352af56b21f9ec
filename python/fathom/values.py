"""True values for small tensors, so that shapes and control flow computed on the card are right.

Kernels do not run on the phantom. But its memory is ordinary host memory, so a torch function whose
tensors are all small is computed a second time by PyTorch's CPU kernels, on the same addresses: first
the function itself runs, undisturbed (allocations and the autograd graph are PyTorch's own), then its
result is filled in. A small result of large inputs is set to zero, so that stale bytes are never read.
Large data stays what it is: not computed, read back as zeros.

Functions whose result *shape* depends on values get their values first. Where those are not known
because the inputs are large, that is noted: the report says so.

Functions are seen by the mode in `functions.py`.
"""

import collections
import ctypes
import functools
import gc
import sys

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from . import functions, graph
from . import value_rules as rules
from .card_memory import SMALL_BYTES, SMALL_ELEMENTS, Memory, Unknown, allocated, rebuild
from .guard import undisturbed

# A backward pass can have true values when no more than this is allocated on the card.
TINY_BYTES = 128 << 20


class Values:
    def __init__(self):
        self.without_cpu_kernel = set()
        self.unreal = collections.Counter()
        self.generator = torch.Generator().manual_seed(torch.initial_seed() % 2**63)

    @functools.cached_property
    def memory(self):
        return Memory()

    @functools.cached_property
    def small(self):
        return functions.install().small

    def run_special(self, func, args, kwargs):
        """A function with a rule of its own; the others run in `functions.rs`."""
        rule = rules.SPECIAL[func] if is_on_card(args, kwargs) else rules.ordinary
        return rule(self, func, args, kwargs)

    def complete(self, func, args, kwargs, result):
        """The function has run: small results are filled in if all is small, else they are zero."""
        return functions.install().inner.complete(func, args, kwargs, result)

    # -- the ordinary case: the function has run, its small results are filled in -------------------

    def fill(self, func, args, kwargs, result):
        if not (is_on_card((result,)) or is_on_card(args, kwargs)):
            return result
        try:
            with aside():
                value = self.compute(func, args, kwargs)
                if is_sparse(result):  # how many elements it has is a matter of values
                    return self.to_card(value, result.device)
                self.store(result, value)
        except Unknown:
            self.small.clear(args, result)
        except NotImplementedError:
            self.without_cpu_kernel.add(func)
            self.small.clear(args, result)
        except Exception:  # a check that these values do not pass: the result stays unknown
            self.small.clear(args, result)
        return result

    def compute(self, func, args, kwargs):
        """The same function of the same values, on the CPU."""
        if func in self.without_cpu_kernel:
            raise Unknown
        args = tuple(self.to_cpu(value) for value in args)
        kwargs = {name: self.to_cpu(value) for name, value in kwargs.items()}
        with aside():
            return self.call(func, args, kwargs)

    def call(self, func, args, kwargs):
        if torch.is_autocast_enabled("cuda"):
            with torch.autocast("cpu", dtype=torch.get_autocast_dtype("cuda")):
                return func(*args, **kwargs)
        if not rules.is_random(func):
            return func(*args, **kwargs)
        with torch.random.fork_rng(devices=[]):  # the user's own random numbers are not used up
            torch.set_rng_state(self.generator.get_state())
            value = func(*args, **kwargs)
            self.generator.set_state(torch.get_rng_state())
        return value

    def to_cpu(self, value):
        if isinstance(value, torch.Tensor):
            return self.memory.alias(value) if value.is_cuda else value.detach()
        if isinstance(value, (list, tuple)):
            parts = [self.to_cpu(item) for item in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, torch.device) and value.type == "cuda":
            return torch.device("cpu")
        if isinstance(value, str) and (value == "cuda" or value.startswith("cuda:")):
            return "cpu"
        if isinstance(value, torch.Generator):
            return self.generator
        return value

    def store(self, result, value):
        if isinstance(result, torch.Tensor):
            # `.data` has a version counter of its own: autograd must not see a change.
            target = self.memory.alias(result) if result.is_cuda else result.data
            if target.shape != value.shape:  # what is kept for the backward pass differs between CPU and card
                target.zero_()
            elif target.data_ptr() != value.data_ptr():
                target.copy_(value)
        elif isinstance(result, (list, tuple)):
            for item, item_value in zip(result, value):
                self.store(item, item_value)

    # -- backward passes run in C++, where no function mode reaches ---------------------------------

    def run_backward(self, inner, args, kwargs, parameters):
        """Gradients of toy graphs are computed; in all others the small ones are zero, not stale."""
        with undisturbed():
            has_values = allocated() <= TINY_BYTES and is_toy(args[0])
        if has_values:
            with _Backward(self):
                return inner(*args, **kwargs)
        result = inner(*args, **kwargs)
        with undisturbed():
            self.small.clear((), result)
            self.small.clear_gradients(list(parameters()))
        return result

    # -- for the special rules ----------------------------------------------------------------------

    def to_card(self, value, device):
        if is_sparse(value):
            return rebuild(value, lambda part: self.to_card(part, device))
        if isinstance(value, torch.Tensor):
            result = torch.empty(value.shape, dtype=value.dtype, device=device)
            if result.untyped_storage().nbytes() <= SMALL_BYTES:
                self.memory.alias(result).copy_(value)
            return result
        return type(value)(self.to_card(item, device) for item in value)

    def positions(self, func, mask):
        """Where a mask on the card is true; the mask itself if that is not known."""
        try:
            found = self.memory.alias(mask).nonzero(as_tuple=True)
        except Unknown:
            self.note(func)
            return [mask]
        return [self.to_card(part, mask.device) for part in found]

    def note(self, func):
        from .watch import user_frame

        where = user_frame(sys._getframe(2))
        name = getattr(func, "__name__", str(func))
        self.unreal[(name, where.get("file"), where.get("line"))] += 1


class _Backward(TorchDispatchMode):
    """Completes operators of a backward pass, those that read nothing but what functions have filled in.

    A dispatch mode changes how gradients are added, and so the peak: only toy graphs get it.
    """

    def __init__(self, values):
        super().__init__()
        self.values = values

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        with torch._C.DisableTorchFunction():  # or operators would pass through both modes
            result = func(*args, **kwargs)
            if func._schema.name.removeprefix("aten::") in rules.SAFE_IN_BACKWARD:
                return self.values.complete(func, args, kwargs, result)
            self.values.small.clear(args, result)
            return result


class aside:  # noqa: N801  a context, like `no_grad`
    """What is computed here is nobody's business: no gradients, no garbage collected, and no second thread, which is not
    worth it for what is small, and would go on spinning for some milliseconds."""

    def __enter__(self):
        self.threads, self.has_gradients, self.collects = torch.get_num_threads(), torch.is_grad_enabled(), gc.isenabled()
        torch.set_num_threads(1)
        torch._C._set_grad_enabled(False)
        gc.disable()

    def __exit__(self, *_):
        torch.set_num_threads(self.threads)
        torch._C._set_grad_enabled(self.has_gradients)
        if self.collects:
            gc.enable()


def is_toy(roots):
    """Whether all that a backward pass gives gradients to is small together; stops where it is not."""
    nodes = list(graph.root_nodes([roots] if isinstance(roots, torch.Tensor) else roots))
    seen, elements = set(nodes), 0
    while nodes:
        node = nodes.pop()
        leaf = getattr(node, "variable", None)
        elements += leaf.numel() if leaf is not None else 0
        if elements > SMALL_ELEMENTS:
            return False
        following = [after for after, _ in node.next_functions if after is not None and after not in seen]
        seen.update(following)
        nodes.extend(following)
    return True


def is_sparse(value):
    return isinstance(value, torch.Tensor) and value.layout is not torch.strided


def is_on_card(values, named=None):
    if any(tensor.is_cuda for tensor in tensors(values)):
        return True
    return bool(named) and any(tensor.is_cuda for tensor in tensors(named.values()))


def tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


_values = None


def install():
    """The values of this process, to be asked for every function."""
    global _values
    _values = Values()
    torch.UntypedStorage.cpu = _with_values(torch.UntypedStorage.cpu)
    return _values


def run_backward(inner, args, kwargs, parameters):
    if _values is None:
        return inner(*args, **kwargs)
    return _values.run_backward(inner, args, kwargs, parameters)


def _with_values(inner):
    """Storages, which is what is saved to files, are copied below the functions."""

    @functools.wraps(inner)
    def cpu(self):
        copy = inner(self)
        if self.device.type == "cuda" and self.nbytes() <= SMALL_BYTES:
            ctypes.memmove(copy.data_ptr(), self.data_ptr(), self.nbytes())
        return copy

    return cpu


def unreal():
    """Functions whose result shape was asked of values that are not known, with their lines."""
    if _values is None:
        return []
    return [
        {"operator": name, "file": file, "line": line, "count": count}
        for (name, file, line), count in _values.unreal.most_common(20)
    ]
