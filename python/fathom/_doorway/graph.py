"""Where autograd graphs begin, and under which attributes nodes keep tensors; `crates/recorder/src/graph.rs` walks them."""

import contextlib

import torch

HAS_RAW_DATA = hasattr(torch._C._autograd.SavedTensor, "data")


def root_nodes(roots):
    """Where a backward pass begins: nodes of tensors, or edges of the graph, as pipelines give them."""
    for root in roots:
        node = root.grad_fn if isinstance(root, torch.Tensor) else getattr(root, "node", None)
        if node is not None:
            yield node


def is_made(tensor):
    """Whether a function made it. A view whose base has changed in place cannot say, and was made."""
    try:
        return tensor.grad_fn is not None
    except RuntimeError:
        return True


def made_by(tensors):
    """The nodes that made these, as far as they can say."""
    made = set()
    for tensor in tensors:
        with contextlib.suppress(RuntimeError):
            made.add(tensor.grad_fn)
    return made - {None}


def fields_of(node):
    """(name, attribute) of what nodes of this type save."""
    names = dir(type(node))
    if "saved_tensors" in names:  # a Function of the user's
        return [("saved", "_raw_saved_tensors" if HAS_RAW_DATA else "saved_tensors")]
    raw = [name for name in names if name.startswith("_raw_saved_")]
    return [(name.removeprefix("_raw_saved_"), name if HAS_RAW_DATA else name.removeprefix("_raw")) for name in raw]
