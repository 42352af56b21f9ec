"""Follows a training run from the outside: steps, phases, peaks, out-of-memory errors.

Peaks are PyTorch's own statistics, read where phases meet: whatever phase raised a peak last is the
phase of that peak. A phase gets its name when it ends, by what ended it: what runs up to a backward
pass was a forward pass. Nothing is reset and no tensor is held, and the script sees what it would see
without us. What was seen is written to the run's folder after steps and at exit. The recorder, if there is
one, is told of each phase.
"""

import atexit
import os
import sys
import threading
import time

import torch
from torch.optim.optimizer import register_optimizer_step_post_hook, register_optimizer_step_pre_hook

from .. import contract
from . import border, confined, functions, inference, kernels, whole
from .backward_passes import BackwardPasses
from .border import guarded
from .optimizers import Optimizers
from .peaks import Peaks
from .process_file import ProcessFile
from .recorder import script_history
from .script_frames import describe, user_frame, without_ours
from .updates import Updates
from .values import values

# After this many times the wanted steps of one optimizer, the others are not waited for.
PATIENCE = 10

# A script that tries until it fits is refused many times: what was alive is noted the first times.
RECORDED_REFUSALS = 3


class Stopped(SystemExit):
    """Ends the script after the wanted number of steps."""


class Watch:
    def __init__(self, folder, wanted_steps):
        self.party = border.Party("steps and peaks may be missing from the report")
        self.file = ProcessFile(folder)
        self.wanted_steps = wanted_steps
        self.recorder = None
        self.built = False  # whether a module has been called
        self.in_phase = None  # backward, optimizer or saving while they run
        self.is_evaluating = False  # whether the model was last called in evaluation mode
        self.steps = {}  # optimizer id -> steps taken
        self.passes = [0, 0]  # backward passes so far, and up to the last step
        self.stepped = [0.0, 0.0]  # when the last two steps ended
        self.ending = None  # of a training that is shortened
        self.optimizers = Optimizers()
        self.updates = Updates(self)  # where there is no optimizer; None where there is one
        self.inference = None  # where there is no backward pass; None where there is one
        self.peaks = Peaks()
        self.refusals = []
        self.end = None
        self.stops = 0

    # -- peaks and phases -------------------------------------------------------------------------

    @guarded
    def measure(self, phase):
        """The phase that ends here is given its name; peaks that rose since the last call are its own."""
        step = self.step_now()
        self.peaks.rise(phase, step)
        if self.recorder is not None:
            self.recorder.end_region(phase, step)

    def running(self):
        """The name of the phase that has not ended yet, as far as it is known."""
        if self.in_phase or not self.built:
            return self.in_phase or "construction"
        if self.is_inferring() and not (torch.is_grad_enabled() and inference.trains()):
            return "inference"
        return "evaluation" if self.is_evaluating else "forward"

    def is_inferring(self):
        """Whether models were called, and nothing yet says that they are trained."""
        return self.inference is not None and self.inference.rounds > 0

    def steps_taken(self):
        return max(self.steps.values(), default=0)

    def step_now(self):
        """The one that runs. Of inference that was stopped, the next has begun and was not seen."""
        return self.steps_taken() + (0 if self.stops and self.is_inferring() else 1)

    def moment(self):
        return {"phase": self.running(), "step": self.step_now()}

    # -- steps ------------------------------------------------------------------------------------

    def parameters(self):
        yield from self.optimizers.own_parameters()
        yield from self.leaves()

    def leaves(self):
        """What backward passes gave gradients to, where there is no optimizer."""
        return [] if self.updates is None else self.updates.parameters()

    def before_step(self, optimizer, args=(), kwargs=None):
        """What the step is to be called with instead, if anything."""
        self.optimizers.stepped(optimizer)
        self.measure("before optimizer" if self.built else "construction")
        self.in_phase, self.is_evaluating = "optimizer", False
        if values.get() is None:
            return None
        values.get().begin_step(optimizer)
        return values.get().follow_closure(optimizer, args, kwargs or {}) if args else None

    def is_modelled(self, parameter):
        """An update changes one more."""
        if values.get() is not None:
            values.get().ledger.set_modelled([parameter])

    def end_round(self):
        """A round of inference is over, and the next begins. What comes before a training is no step of it."""
        self.measure("inference")
        if not inference.trains():
            self.steps["rounds"] = self.inference.rounds
        if self.recorder is not None:
            self.recorder.end_round(is_early=self.steps_taken() < 3)
        if self.file.is_due():
            self.write()

    def after_step(self, optimizer, *_):
        self.measure("optimizer")
        self.in_phase = None
        if values.get() is not None:
            values.get().end_step()
        if self.recorder is not None:
            self.recorder.end_step(optimizer, is_early=self.steps_taken() < 2)
        self.steps[id(optimizer)] = self.steps.get(id(optimizer), 0) + 1
        self.passes[1], self.stepped = self.passes[0], [self.stepped[1], time.monotonic()]
        if self.file.is_due():
            self.write()
        if self.wanted_steps and self.is_enough():
            self.stop()

    def is_enough(self):
        if self.ending is not None:
            return self.ending.is_enough(self.steps_taken())
        taken = [self.steps.get(known, 0) for known in self.optimizers.on_card] or [0]
        return min(taken) >= self.wanted_steps or max(taken) >= PATIENCE * self.wanted_steps

    def stop(self):
        self.end = contract.end(kind="stopped")
        self.stops += 1
        if self.recorder is not None:
            self.recorder.end_last_step()
        self.write()
        # A script that swallows even SystemExit, or steps in a thread of its own, is ended directly.
        if self.stops > 3 or threading.current_thread() is not threading.main_thread():
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(0)
        kernels.stop()
        raise Stopped(0)

    # -- what they call -----------------------------------------------------------------------------

    def watch_modules(self):
        """The first call of any module ends construction; the recorder wants to see every call."""
        if self.recorder is not None:
            self.recorder.watch_modules()
        undo = self.party.around(torch.nn.Module, "__call__", before=lambda *_: self.first_call(undo))

    def watch_inference(self):
        """Until a backward pass or an optimizer says that the script trains."""
        if not functions.is_installed():
            return  # nobody sees what models are given
        self.inference = inference.Inference(self)
        if self.recorder is None:
            self.inference.watch_models(self.party)

    def first_call(self, undo):
        undo()
        if not self.built:
            self.measure("construction")
            self.built = True
            if values.get() is not None:
                values.get().ledger.end_of_construction()

    def model_called(self, model, args, kwargs):
        """A model in evaluation mode is evaluated, if it is one that an optimizer trains."""
        if self.updates is not None:
            self.updates.end()
        if self.inference is not None:
            self.inference.model_called(model, args, kwargs)
        is_evaluated = not model.training and any(id(p) in self.trained for p in model.parameters())
        if is_evaluated != self.is_evaluating and not self.in_phase:
            self.measure(self.running())
            self.is_evaluating = is_evaluated

    @property
    def trained(self):
        return {id(parameter) for parameter in self.parameters()}

    def end_inference(self):
        """A backward pass, or an optimizer: the script trains."""
        if self.inference is not None:
            self.inference.withdraw()
            self.inference = None
            self.steps.pop("rounds", None)
            if self.recorder is not None:
                self.recorder.facts.trains()

    def watch_saving(self):
        self.party.around(torch, "save", self.begin_saving, self.end_saving)

    def begin_saving(self, *_):
        if self.updates is not None:
            self.updates.end()
        self.measure(self.running())
        self.in_phase = "saving"
        return True

    def end_saving(self, *_):
        self.measure("saving")
        self.in_phase = None

    def watch_optimizers(self):
        hooks = [
            register_optimizer_step_pre_hook(self.party.callback(self.before_step)),
            register_optimizer_step_post_hook(self.party.callback(self.after_step)),
        ]
        self.party.undo += [hook.remove for hook in hooks]
        self.party.around(torch.optim.Optimizer, "__init__", after=self.optimizer_made)

    def optimizer_made(self, _, args, kwargs, result, error):
        if error is None:
            self.optimizers.made(args[0])
            self.end_inference()
            if self.updates is not None and not self.updates.groups:
                self.updates.withdraw()
                self.updates = None

    def watch_resets(self):
        """A script that resets PyTorch's peaks must not lose them for us."""
        for name in ("_cuda_resetPeakMemoryStats", "_accelerator_resetPeakStats"):
            if hasattr(torch._C, name):
                self.party.around(torch._C, name, before=lambda *_: self.measure(self.running()))

    def watch_refusals(self):
        try:
            torch._C._cuda_attach_out_of_memory_observer(self.party.callback(self.refused))
        except RuntimeError:
            pass  # the cudaMallocAsync backend has no observers; its errors are still seen at the end

    def refused(self, device, tried, total, free):
        self.measure(self.running())
        if self.recorder is not None and len(self.refusals) < RECORDED_REFUSALS:
            self.recorder.note_refusal()
        self.refusals.append(
            contract.refusal(
                device=device,
                tried_bytes=tried,
                free_bytes=free,
                phase=self.running(),
                step=self.steps_taken() + 1,
                steps_done=sum(self.steps.values()),
                **user_frame(sys._getframe(0)),
            )
        )

    def watch_end(self):
        def make(inner):
            def excepthook(kind, error, trace):
                self.end_by(error)
                inner(kind, error, without_ours(trace))

            return excepthook

        self.party.instead(sys, "excepthook", make)
        atexit.register(self.party.callback(self.finish))

    @guarded
    def end_by(self, error):
        self.end = describe(error)

    def finish(self):
        if not self.file.is_of_this_process():
            return
        self.wanted_steps = 0
        if self.updates is not None:
            self.updates.end()
        self.measure(self.last_phase())
        if self.is_inferring() and not self.stops:
            self.steps["rounds"] = self.inference.rounds
        if self.recorder is not None:
            self.recorder.finish()
        self.end = self.end or contract.end(kind="exit")
        self.write()
        if "fathom_warm" not in sys.modules:  # a trial ends without taking Python down
            time.sleep(0.05)  # autograd's threads drop their last Python objects before Python ends, else they abort

    def last_phase(self):
        if self.is_inferring():
            return "inference"
        return "evaluation" if self.is_evaluating else "after training" if self.steps else self.running()

    # -- the file ---------------------------------------------------------------------------------

    @guarded
    def write(self):
        self.file.write(self)

    def kind_of_rounds(self):
        """What a step is."""
        if self.is_inferring():
            return "call"
        if self.updates is None or not (self.updates.groups or "rounds" in self.steps):
            return "optimizer"
        return "update" if self.updates.groups else "backward"

    def recording_ended(self):
        """An error has ended it."""
        self.recorder = functions.install().recorder = None

    def withdraw(self):
        """The block that was to be recorded has ended."""
        self.recording_ended()
        self.party.withdraw()


def install(folder=None, steps=0, is_recording=False):
    """Watches this process from here on; what is seen is written to the folder."""
    watch = Watch(folder, steps)
    border.moment = watch.moment
    confined.followed_by(watch)
    whole.followed_by(watch)
    # Other allocators keep no history.
    if folder and is_recording and torch.cuda.get_allocator_backend() == "native":
        from .recorder import recorder

        watch.recorder = functions.install().recorder = recorder.Recorder(folder, watch)
    else:
        script_history.hide_ours(watch.party)
    watch.watch_optimizers()
    BackwardPasses(watch).install()
    watch.watch_saving()
    watch.watch_resets()
    watch.watch_refusals()
    watch.watch_end()
    watch.watch_modules()
    watch.watch_inference()
    return watch
