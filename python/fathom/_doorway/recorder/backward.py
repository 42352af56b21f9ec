"""The backward pass: each node of the graph announces itself when it runs, and what it keeps is noted before."""

import threading

import torch

from .. import graph, native
from ..border import finishing, guarded
from ..functions import PLAIN
from ..native import live_objects
from .garbage import Garbage


class Hooked(threading.local):
    """Sequence numbers between which hooks pack what a thread saves: only older torch needs to be told."""

    def __init__(self):
        self.bounds = []
        self.depth = 0


class Backward:
    def __init__(self, recorder):
        self.recorder = recorder
        self.garbage = Garbage()
        mixin, name = torch.autograd.function._HookMixin, "_register_hook"
        self.party.put(mixin, name, native.RegisterHook(self.party.native, getattr(mixin, name)))
        self.hooked = None if graph.HAS_RAW_DATA else Hooked()
        if self.hooked is not None:
            self.watch_hooks()

    @property
    def party(self):
        return self.recorder.party

    def bounds(self):
        return None if self.hooked is None else self.hooked.bounds

    @guarded
    def begin(self, roots):
        """Each node will announce itself when it runs; what it keeps is noted before."""
        note_taker = self.recorder.note_taker
        outer, handles = note_taker.part(), []
        self.garbage.settle(is_over=True)
        self.garbage.uncounted(lambda: self.before_backward(roots, handles))
        note_taker.enter(outer)
        was_loud = note_taker.enter_backward()  # a node says more than Python's frames, and its thread has none
        return outer, handles, was_loud

    @finishing
    def end(self, begun):
        note_taker = self.recorder.note_taker
        outer, handles, was_loud = begun
        note_taker.leave_backward(was_loud)
        note_taker.enter(outer)
        self.garbage.uncounted(lambda: self.after_backward(handles))
        note_taker.enter(outer)

    def before_backward(self, roots, handles):
        nodes = list(dict.fromkeys(graph.root_nodes(roots)))
        watch = self.recorder.watch
        trained = [*watch.optimizers.parameters(), *watch.leaves()]
        look = self.recorder.facts.convolution
        self.recorder.note_taker.begin_backward(nodes, trained, self.bounds(), handles, look)

    def after_backward(self, handles):
        self.recorder.note_taker.remove(handles)
        handles.clear()
        if self.party.is_over:
            return
        names, watch = self.recorder.names, self.recorder.watch
        leaves = watch.leaves()
        if leaves and not names.of_parameter:
            list(names.of_modules())  # finds names
        trained = [*watch.optimizers.own_parameters(), *leaves]
        self.recorder.note_taker.gradients(trained, names.of_parameter)

    def note_living(self, with_holders):
        """Graphs that are alive outside of a backward pass: before it, or because something still holds them."""
        roots = graph.made_by(tensor for tensor in live_objects(PLAIN) if tensor.is_cuda)
        # The newest first: a sum over steps reaches all that it holds.
        newest = sorted(roots, key=lambda node: -node._sequence_nr())
        self.recorder.note_taker.note_living(newest, self.bounds(), with_holders)

    def watch_hooks(self):
        """Between push and pop, what is saved is packed."""
        functions, hooked = torch._C._autograd, self.hooked

        def push(*_):
            hooked.depth += 1
            if hooked.depth == 1:
                hooked.bounds.append(functions._get_sequence_nr())

        def pop(*_):
            hooked.depth -= 1
            if hooked.depth == 0:
                hooked.bounds.append(functions._get_sequence_nr())

        self.party.around(functions, "_push_saved_tensors_default_hooks", before=push)
        self.party.around(functions, "_pop_saved_tensors_default_hooks", before=pop)
