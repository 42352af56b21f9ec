"""Checkpoints of chosen modules as text: one statement behind each model, which names the modules as people would."""

import ast
import math
import sys

import torch

from ..file_owner import is_library
from . import Blocked
from .places import attributes_of, path_to, place_of
from .source import source_of

# What takes most of the time of a network.
COSTLY = (
    "mm",
    "addmm",
    "bmm",
    "baddbmm",
    "convolution",
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
)

# A statement of more characters is spread over lines.
WIDTH = 100


def parts_of(module):
    """In how many parts a `Sequential` of single layers is computed again, as `fit::saved::segments` plans it; `None` for all
    else, and where a part would begin with a function that changes its input."""
    layers = list(module.children())
    count = math.isqrt(len(layers))
    if type(module) is not torch.nn.Sequential or count < 2 or any(True for layer in layers for _ in layer.children()):
        return None
    first = [layers[part * (len(layers) // count)] for part in range(count)]
    # Of these the second time gives what the first gave.
    harmless = (torch.nn.ReLU, torch.nn.ReLU6, torch.nn.Hardtanh)
    return None if any(getattr(layer, "inplace", False) and type(layer) not in harmless for layer in first) else count


def recomputed_norms(module, keeps_products=False):
    """Norms that will see each batch twice."""
    count = None if keeps_products else parts_of(module)
    layers = [module] if count is None else list(module.children())[: (count - 1) * (len(module) // count)]
    return [norm for layer in layers for norm in layer.modules() if is_updated(norm)]


def costly():
    """The operators of this torch whose results are kept."""
    return [getattr(torch.ops.aten, name).default for name in COSTLY if hasattr(torch.ops.aten, name)]


def write(edits, modules, paths, keeps_products=False):
    chosen = [modules[path] for path in paths if path in modules]
    if len(chosen) < len(paths) or not chosen:
        raise Blocked("", "not all of the modules are there")
    for root, own in by_root(chosen, modules):
        before = list(edits.all)
        try:
            of_root(edits, root, own, keeps_products)
        except Blocked as why:
            edits.all = before
            if keeps_products:
                raise
            of_classes(edits, own, chosen, modules, why)


def of_classes(edits, own, chosen, modules, why):
    """A decorator of the forward pass, where no variable holds a model, as behind a function that makes it: it acts on all
    modules of a class."""
    kinds = {type(module) for module in own}
    others = [module for module in modules.values() if type(module) in kinds and not any(module is one for one in chosen)]
    if others or any(is_updated(norm) for module in own for norm in module.modules()):
        raise why
    for kind in kinds:
        source, forward = forward_of(kind, why)
        margin = source.indentation(forward)
        at = source.before(forward)
        first = "@lambda forward: lambda *args, **kwargs: torch.utils.checkpoint.checkpoint("
        lines = (first, "    forward, *args, use_reentrant=False, **kwargs", ")")
        edits.note(source, at, at, "".join(margin + line + source.newline for line in lines))
        source.imports(edits, "import torch.utils.checkpoint")


def forward_of(kind, why):
    """The statement of a class of the user's that defines its forward pass."""
    path = getattr(sys.modules.get(kind.__module__), "__file__", None)
    if path is None or is_library(path) or "forward" not in vars(kind):
        raise why
    source = source_of(path)
    for node in ast.walk(source.tree):
        if isinstance(node, ast.ClassDef) and node.name == kind.__name__:
            found = [each for each in node.body if isinstance(each, ast.FunctionDef) and each.name == "forward"]
            if len(found) == 1:
                return source, found[0]
    raise why


def of_root(edits, root, chosen, keeps_products):
    """The statement for the modules of one model."""
    place = place_of(root)
    divided = [] if keeps_products else [one for one in chosen if parts_of(one)]
    for one in divided:
        of_sequential(edits, place, path_to(root, one), one)
    chosen = [one for one in chosen if one not in divided]
    place.source.imports(edits, "import functools")
    place.source.imports(edits, "import torch.utils.checkpoint")
    if not chosen:
        return
    module, norm = (place.source.free_name(name) for name in ("module", "norm"))
    terms = terms_of(root, [path_of(root, module) for module in chosen], place.expression)
    lines = [f"for {module} in {listed(terms[0])}:"]
    if 1 < len(terms):
        lines = [f"for {module} in ({', '.join(terms)}):"]
        if WIDTH < len(lines[0]):
            lines = [f"for {module} in (", *(f"    {term}," for term in terms), "):"]
    lines.append(f"    {module}.forward = functools.partial(")
    lines.append(f"        torch.utils.checkpoint.checkpoint, {module}.forward, use_reentrant=False" + "," * keeps_products)
    if keeps_products:
        kept = place.source.free_name("costly")
        names = (f"    torch.ops.aten.{operator.name().partition('::')[2]}.default," for operator in costly())
        lines = [f"{kept} = [  # their results are kept", *names, "]", *lines]
        contexts = "torch.utils.checkpoint.create_selective_checkpoint_contexts"
        lines.append(f"        context_fn=functools.partial({contexts}, {kept}),")
    lines.append("    )")
    kinds = sorted({type(norm).__name__ for module in chosen for norm in module.modules() if is_updated(norm)})
    if kinds:
        lines.append(f"    for {norm} in {module}.modules():  # it sees each batch twice")
        lines.append(f"        if isinstance({norm}, torch.nn.modules.batchnorm._BatchNorm):")
        lines.append(f"            {norm}.momentum = 1 - (1 - {norm}.momentum) ** 0.5")
    place.write(edits, lines)


def of_sequential(edits, place, path, module):
    """The statement for one that is computed again in parts."""
    name, count = place.expression + path, parts_of(module)
    lines = [f"{name}.forward = functools.partial("]
    lines += [f"    torch.utils.checkpoint.checkpoint_sequential, list({name}), {count}, use_reentrant=False", ")"]
    if recomputed_norms(module):
        norm = place.source.free_name("norm")
        lines.append(f"for {norm} in {name}[:{(count - 1) * (len(module) // count)}]:  # of each part but the last, which is kept")
        lines.append(f"    if isinstance({norm}, torch.nn.modules.batchnorm._BatchNorm):  # it sees each batch twice")
        lines.append(f"        {norm}.momentum = 1 - (1 - {norm}.momentum) ** 0.5")
    place.write(edits, lines)


def is_updated(module):
    """Whether a module keeps running statistics of the batches it sees."""
    is_norm = isinstance(module, torch.nn.modules.batchnorm._BatchNorm)
    return is_norm and module.training and module.track_running_stats and module.momentum is not None


def by_root(chosen, modules):
    """(outermost module, those of the chosen that it contains): a GAN has two, a pair of networks that are refined has two."""
    roots = sorted(modules.values(), key=lambda module: -sum(1 for _ in module.modules()))
    groups = {}
    for one in chosen:
        root = next(module for module in roots if path_to(module, one) is not None)
        groups.setdefault(id(root), (root, []))[1].append(one)
    return groups.values()


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
