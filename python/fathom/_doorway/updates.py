"""Steps of scripts that have no optimizer: updates written by hand, and backward passes without any.

An update begins where a parameter is written in place after a backward pass gave it a gradient, and ends where the next
forward pass begins: it is to the watch what an optimizer's step is. Where no update is seen, a round is what lies between
two backward passes from the same line.
"""

import weakref

import torch

from . import functions, graph
from .storages import has_memory

# Names of functions that write to their first argument, beside those that end in one underscore.
IN_PLACE = {"__setitem__", "__iadd__", "__isub__", "__imul__", "__itruediv__", "__idiv__", "__ipow__"}

# Functions of a parameter that are no forward pass: an update may be written with them.
NO_FORWARD = {"detach", "detach_", "data", "requires_grad_", "zero_"}


class HandWritten:
    """Stands for an optimizer where a script changes parameters itself. They are not held."""

    def __init__(self):
        self.references = {}  # by their ids
        self.state = {}

    def add(self, parameter):
        self.references.setdefault(id(parameter), weakref.ref(parameter))

    @property
    def param_groups(self):
        found = [reference() for reference in self.references.values()]
        return [{"params": [parameter for parameter in found if parameter is not None]}]


class Updates:
    def __init__(self, watch):
        self.watch = watch
        self.leaves = {}  # address -> weak reference to what a backward pass gave a gradient
        self.groups = []  # one for each update of the script's
        self.running = None  # the update that has not ended yet
        self.is_due = False  # whether a backward pass has run since the last one began
        self.first_line = None  # of the first backward pass of a round
        self.passes = 0  # from that line

    def parameters(self):
        """What backward passes gave gradients to, as far as it is alive."""
        found = [reference() for reference in self.leaves.values()]
        return [leaf for leaf in found if leaf is not None]

    # -- backward passes ----------------------------------------------------------------------------

    def begin_backward(self, roots, line):
        """Gives whether the passes so far are a round, without an update."""
        self.end()
        found = leaves_of(roots)
        is_fresh = all(leaf.grad is None for leaf in found)
        self.leaves.update((leaf.untyped_storage().data_ptr(), weakref.ref(leaf)) for leaf in found)
        if self.groups:
            return False
        if self.first_line is None:
            self.first_line = line
        if line != self.first_line:
            return False
        self.passes += 1
        return is_fresh and self.passes > 1

    def end_backward(self):
        self.is_due = True
        functions.install().inner.set_listener(self.watch.party.callback(self.listen))

    # -- updates --------------------------------------------------------------------------------------

    def listen(self, function, args, kwargs):
        """A function is about to run."""
        name = getattr(function, "__name__", "")
        written = self.written(name, args, kwargs)
        if written:
            if self.running is None:
                self.begin(written[0])
            for parameter in written:
                self.add(parameter)
        elif self.running is not None and name not in NO_FORWARD and is_forward(args):
            self.end()

    def written(self, name, args, kwargs):
        """Parameters that a function writes to."""
        is_in_place = name in IN_PLACE or name.endswith("_") and not name.endswith("__")
        targets = [args[0]] if is_in_place and args else []
        targets.append((kwargs or {}).get("out"))
        found = [self.leaves.get(address_of(tensor)) for tensor in flat(targets)]
        alive = [reference() for reference in found if reference is not None]
        return [parameter for parameter in alive if parameter is not None]

    def begin(self, parameter):
        """The same parameters are changed by the same update each time. Before the first backward pass since the last one,
        it goes on."""
        known = [group for group in self.groups if id(parameter) in group.references]
        if not known and self.is_due:
            self.groups.append(HandWritten())
            known = self.groups[-1:]
        if known and self.is_due:
            self.is_due = False
            self.running = known[0]
            self.running.add(parameter)
            self.watch.before_step(self.running)

    def add(self, parameter):
        if self.running is not None and id(parameter) not in self.running.references:
            self.running.add(parameter)
            self.watch.is_modelled(parameter)

    def end(self):
        """The next forward pass begins, or something else does that is no update."""
        if self.running is not None:
            ended, self.running = self.running, None
            functions.install().inner.set_listener(None)
            self.watch.after_step(ended)

    def withdraw(self):
        """The script has an optimizer."""
        self.leaves.clear()
        functions.install().inner.set_listener(None)


def leaves_of(roots):
    """Tensors on a card that a backward pass from here gives gradients to."""
    nodes = list(graph.root_nodes([roots] if isinstance(roots, torch.Tensor) else roots))
    seen, found = set(nodes), []
    while nodes:
        node = nodes.pop()
        leaf = getattr(node, "variable", None)
        if isinstance(leaf, torch.Tensor) and leaf.is_cuda and has_memory(leaf):
            found.append(leaf)
        following = [after for after, _ in node.next_functions if after is not None and after not in seen]
        seen.update(following)
        nodes.extend(following)
    return found


def flat(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from flat(value)


def address_of(tensor):
    return tensor.untyped_storage().data_ptr() if tensor.is_cuda and has_memory(tensor) else None


def is_forward(args):
    """Whether a graph is made of what a function is given."""
    return torch.is_grad_enabled() and any(tensor.requires_grad for tensor in flat(args))
