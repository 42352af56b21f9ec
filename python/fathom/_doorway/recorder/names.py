"""What the tensors of a script are: weights, gradients, optimizer state, buffers, copies of the model, inputs.

Each is found through what holds it, never by its size: modules, optimizers, arguments. `Names` gives
(category, name, tensor); the recorder notes their addresses.
"""

import collections
import re
import weakref

import torch

from ..card_memory import allocated
from ..functions import PLAIN
from ..graph import is_made
from ..modules import as_written, steady
from ..native import live_objects
from ..optimizers import parameters_of
from ..storages import elements, has_memory, shape_of
from . import packed

# A set of tensors is a copy of the parameters if it has this share of their elements, shape by shape.
COPY_SHARE = 0.9

# Modules around a model that add to the names of its parameters.
WRAPPERS = re.compile(r"^((module|_orig_mod|_fsdp_wrapped_module|_forward_module)\.)+")

# What models call a second set of weights in them that follows the first: `encoder_k`, `teacher`, `projector_momentum`.
FOLLOWER = re.compile(r"(^|_)(ema|average[d]?|momentum|teacher|target|key|k|m|shadow|slow)\d*(_|$)")

# Outside of modules, what these give is data that the script brings to the card.
FACTORIES = {
    getattr(owner, name)
    for owner in (torch, torch.Tensor)
    for name in """to cuda tensor as_tensor from_numpy arange linspace empty zeros ones full eye rand randn randint
    randperm normal bernoulli rand_like randn_like randint_like zeros_like ones_like full_like empty_like
    new_zeros new_ones new_full new_empty new_tensor float half bfloat16 long int""".split()
    if hasattr(owner, name)
}


