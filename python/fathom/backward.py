"""The backward pass: each node of the graph announces itself when it runs, and what it keeps is noted before."""

import bisect
import functools

import torch

from . import graph
from .areas import layout
from .functions import PLAIN
from .guard import guarded
from .living import living
from .notes import storages
from .part import NOTHING


class Backward:
    def __init__(self, recorder):
        self.recorder = recorder
        self.watch_hooks()

    @property
    def is_broken(self):
        return self.recorder.is_broken

    @is_broken.setter
    def is_broken(self, value):
        self.recorder.is_broken = value

    def run(self, run, roots):
        """Each node announces itself when it runs; what it keeps is noted before."""
        local = self.recorder.local
        outer, handles = local.part, []
        self.before_backward(roots, handles)
        self.recorder.begin(outer)
        try:
            return run()
        finally:
            local.part = outer
            self.after_backward(handles)
            self.recorder.begin(outer)

    @guarded
    def before_backward(self, roots, handles):
        self.recorder.saved.begin(self.recorder.names)
        for node in graph.nodes_of(graph.root_nodes(roots)):
            part = self.part_of(node, self.recorder.local)
            self.note_saved(node, part)
            if part is not None:
                if node.name() == "ConvolutionBackward0":
                    self.recorder.facts.convolution(node, part)
                handles.append(node.register_prehook(functools.partial(self.enter_node, part)))
        self.recorder.saved.end()

    @guarded
    def after_backward(self, handles):
        for handle in handles:
            handle.remove()
        self.recorder.notes.all(self.recorder.names.of_gradients())

    def part_of(self, node, local):
        """The function of the forward pass that made a node, as a part of the backward pass."""
        number = node._sequence_nr()
        if number > 1 << 62:  # the end of the graph: accumulates a gradient
            return None
        at = last_at_most(local.sequence, number)
        module, _, stack, _ = local.functions[at] if at is not None else NOTHING
        return (module, None, stack, node.name())

    def enter_node(self, part, gradients):
        with torch._C.DisableTorchFunction():  # first, since the node may free them
            for gradient in gradients:
                if gradient is not None:
                    self.recorder.notes.tensor(gradient)
        self.recorder.local.part = part
        self.recorder.begin(part)

    def note_saved(self, node, part, holder=""):
        hooked = self.recorder.local.hooked
        is_hooked = bool(hooked) and is_between(hooked, node._sequence_nr())
        for name, tensor in graph.saved_by(node, is_hooked):
            if tensor.is_cuda and tensor.numel():
                self.recorder.saved.add(tensor)
                where = self.recorder.modules.paths[part[0]] if part else ""
                kept = f"{node.name()}.{name}" + (f" in {where}" if where else "")
                self.recorder.notes.name("activations", kept, tensor)
                if hasattr(tensor, "placements"):
                    self.recorder.notes.area(layout(tensor), tensor)
                self.recorder.notes.whole(tensor)
                if holder:
                    self.recorder.notes.holder(holder, tensor)

    def note_living(self, with_holders):
        """Graphs that are alive outside of a backward pass: before it, or because something still holds them."""
        roots = graph.made_by(tensor for tensor in living(PLAIN) if tensor.is_cuda)
        seen = set()
        # The newest first: a sum over steps reaches all that it holds.
        for root in sorted(roots, key=lambda node: -node._sequence_nr()):
            holder = self.holder(root) if with_holders else ""
            for node in graph.nodes_of([root], seen):
                self.note_saved(node, self.part_of(node, self.recorder.local), holder)

    def holder(self, node):
        part = self.part_of(node, self.recorder.local)
        where = part and self.recorder.stacks.user_line(part[2])
        return f"the result of {where}" if where else ""

    def watch_hooks(self):
        """Between push and pop, what is saved is packed: only older torch needs to be told."""
        if graph.HAS_RAW_DATA:
            return
        functions, local = torch._C._autograd, self.recorder.local
        push, pop = functions._push_saved_tensors_default_hooks, functions._pop_saved_tensors_default_hooks

        def pushed(*args):
            local.hooks += 1
            if local.hooks == 1:
                local.hooked.append(functions._get_sequence_nr())
            return push(*args)

        def popped():
            local.hooks -= 1
            if local.hooks == 0:
                local.hooked.append(functions._get_sequence_nr())
            return pop()

        functions._push_saved_tensors_default_hooks = pushed
        functions._pop_saved_tensors_default_hooks = popped


class Saved:
    """What autograd keeps, storage by storage, beside what hooks on modules would count: the sum of all outputs."""

    def __init__(self):
        self.outputs = 0  # bytes of outputs since the last backward pass
        self.storages = {}  # start -> bytes of what is kept for the one that begins
        self.most = (0, 0)  # (kept, outputs) where most was kept
        self.is_open = False

    def add_outputs(self, result):
        if not torch.is_grad_enabled():
            return
        with torch._C.DisableTorchFunction():
            for item in result if isinstance(result, tuple) else (result,):
                if isinstance(item, torch.Tensor) and item.is_cuda:
                    self.outputs += sum(part.nbytes for part in storages(item))

    def begin(self, names):
        self.storages, self.is_open = {}, True
        self.own = {part.data_ptr() for p in names.trained() for part in storages(p)}

    def add(self, tensor):
        for part in storages(tensor) if self.is_open and tensor.layout is torch.strided else ():
            storage = part.untyped_storage()
            if storage.data_ptr() not in self.own:
                self.storages[storage.data_ptr()] = storage.nbytes()

    def end(self):
        self.most = max(self.most, (sum(self.storages.values()), self.outputs))
        self.storages, self.outputs, self.is_open = {}, 0, False

    def forget(self):
        """What was put out so far leads to no backward pass."""
        self.outputs = 0

    def facts(self):
        return {"saved": {"saved_bytes": self.most[0], "module_outputs_bytes": self.most[1]}}


def last_at_most(numbers, number):
    at = bisect.bisect_right(numbers, number)
    return at - 1 if at else None


def is_between(bounds, number):
    """Whether a number lies between the first and second, the third and fourth … of increasing bounds."""
    return bisect.bisect_right(bounds, number) % 2 == 1
