"""Checkpoints of chosen modules as text: one statement behind the model, which names the modules as people would."""

import torch

from . import Blocked
from .places import attributes_of, path_to, place_of

# A statement of more characters is spread over lines.
WIDTH = 100


def write(edits, modules, paths):
    chosen = [modules[path] for path in paths if path in modules]
    if len(chosen) < len(paths) or not chosen:
        raise Blocked("", "not all of the modules are there")
    root = root_of(chosen, modules)
    place = place_of(root)
    terms = terms_of(root, [path_of(root, module) for module in chosen], place.expression)
    lines = [f"for module in {', '.join(terms)}:" if 1 < len(terms) else f"for module in {listed(terms[0])}:"]
    if 1 < len(terms):
        lines = [f"for module in ({', '.join(terms)}):"]
        if WIDTH < len(lines[0]):
            lines = ["for module in (", *(f"    {term}," for term in terms), "):"]
    lines.append("    module.forward = functools.partial(")
    lines.append("        torch.utils.checkpoint.checkpoint, module.forward, use_reentrant=False")
    lines.append("    )")
    kinds = sorted({type(norm).__name__ for module in chosen for norm in module.modules() if is_updated(norm)})
    if kinds:
        lines.append("    for norm in module.modules():  # it sees each batch twice")
        lines.append("        if isinstance(norm, torch.nn.modules.batchnorm._BatchNorm):")
        lines.append("            norm.momentum = 1 - (1 - norm.momentum) ** 0.5")
    place.write(edits, lines)
    place.source.imports(edits, "import functools")
    place.source.imports(edits, "import torch.utils.checkpoint")


def is_updated(module):
    """Whether a module keeps running statistics of the batches it sees."""
    is_norm = isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    return is_norm and module.training and module.track_running_stats and module.momentum is not None


def root_of(chosen, modules):
    """The outermost module that contains all of them."""
    around = [module for module in modules.values() if all(path_to(module, one) is not None for one in chosen)]
    if not around:
        raise Blocked("", "the modules belong to several models")
    return max(around, key=lambda module: sum(1 for _ in module.modules()))


def path_of(root, module):
    return next(path for path, inner in root.named_modules() if inner is module)


def listed(term):
    """One term alone: what it is a list of, or a list of it."""
    return term[1:] if term.startswith("*") else f"({term},)"


def terms_of(root, paths, name):
    """`*model.blocks[:3]`, `*(layer.mlp for layer in model.layers)`, `model.head` for all paths."""
    groups = {}
    for path in paths:
        parts = path.split(".")
        at = next((index for index in reversed(range(len(parts))) if is_numbered(root, parts[:index], parts[index])), None)
        key = (path, None) if at is None else (".".join(parts[:at]), ".".join(parts[at + 1 :]))
        groups.setdefault(key, []).append(None if at is None else int(parts[at]))
    return [term_of(root, name, *key, numbers) for key, numbers in groups.items()]


def is_numbered(root, before, part):
    holder = root.get_submodule(".".join(before))
    return part.isdigit() and isinstance(holder, (torch.nn.Sequential, torch.nn.ModuleList))


def term_of(root, name, before, after, numbers):
    if numbers == [None]:
        return name + attributes_of(root, before)
    holder, text = root.get_submodule(before), name + attributes_of(root, before)
    numbers = sorted(numbers)
    rest = attributes_of(holder[numbers[0]], after) if after else ""
    if len(numbers) == 1:
        return f"{text}[{numbers[0]}]{rest}"
    step = numbers[1] - numbers[0]
    if all(later - number == step for number, later in zip(numbers, numbers[1:])):
        first = str(numbers[0]) if numbers[0] else ""
        last = "" if numbers[-1] + step >= len(holder) else str(numbers[-1] + 1)
        part = f"[{first}:{last}]" if step == 1 else f"[{first}:{last}:{step}]"
        text = text if part == "[:]" else text + part
    else:
        text, rest = f"({', '.join(map(str, numbers))})", f"[index]{rest}"
        return f"*({name}{attributes_of(root, before)}{rest} for index in {text})"
    return f"*(block{rest} for block in {text})" if rest else f"*{text}"
