"""What of a tensor lies on the card."""

from inspect import getattr_static

import torch
from torch.utils._python_dispatch import is_traceable_wrapper_subclass

from .functions import PLAIN

# What classes have that leave functions as they are.
DISABLED = torch._C._disabled_torch_function_impl

# The parts of sparse tensors, by layout.
PARTS = {
    torch.sparse_coo: ("_indices", "_values"),
    **dict.fromkeys((torch.sparse_csr, torch.sparse_bsr), ("crow_indices", "col_indices", "values")),
    **dict.fromkeys((torch.sparse_csc, torch.sparse_bsc), ("ccol_indices", "row_indices", "values")),
}


def storages(tensor):
    """Itself, or the parts of one that has no memory of its own: sparse, distributed, nested, wrapped by `torch.func`."""
    return [part for part in parts(tensor) if type(part) in PLAIN and part.is_cuda and has_memory(part)]


def parts(tensor):
    if tensor.layout in PARTS:
        return [part for name in PARTS[tensor.layout] for part in parts(getattr(tensor, name)())]
    if is_traceable_wrapper_subclass(tensor):
        names, _ = tensor.__tensor_flatten__()
        # Some name other things as well, such as the mesh of a distributed tensor.
        inner = [getattr(tensor, name) for name in names]
        return [part for each in inner if isinstance(each, torch.Tensor) for part in parts(each)]
    if type(tensor) not in PLAIN:
        return parts(without_class(tensor)) if has_own_memory(type(tensor)) else []
    if has_memory(tensor):
        return [tensor]
    inner = unwrapped(tensor)
    return [] if inner is None else parts(inner)


def has_own_memory(owner):
    """Whether a class of the user's leaves operators alone: then its tensors are ordinary ones below."""
    return owner.__torch_dispatch__ is torch.Tensor.__torch_dispatch__


def leaves_functions(owner):
    """Whether it leaves functions alone as well, as PyTorch's own class of parameters does."""
    function = getattr_static(owner, "__torch_function__")
    return has_own_memory(owner) and function in (DISABLED, vars(torch.Tensor)["__torch_function__"])


def without_class(tensor):
    with torch._C.DisableTorchFunctionSubclass():
        return torch.Tensor.detach(tensor)


def has_memory(tensor):
    try:
        return tensor.data_ptr() != 0
    except (RuntimeError, ValueError):
        return False


def unwrapped(tensor):
    """What a transform of `torch.func` has wrapped."""
    functorch = torch._C._functorch
    return functorch.get_unwrapped(tensor) if functorch.is_functorch_wrapped_tensor(tensor) else None


def shape_of(tensor):
    """Its sizes; `None` if it cannot tell."""
    try:
        return tensor.shape
    except (RuntimeError, ValueError):
        return None


def elements(tensor):
    """How many it has; none if it cannot tell, as a parameter that is not made yet."""
    try:
        return tensor.numel()
    except (RuntimeError, ValueError):
        return 0
