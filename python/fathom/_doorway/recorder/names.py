"""What the tensors of a script are: weights, gradients, optimizer state, buffers, copies of the model, inputs.

Each is found through what holds it, never by its size: modules, optimizers, arguments. `Names` gives
(category, name, tensor); the recorder notes their addresses.
"""

import collections

import torch

from ..card_memory import allocated
from ..functions import PLAIN
from ..graph import is_made
from ..modules import steady
from ..native import live_objects
from ..optimizers import parameters_of
from ..storages import elements, has_memory, shape_of

# A set of tensors is a copy of the parameters if it has this share of their elements, shape by shape.
COPY_SHARE = 0.9

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
        self.caches = None  # see caches.py

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
            for name, parameter in root.named_parameters():
                self.of_parameter[id(parameter)] = prefix + name
                yield "model_copies" if is_copy else "weights", prefix + name, parameter
            for name, buffer in root.named_buffers():
                kind = "kv_cache" if self.caches.is_cache(name, buffer) else "buffers"
                yield "model_copies" if is_copy else kind, prefix + name, buffer
            for path, module in root.named_modules():
                yield from self.caches.of_module(prefix, path, module)

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
        for parameter in parameters.values():
            wanted[shape_of(parameter)].append(self.of_parameter.get(id(parameter), "a parameter"))
        total = sum(elements(parameter) for parameter in trained.values())
        if allocated() - sum(taken.values()) < COPY_SHARE * total:  # too little for one byte an element
            return []
        found, copied = [], 0
        for thing in live_objects(PLAIN):
            if thing.is_cuda and not is_made(thing) and has_memory(thing) and thing.data_ptr() not in taken:
                names = wanted.get(shape_of(thing))
                if names:
                    found.append(("model_copies", f"copy of {names.pop(0)}", thing))
                    copied += thing.numel()
        return found if total and copied >= COPY_SHARE * total else []

    @steady
    def counts(self):
        """Elements of parameters on the card or not, each counted once."""
        every = {id(p): p for root, _ in self.modules.living_roots() for p in root.parameters()}
        copies = {id(tensor) for category, _, tensor in self.of_modules() if category == "model_copies"}
        every.update((id(p), p) for p in self.optimizers.parameters())
        ours = [parameter for key, parameter in every.items() if key not in copies]
        trainable = sum(elements(p) for p in ours if p.requires_grad)
        total = sum(map(elements, ours))
        return {"total": total, "trainable": trainable, "frozen": total - trainable}

    def unused(self, optimizer):
        """An optimizer's parameters that have no gradient, though they may have one, by name."""
        parameters = {id(p): p for group in optimizer.param_groups for p in group["params"]}
        without = [p for p in parameters.values() if p.requires_grad and p.grad is None]
        if without:
            list(self.of_modules())  # finds names
        return [(self.of_parameter.get(id(p), "a parameter"), p) for p in without]


def is_empty(root):
    return next(root.parameters(), None) is None


def signature(root):
    return [(name, shape_of(parameter)) for name, parameter in root.named_parameters()]


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
