"""Records who allocates: PyTorch's own memory history, joined with modules, functions, lines and autograd nodes.

Everything is noted by number and address: no tensor is held, nothing is unpacked, no operator is dispatched
differently, so peaks are the same with and without it. Each part of the script (a module's call, a function, a
node of the backward pass) begins with a serial number; `join.py` finds the number of each event again, and after
each step the events are written to the run's file.
"""

import itertools
import os
import sys

import torch

from . import deferred, history, join, workspaces
from .areas import Areas
from .backward import Backward, Saved
from .facts import LOOKS, Facts
from .graph import is_made
from .guard import guarded
from .modules import Modules
from .names import FACTORIES, Names, arguments
from .notes import Notes
from .part import NOTHING, Local
from .pen import Pen
from .recording_file import PHASES
from .stacks import Stacks

# Parts that may begin before what happened is written out, step or no step.
PATIENCE = 50_000

# Nodes of the backward pass are found again by their sequence numbers: of this many parts at least.
MEMORY = 200_000


class Recorder:
    def __init__(self, folder, watch):
        self.watch = watch
        self.pid = os.getpid()
        self.folder = folder
        self.local = Local()
        self.counter = itertools.count(1)
        self.parts = {}  # serial number -> part, of this step …
        self.older = {}  # … and of the step before
        self.interned = {}  # part -> the same: few objects, so that Python collects no more garbage than without us
        self.notes = Notes()
        self.casts = {}  # serial number -> parameters that autocast may cast there
        self.stacks = Stacks(self.call_module.__func__.__code__)
        self.modules = Modules()
        self.names = Names(self.modules, watch.optimizers)
        self.facts = Facts(self.modules)
        self.region = 0  # serial number at which the running phase began
        self.parameters = None  # their counts, taken at each optimizer's first step
        self.unused = {}  # optimizer's id -> elements without a gradient then
        self.is_broken = False
        devices = torch.cuda.device_count()
        self.join = join.make(devices)
        self.workspaces = workspaces.make()
        self.writers = {}
        self.history = history.History()
        self.total, self.context = {}, {}
        for device in range(devices):
            free, total = torch.cuda.mem_get_info(device)
            self.total[device], self.context[device] = total, total - free
        self.saved = Saved()
        self.backward = Backward(self)
        self.areas = Areas(self)
        self.begin(NOTHING)

    # -- parts of the script ------------------------------------------------------------------------

    def begin(self, part):
        """From here on this thread's events belong to this part."""
        serial = self.notes.serial = next(self.counter)
        self.parts[serial] = part
        self.join.begin(serial)
        self.workspaces.begin(serial)
        if self.local.area is not None:
            self.areas.of_serial[serial] = self.local.area
        return serial

    def enter_function(self, func, args, kwargs):
        local = self.local
        module, _, stack, node = local.part
        part = (module, func, self.stacks.of(sys._getframe(2), stack), node)
        part = self.interned.setdefault(part, part)
        serial = self.begin(part)
        local.sequence.append(torch._C._autograd._get_sequence_nr())
        local.functions.append(part)
        local.func = func
        if torch.is_autocast_enabled():
            self.note_casts(serial, args)
        if func in LOOKS:
            self.facts.function(module, func, args, kwargs or {})

    def note_result(self, result):
        """Called before `leave_function`: the events of the function come before what is said of its result."""
        if isinstance(result, torch.Tensor):
            self.notes.tensor(result)
            local = self.local
            if local.part[0] == 0 and local.func in FACTORIES and result.is_cuda and not is_made(result):
                self.notes.name("inputs", f"{local.func.__name__}(…)", result)
        elif isinstance(result, (tuple, list)):
            for item in result:
                if isinstance(item, torch.Tensor):
                    self.notes.tensor(item)

    def leave_function(self):
        self.begin(self.local.part)

    def call_module(self, inner, module, args, kwargs):
        local = self.local
        outer = local.part
        if outer[0] == 0:
            self.enter_model(module, args, kwargs)
        stack = self.stacks.of(sys._getframe(1), outer[2])
        number = self.modules.number(module, outer[0])
        part = (number, None, stack, outer[3])
        local.part = self.interned.setdefault(part, part)
        self.begin(local.part)
        if number not in self.facts.asked:
            self.facts.module_called(number, module, args, kwargs)
        if self.watch.in_phase == "backward":
            self.facts.recomputed(number)
        try:
            result = inner(module, *args, **kwargs)
            self.saved.add_outputs(result)
            if outer[0] == 0 and self.watch.is_evaluating and torch.is_grad_enabled():
                self.facts.model_evaluated(number, result)
            return result
        finally:
            local.part = outer
            self.begin(outer)

    @guarded
    def enter_model(self, module, args, kwargs):
        """A model is called from outside of any module: what it is given are the inputs."""
        self.modules.number(module)
        self.facts.settle()
        self.watch.model_called(module)
        if len(self.parts) > PATIENCE:
            self.drain()
        for name, tensor in arguments(args, kwargs):
            if tensor.is_cuda and not is_made(tensor) and not isinstance(tensor, torch.nn.Parameter):
                self.notes.name("inputs", name, tensor)
        self.begin(NOTHING)

    def note_casts(self, serial, args):
        parameters = [arg for arg in args if isinstance(arg, torch.nn.Parameter) and arg.dtype == torch.float32]
        dtype = torch.get_autocast_dtype("cuda")
        self.facts.add("autocast", str(dtype).removeprefix("torch."))
        if parameters:
            size = dtype.itemsize
            self.casts[serial] = [(arg.numel() * size, id(arg)) for arg in parameters]

    # -- phases --------------------------------------------------------------------------------------------

    def end_region(self, phase, step):
        """The phase that ends here gets its name; the next begins."""
        code = PHASES.index(phase.replace(" ", "_"))
        for device in self.total:
            self.notes.phase(self.region, device, code, step)
        self.region = self.begin(self.local.part)

    @guarded
    def end_step(self, optimizer, is_early):
        if id(optimizer) not in self.unused:
            self.note_unused(optimizer)
            self.parameters = self.names.counts()
        if is_early:
            self.facts.look()
        self.saved.forget()
        self.drain()  # first: it tells which names are of allocations that are gone
        self.note_everything(with_copies=is_early)

    def note_unused(self, optimizer):
        unused = self.names.unused(optimizer)
        self.unused[id(optimizer)] = sum(parameter.numel() for _, parameter in unused)
        for name, _ in unused:
            self.facts.add("unused", name)
        self.facts.optimizer(optimizer)

    @guarded
    def end_last_step(self):
        """What still holds a graph is named while the script's variables are there."""
        self.facts.look()
        self.backward.note_living(with_holders=True)
        self.note_everything(with_copies=True)

    @guarded
    def note_refusal(self):
        """Out of memory: what is alive is named now, since the script may end here."""
        self.saved.forget()
        self.drain()
        self.backward.note_living(with_holders=False)
        self.note_everything(with_copies=True)
        self.drain()
        self.facts.look()
        for pen in self.writers.values():
            pen.file.about({"facts": self.facts.table()})

    def note_everything(self, with_copies):
        """Names by what holds the tensors now."""
        taken = {}
        for named in (self.names.of_modules(), self.names.of_optimizers(), self.names.of_gradients()):
            taken |= self.notes.all(named)
        if with_copies:
            self.notes.all(self.names.of_copies(taken))
        self.begin(self.local.part)

    # -- the file --------------------------------------------------------------------------------------------

    def drain(self):
        """Writes what happened since the last time."""
        if os.getpid() != self.pid:
            return None
        parts, self.parts = self.parts, {}
        casts, self.casts = self.casts, {}
        areas = self.areas.take()
        self.older.update(parts)
        spaces = self.workspaces.take()
        waits = deferred.take() if self.join.is_exact else None
        snapshot = self.history.take()
        for device, trace in enumerate(snapshot["device_traces"]):
            writer = self.writer(device)
            if writer is not None:
                serials = list(self.join.serials(device, trace))
                known = (casts, spaces, areas, waits)
                writer.write(trace, serials, self.notes.take(device), self.older, known, self.notes.named)
        self.notes.forget()
        self.join.forget()
        self.older = parts
        self.trim()
        return snapshot

    def writer(self, device):
        if device not in self.writers and torch.cuda.memory_stats(device).get("allocation.all.allocated", 0):
            path = os.path.join(self.folder, f"recording.{self.pid}.{device}.fathom")
            about = {
                "torch": str(torch.__version__),
                "allocator_settings": os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or "",
                "memory_bytes": self.total[device],
                "context_bytes": self.context[device],
                "device": device,
            }  # fmt: skip
            self.writers[device] = Pen(path, about, self.modules, self.stacks, self.names, self.notes.words)
        return self.writers.get(device)

    def trim(self):
        local = self.local
        if len(local.sequence) > 2 * MEMORY:
            del local.sequence[:-MEMORY], local.functions[:-MEMORY]

    @guarded
    def finish(self):
        self.drain()
        self.backward.note_living(with_holders=True)
        self.note_everything(with_copies=True)
        snapshot = self.drain()
        parameters = self.parameters or self.names.counts()
        parameters["unused"] = sum(self.unused.values())
        self.facts.settle()
        facts = {"parameters": parameters, **self.saved.facts(), "facts": self.facts.table()}
        for device, pen in self.writers.items():
            pen.finish(snapshot["segments"], device, facts)
