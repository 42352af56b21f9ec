"""Paths of modules, as `named_modules` gives them: `encoder.layers.3.attn`.

Scripts call parts of a model directly, and keep several models. So the modules of the process are looked up
once, from the garbage collector's list, and named from those that no other module contains.
"""

import functools
import inspect
import threading
import weakref

import torch

from .native import live_objects
from .storages import elements

# How often the whole process is searched for modules; one search takes some hundredths of a second.
SEARCHES = 8

# How often a walk begins anew while other threads build what it walks through.
WALKS = 100


def steady(walk):
    """A walk through modules that another thread may be building: if that changes them on the way, it begins anew."""

    @functools.wraps(walk)
    def call(*args):
        for left in reversed(range(WALKS)):
            try:
                found = walk(*args)
                return list(found) if inspect.isgenerator(found) else found
            except RuntimeError as error:
                if not left or "during iteration" not in str(error):
                    raise
        return None  # never: the last walk gives something or raises

    return call


# What torch.compile puts around a model has the model under this name.
COMPILED = "_orig_mod"


class Modules:
    """Number 0 is no module."""

    def __init__(self):
        self.known = {}  # id -> (weak reference, number)
        self.paths = [""]
        self.classes = [""]
        self.roots = []  # (weak reference, name)
        self.prefixes = {}  # id of a root -> what its parameters' names begin with
        self.searches = 0
        self.has_primary = False
        self.changing = threading.RLock()

    def number(self, module, outer=0):
        """The number of a module that is called inside of another, or of none."""
        entry = self.known.get(id(module))
        if entry is not None and entry[0]() is module:
            return entry[1]
        with self.changing:
            if self.searches and is_bare(module):
                return self.passing(module, outer)
            return self.look_for(module)

    def passing(self, module, outer):
        """A loss made on the spot, or the like: named after the module that uses it, if one does."""
        key = (outer, type(module))
        if key not in self.known:
            self.known[key] = (None, len(self.paths))
            self.paths.append(f"{self.paths[outer]}.{type(module).__name__}".lstrip("."))
            self.classes.append(type(module).__name__)
        return self.known[key][1]

    def look_for(self, module):
        if self.is_known(module):  # by another thread, meanwhile
            return self.known[id(module)][1]
        if self.searches < SEARCHES:
            self.searches += 1
            self.search()
        if not self.is_known(module):
            self.add_root(module, is_primary=False)
        return self.known[id(module)][1]

    def search(self):
        """Names every module of the process that has no name yet."""
        everything = [module for module in live_objects(with_subclasses(torch.nn.Module)) if "_modules" in module.__dict__]
        children = {id(child) for module in everything for child in list(module._modules.values())}
        roots = [module for module in everything if id(module) not in children and not self.is_known(module)]
        roots.sort(key=lambda module: (-size(module), not is_trained(module)))
        for module in roots:
            is_primary = not self.has_primary and is_trained(module)
            self.has_primary |= is_primary
            self.add_root(module, is_primary)

    def is_known(self, module):
        entry = self.known.get(id(module))
        return entry is not None and entry[0]() is module

    def add_root(self, root, is_primary):
        """The largest model's modules have their plain paths; those of others begin with their class."""
        model = root._modules.get(COMPILED, root)
        name = self.new_name(type(root if self.is_known(model) else model).__name__)
        prefix = "" if is_primary else name + "."
        self.roots.append((weakref.ref(root), name))
        self.prefixes[id(root)] = prefix
        for path, module in parts(root):
            if not self.is_known(module):
                self.known[id(module)] = (weakref.ref(module), len(self.paths))
                path = as_written(path)
                self.paths.append(prefix + path if path else name)
                self.classes.append(type(module).__name__)

    def new_name(self, kind):
        names = {name for _, name in self.roots}
        number, name = 1, kind
        while name in names:
            number += 1
            name = f"{kind}#{number}"
        return name

    def living_roots(self):
        """(root, prefix of its names)"""
        for reference, _ in self.roots:
            root = reference()
            if root is not None:
                yield root, self.prefixes[id(root)]


def as_written(path):
    """A path or a name as the model's own code has it: without what the compiler adds."""
    return ".".join(part for part in path.split(".") if part != COMPILED)


@steady
def parts(root):
    yield from root.named_modules()


@steady
def is_trained(module):
    return any(parameter.requires_grad for parameter in module.parameters())


def is_bare(module):
    """Without parts, parameters and buffers. Losses have places for weights that may stay empty."""
    given = (*module._parameters.values(), *module._buffers.values())
    return not module._modules and all(tensor is None for tensor in given)


@steady
def size(module):
    return sum(elements(parameter) for parameter in module.parameters())


def with_subclasses(kind):
    """A class and all that were made of it."""
    found, waiting = {kind}, [kind]
    while waiting:
        fresh = set(type.__subclasses__(waiting.pop())) - found
        found |= fresh
        waiting.extend(fresh)
    return found