class Names:
    def __init__(self, modules, optimizers):
        self.modules = modules
        self.optimizers = optimizers  # see optimizers.py
        self.of_parameter = {}  # id -> name
        self.copies = {}  # beginning of their names -> the copy of a model, by a weak reference
        self.caches = None  # see caches.py
        self.is_trained = None  # see facts.py

    # -- what is where ----------------------------------------------------------------------------

    @steady
    def of_modules(self):
        """Parameters and buffers of every model."""
        trained = {id(parameter) for parameter in self.optimizers.parameters()}
        roots = list(self.modules.living_roots())
        others = {id(root) for root, _ in roots if not is_empty(root) and not holds(root, trained)}
        originals = [signature(root) for root, _ in roots if id(root) not in others] if others else []
        for root, prefix in roots:
            is_copy = id(root) in others and signature(root) in originals
            copies = {"": root} if is_copy else self.followers(root)
            self.copies.update((prefix + as_written(path), weakref.ref(module)) for path, module in copies.items())
            begins = tuple(copies)
            for path, parameter in root.named_parameters():
                name = self.of_parameter[id(parameter)] = prefix + as_written(path)
                kind = "model_copies" if path.startswith(begins) else "weights"
                yield kind, name, parameter
                for part, tensor in packed.scales(name, parameter):
                    yield kind, part, tensor
            for path, buffer in root.named_buffers():
                kind = self.kind_of_buffer(root, path, buffer)
                yield "model_copies" if path.startswith(begins) else kind, prefix + as_written(path), buffer
            for path, module in root.named_modules():
                yield from self.caches.of_module(prefix, path, module)

    def followers(self, root):
        """Parts that follow a part beside them, such as a momentum encoder: named so, alike in every shape, and not trained."""
        found = {}
        trained = {id(parameter) for parameter in self.optimizers.parameters() if self.is_trained(parameter)}
        for path, module in root.named_modules() if trained else ():
            above, _, name = path.rpartition(".")
            # A single layer is no model: keys of attention may be frozen beside their queries.
            if not module._modules or not FOLLOWER.search(name.lower()) or is_empty(module) or holds(module, trained):
                continue
            beside = root.get_submodule(above).children()
            if any(holds(other, trained) and signature(other) == signature(module) for other in beside):
                found[f"{path}."] = module
        return found

    def kind_of_buffer(self, root, path, buffer):
        if self.caches.is_cache(path, buffer):
            return "kv_cache"
        above, _, name = path.rpartition(".")
        return "weights" if name in packed.PARTS and packed.is_part(root.get_submodule(above), name) else "buffers"

    def of_optimizers(self):
        """Parameters that no module has, and the state of each parameter."""
        for optimizer in self.optimizers.own():
            for index, parameter in enumerate(parameters_of([optimizer])):
                name = self.of_parameter.setdefault(id(parameter), f"parameter {index}")
                yield "weights", name, parameter
                for key, tensor in held(optimizer.state.get(parameter, ())):
                    yield "optimizer", f"{key} of {name}", tensor
            for parameter, state in optimizer.state.items():
                if not isinstance(parameter, torch.Tensor):
                    for key, tensor in held(state):
                        yield "optimizer", key or str(parameter), tensor

    def of_gradients(self):
        for parameter in self.optimizers.own_parameters():
            gradient = parameter.grad
            if gradient is not None:
                yield "gradients", f"gradient of {self.of_parameter.get(id(parameter), 'a parameter')}", gradient

    @steady
    def of_copies(self, taken):
        """Tensors outside of modules that together are a copy of the parameters, such as an average's shadow."""
        trained = {id(p): p for p in self.optimizers.parameters()}
        originals = [root for root, _ in self.modules.living_roots() if holds(root, trained)]
        parameters = {**trained, **{id(p): p for root in originals for p in root.parameters()}}
        wanted = collections.defaultdict(list)
        for key, parameter in parameters.items():
            wanted[shape_of(parameter)].append((self.of_parameter.get(key, "a parameter"), key in trained))
        total = sum(elements(parameter) for parameter in trained.values())
        if allocated() - sum(taken.values()) < COPY_SHARE * total:  # too little for one byte an element
            return []
        found = []
        for thing in live_objects(PLAIN):
            if thing.is_cuda and is_loose(thing) and thing.data_ptr() not in taken:
                names = wanted.get(shape_of(thing))
                if names:
                    name, is_of_trained = names.pop(0)
                    found.append((("model_copies", f"copy of {name}", thing), is_of_trained))
        # All of the model, or all that is trained: of a model with adapters these are few.
        for rows, whole in ((found, sum(map(elements, parameters.values()))), ([row for row in found if row[1]], total)):
            if whole and sum(row[2].numel() for row, _ in rows) >= COPY_SHARE * whole:
                return [row for row, _ in rows]
        return []

    @steady
    def counts(self):
        """Numbers that parameters stand for, each parameter once."""
        roots = self.counted_roots()
        every = {id(p): p for root in roots for p in root.parameters()}
        copies = {id(tensor) for category, _, tensor in self.of_modules() if category == "model_copies"}
        every.update((id(p), p) for p in self.optimizers.parameters())
        ours = [parameter for key, parameter in every.items() if key not in copies]
        trainable = sum(packed.stands_for(p) for p in ours if self.is_trained(p))
        total = sum(map(packed.stands_for, ours)) + sum(size for root in roots for size in packed.layers(root))
        return {"total": total, "trainable": trainable, "frozen": total - trainable}

    def counted_roots(self):
        """All models, but for those on the CPU of which the card has another: a trainer may build its own."""
        roots = [root for root, _ in self.modules.living_roots()]
        on_card = [root for root in roots if any(parameter.is_cuda for parameter in root.parameters())]
        kinds = [(type(root), names_of(root)) for root in on_card]

        def is_other(root):
            """Itself, or a model that it is a handle of."""
            parts = (part for part in root.modules() if any(type(part) is kind for kind, _ in kinds))
            return any((type(part), names_of(part)) in kinds for part in parts)

        return [root for root in roots if root in on_card or not is_other(root)]

    def unused(self, optimizer):
        """An optimizer's parameters that have no gradient, though they may have one, by name."""
        parameters = {id(p): p for group in optimizer.param_groups for p in group["params"]}
        without = [p for p in parameters.values() if p.requires_grad and p.grad is None]
        if without:
            list(self.of_modules())  # finds names
        return [(self.of_parameter.get(id(p), "a parameter"), p) for p in without]


def is_empty(root):
    return next(root.parameters(), None) is None


def is_loose(tensor):
    """Whether it may be somebody's own copy: made by no function that is differentiated, and of fractions."""
    return tensor.is_floating_point() and not is_made(tensor) and has_memory(tensor)


def names_of(root):
    """Names of its parameters, without those of wrappers: `module.` of DDP and averages, `_orig_mod.` of the compiler."""
    return [WRAPPERS.sub("", name) for name, _ in root.named_parameters()]


def signature(root):
    return list(zip(names_of(root), map(shape_of, root.parameters()), strict=True))


def holds(root, parameters):
    return any(id(parameter) in parameters for parameter in root.parameters())


def held(state, key=""):
    """(key, tensor) for the tensors in nested dictionaries and lists."""
    if isinstance(state, torch.Tensor):
        yield key, state
    elif isinstance(state, dict):
        for inner, value in state.items():
            yield from held(value, key or str(inner))
    elif isinstance(state, (list, tuple)):
        for value in state:
            yield from held(value, key)
    elif hasattr(state, "__dict__") and not isinstance(state, type):
        for inner, value in vars(state).items():
            if isinstance(value, torch.Tensor):
                yield key or inner, value


def arguments(args, kwargs):
    """(name, tensor) for the tensors given to a model."""
    for index, value in enumerate(args):
        yield from held(value, f"argument {index + 1}")
    for name, value in kwargs.items():
        yield from held(value, name)
