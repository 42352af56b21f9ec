"""The backward pass: each node of the graph announces itself when it runs, and what it keeps is noted before."""

import threading

import torch

from . import graph, native
from .functions import PLAIN
from .garbage import Garbage
from .guard import guarded
from .living import living


class Hooked(threading.local):
    """Sequence numbers between which hooks pack what a thread saves: only older torch needs to be told."""

    def __init__(self):
        self.bounds = []
        self.depth = 0


class Backward:
    def __init__(self, recorder):
        self.recorder = recorder
        self.garbage = Garbage()
        mixin = torch.autograd.function._HookMixin
        mixin._register_hook = native.RegisterHook(mixin._register_hook)
        self.hooked = None if graph.HAS_RAW_DATA else Hooked()
        if self.hooked is not None:
            self.watch_hooks()

    @property
    def is_broken(self):
        return self.recorder.is_broken

    @is_broken.setter
    def is_broken(self, value):
        self.recorder.is_broken = value

    def bounds(self):
        return None if self.hooked is None else self.hooked.bounds

    def run(self, run, roots):
        """Each node announces itself when it runs; what it keeps is noted before."""
        scribe = self.recorder.scribe
        outer, handles = scribe.part(), []
        self.garbage.settle(is_over=True)
        self.garbage.uncounted(lambda: self.before_backward(roots, handles))
        scribe.enter(outer)
        was_loud = scribe.enter_backward()  # a node says more than Python's frames, and its thread has none
        try:
            return run()
        finally:
            scribe.leave_backward(was_loud)
            scribe.enter(outer)
            self.garbage.uncounted(lambda: self.after_backward(handles))
            scribe.enter(outer)

    @guarded
    def before_backward(self, roots, handles):
        nodes = list(dict.fromkeys(graph.root_nodes(roots)))
        trained = self.recorder.names.trained()
        look = self.recorder.facts.convolution
        self.recorder.scribe.begin_backward(nodes, trained, self.bounds(), handles, look)

    @guarded
    def after_backward(self, handles):
        self.recorder.scribe.remove(handles)
        handles.clear()
        names = self.recorder.names
        self.recorder.scribe.gradients(names.trained(names.own_optimizers()), names.of_parameter)

    def note_living(self, with_holders):
        """Graphs that are alive outside of a backward pass: before it, or because something still holds them."""
        roots = graph.made_by(tensor for tensor in living(PLAIN) if tensor.is_cuda)
        # The newest first: a sum over steps reaches all that it holds.
        newest = sorted(roots, key=lambda node: -node._sequence_nr())
        self.recorder.scribe.note_living(newest, self.bounds(), with_holders)

    def watch_hooks(self):
        """Between push and pop, what is saved is packed."""
        functions, hooked = torch._C._autograd, self.hooked
        push, pop = functions._push_saved_tensors_default_hooks, functions._pop_saved_tensors_default_hooks

        def pushed(*args):
            hooked.depth += 1
            if hooked.depth == 1:
                hooked.bounds.append(functions._get_sequence_nr())
            return push(*args)

        def popped():
            hooked.depth -= 1
            if hooked.depth == 0:
                hooked.bounds.append(functions._get_sequence_nr())
            return pop()

        functions._push_saved_tensors_default_hooks = pushed
        functions._pop_saved_tensors_default_hooks = popped
