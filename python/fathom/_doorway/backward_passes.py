"""Backward passes, as the watch follows them: each is a phase, and rounds of them are steps where nobody updates weights."""

import sys

import torch

from .script_frames import user_frame
from .values import values

# After this many times the wanted rounds, passes from one line that make no round end the run too.
PATIENCE = 10


class BackwardPasses:
    def __init__(self, watch):
        self.watch = watch

    def install(self):
        party, parameters = self.watch.party, self.watch.parameters

        def make(inner):
            return lambda *args, **kwargs: values.run_backward(inner, args, kwargs, parameters)

        owner, name = torch.autograd, "_engine_run_backward"
        party.instead(owner, name, make)
        party.around(owner, name, self.begin, self.end)

    def begin(self, args, _):
        """Arguments are (roots, gradients, keep_graph, create_graph, …)."""
        if is_traced():
            return None
        watch = self.watch
        is_inner = watch.in_phase == "backward"  # of a node that runs a backward pass of its own
        if not is_inner:
            watch.is_evaluating = False
            watch.passes[0] += 1
            watch.end_inference()
            self.count_round(args[0])
            self.note_graph_use(args)
            watch.measure("forward")
            watch.built, watch.in_phase = True, "backward"
        backward = watch.recorder and watch.recorder.backward
        return is_inner, backward, backward and backward.begin(args[0])

    def end(self, begun, *_):
        if begun is None:
            return
        is_inner, backward, entered = begun
        if entered is not None:
            backward.end(entered)
        if not is_inner:
            self.watch.measure("backward")
            self.watch.in_phase = None
            if self.watch.updates is not None:
                self.watch.updates.end_backward()

    def count_round(self, roots):
        """Where there is no optimizer, rounds of backward passes are steps."""
        watch, updates = self.watch, self.watch.updates
        if updates is None:
            return
        where = user_frame(sys._getframe())
        if updates.begin_backward(roots, (where.get("file"), where.get("line"))):
            watch.steps["rounds"] = watch.steps.get("rounds", 0) + 1
            if watch.recorder is not None:
                watch.recorder.end_round(is_early=watch.steps_taken() < 3)
        is_long = updates.passes > PATIENCE * watch.wanted_steps
        if watch.wanted_steps and not updates.groups and (watch.steps_taken() >= watch.wanted_steps or is_long):
            watch.stop()

    def note_graph_use(self, args):
        if self.watch.recorder is not None:
            keeps_graph, makes_graph = map(bool, (*args, *4 * [False])[2:4])
            where = user_frame(sys._getframe()) if keeps_graph else {}
            place = f"{where.get('file', '?')}:{where.get('line', 0)}"
            self.watch.recorder.note_graph_use(keeps_graph, makes_graph, place)


def is_traced():
    """Whether the compiler, or a fake tensor, only asks what a backward pass would do: nothing is on the card then."""
    modes = torch._C._TorchDispatchModeKey.__members__.values()
    return any(torch._C._get_dispatch_mode(mode) is not None for mode in modes)
