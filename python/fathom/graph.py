"""The autograd graph before a backward pass: its nodes, and what each of them keeps.

Nothing is unpacked that a hook has packed: a checkpoint would compute its block again.
"""

import contextlib

import torch

HAS_RAW_DATA = hasattr(torch._C._autograd.SavedTensor, "data")

_fields = {}  # type of a node -> names of what it saves


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


def nodes_of(roots, seen=None):
    """Every node that a backward pass from these can reach, but for those seen before."""
    seen = set() if seen is None else seen
    waiting = [node for node in dict.fromkeys(roots) if node not in seen]
    seen.update(waiting)
    while waiting:
        node = waiting.pop()
        yield node
        for following, _ in node.next_functions:
            if following is not None and following not in seen:
                seen.add(following)
                waiting.append(following)


def saved_by(node, is_hooked):
    """(name, tensor) for each tensor that a node keeps as it is."""
    if not HAS_RAW_DATA and is_hooked:
        return
    for name, field in fields_of(node):
        try:
            value = getattr(node, field)
        except RuntimeError:  # freed by an earlier backward pass
            continue
        for part in value if isinstance(value, (tuple, list)) else (value,):
            tensor = unpacked(part)
            if tensor is not None:
                yield name, tensor
    for name, value in getattr(node, "__dict__", {}).items():  # what a Function of the user's keeps in `ctx`
        if isinstance(value, torch.Tensor):
            yield name, value


def unpacked(saved):
    """The tensor that is kept; None if a hook keeps something else."""
    if isinstance(saved, torch.Tensor):
        return saved
    try:
        kept = saved.data
    except (RuntimeError, AttributeError):
        return None
    return kept if isinstance(kept, torch.Tensor) else None


def fields_of(node):
    kind = type(node)
    found = _fields.get(kind)
    if found is None:
        found = _fields[kind] = list(_find_fields(kind))
    return found


def _find_fields(kind):
    names = dir(kind)
    if "saved_tensors" in names:  # a Function of the user's
        yield "saved", "_raw_saved_tensors" if HAS_RAW_DATA else "saved_tensors"
        return
    for raw in names:
        if raw.startswith("_raw_saved_"):
            name = raw.removeprefix("_raw_saved_")
            yield name, raw if HAS_RAW_DATA else "_saved_" + name
