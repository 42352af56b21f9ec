"""Records who allocates: PyTorch's own memory history, joined with modules, functions, lines and autograd nodes.

Everything is noted by number and address: no tensor is held, nothing is unpacked, no operator is dispatched
differently, so peaks are the same with and without it. Each part of the script (a module's call, a function, a
node of the backward pass) begins with a serial number, which is found again in PyTorch's events (`event_serials.py`); after
each step the events are written to the run's file. What is called for every function is Rust, in `crates/recorder`.
"""

import os
import threading

import torch

from .. import border, graph, native
from ..border import guarded
from ..card_memory import allocated, total_and_context
from ..file_owner import FILE_OWNER
from ..functions import PLAIN, enter_thread
from ..graph import is_made
from ..modules import Modules
from ..storages import elements, storages
from ..texts import as_json
from . import event_serials, history
from .areas import Areas, layout
from .backward import Backward
from .caches import Caches
from .compiled import Compiled
from .facts import LOOKS, Facts, allocator_settings, may_enlarge
from .names import FACTORIES, Names, arguments

# Parts that may begin before what happened is written out, step or no step.
PATIENCE = 50_000

# Everything is named anew after a step if this share of what is allocated is new and has no name.
UNNAMED = 1e-3


class Recorder:
    def __init__(self, folder, watch):
        self.watch = watch
        self.party = border.Party("the recording ended", ends=True, then=self.withdraw)
        self.pid = os.getpid()
        self.folder = folder
        self.modules = Modules()
        self.names = Names(self.modules, watch.optimizers)
        self.facts = Facts(self.modules)
        self.region = 0  # serial number at which the running phase began
        self.parameters = None  # their counts, taken at each optimizer's first step
        self.unused = {}  # optimizer's id -> elements without a gradient then
        self.draining = threading.Lock()
        devices = torch.cuda.device_count()
        self.event_serials = event_serials.make(devices)
        self.note_taker = make_note_taker(self.party, self.modules, self.event_serials)
        self.compiled = Compiled(self.party, self.modules, self.expect_compiled)
        self.history = history.History(self.note_taker, self.drain)
        self.total, self.context = {}, {}
        for device in range(devices):
            self.total[device], self.context[device] = total_and_context(device)
        self.backward = Backward(self)
        self.areas = Areas(self)
        self.names.caches = self.facts.caches = Caches(self)
        self.names.is_trained = self.facts.is_trained
        self.note_taker.step_out()

    # -- parts of the script ------------------------------------------------------------------------

    def expect_compiled(self):
        """From here on some allocations are those of made code."""
        self.note_taker.expect_compiled(self.compiled.graphs, self.compiled.origin)

    def look(self, func, args, kwargs, is_looked_at, is_autocast):
        """A function is called whose arguments say something."""
        if is_autocast:
            self.facts.add("autocast", str(torch.get_autocast_dtype("cuda")).removeprefix("torch."))
        if is_looked_at:
            self.facts.function(self.note_taker.module(), func, args, kwargs or {})

    def watch_modules(self):
        """Every call of a module is seen, by `crates/recorder/src/calls.rs`."""
        owner, name = torch.nn.Module, "__call__"
        ours = native.ModuleCall(self.party.native, getattr(owner, name), self.note_taker, self)
        self.party.put(owner, name, ours)
        self.watch_moves()

    def watch_moves(self):
        """A model that is cast or moved on has other parameters then: what they were before is named while it is there."""
        depth = threading.local()

        def begin(args, _):
            depth.now = getattr(depth, "now", 0) + 1
            if depth.now == 1:  # it goes on with the modules in this one
                self.note_parameters(args[0])

        def end(*_):
            depth.now -= 1

        self.party.around(torch.nn.Module, "_apply", begin, end)

    @guarded
    def note_parameters(self, module):
        self.note_taker.all(("weights", name, parameter) for name, parameter in module.named_parameters())

    @guarded
    def enter_model(self, args, kwargs):
        """A model is called from outside of any module: what it is given are the inputs."""
        enter_thread()
        module, *given = args
        self.modules.number(module)
        self.facts.settle()
        self.watch.model_called(module, given, kwargs or {})
        if self.parameters is None and self.watch.inference is not None:
            self.count_parameters()
        if self.note_taker.count() > PATIENCE:
            self.watch.measure(self.watch.running())  # what is written has its phase by then
            self.drain()
        # What a checkpoint gives to its block again was made by the model: it is no input.
        brought = () if self.note_taker.is_recomputing() else arguments(given, kwargs or {})
        for name, tensor in brought:
            if tensor.is_cuda and not is_made(tensor) and not isinstance(tensor, torch.nn.Parameter):
                self.note_taker.name("inputs", name, tensor)
        self.note_taker.step_out()

    @guarded
    def leave_model(self, number, result):
        if self.watch.inference is not None:
            self.watch.inference.model_returned(result)
        if torch.is_grad_enabled() and (self.watch.is_evaluating or self.watch.inference is not None):
            self.facts.model_evaluated(number, result)

    @guarded
    def look_at_module(self, number, args, kwargs):
        """A module is called for the first time."""
        self.facts.module_called(number, args[0], args[1:], kwargs or {})

    @guarded
    def note_recomputed(self, number):
        """A module is called in a backward pass."""
        self.facts.recomputed(number)

    @guarded
    def note_graph_use(self, keeps_graph, makes_graph, place):
        self.facts.backward_begins(keeps_graph, makes_graph, place)

    # -- phases --------------------------------------------------------------------------------------------

    @guarded
    def end_region(self, phase, step):
        """The phase that ends here gets its name; the next begins."""
        self.backward.garbage.settle()
        for device in self.total:
            self.note_taker.phase(self.region, device, phase.replace(" ", "_"), step)
        self.region = self.note_taker.resume()

    @guarded
    def end_step(self, optimizer, is_early):
        if is_early or id(optimizer) not in self.unused:
            self.facts.gradients_of(optimizer)
        if id(optimizer) not in self.unused:
            self.note_unused(optimizer)
            self.parameters = self.names.counts()
        if is_early:
            self.facts.look(self.watch.optimizers.parameters())
        self.note_taker.forget_outputs()
        self.drain()  # first: it tells which names are of allocations that are gone
        if is_early or self.note_taker.unnamed() > UNNAMED * allocated():
            # Tensors of a thread that trains at this moment must not be touched.
            is_alone = self.watch.optimizers.are_own()
            self.note_everything(with_copies=is_early and is_alone)
        if is_early:
            self.facts.look_at_copies(self.names.copies)

    @guarded
    def end_round(self, is_early):
        """The same where no optimizer steps."""
        if is_early:
            self.facts.look(self.watch.optimizers.parameters())
            self.count_parameters()
        self.note_taker.forget_outputs()
        self.drain()
        if is_early or self.note_taker.unnamed() > UNNAMED * allocated():
            self.note_everything(with_copies=False)

    def count_parameters(self):
        """Where no optimizer says which they are: the most that were there at once."""
        found = self.names.counts()
        if self.parameters is None or found["total"] > self.parameters["total"]:
            self.parameters = found

    def note_unused(self, optimizer):
        if not isinstance(optimizer, torch.optim.Optimizer):
            self.unused[id(optimizer)] = 0  # its gradients may be gone by now
            return
        unused = self.names.unused(optimizer)
        self.unused[id(optimizer)] = sum(elements(parameter) for _, parameter in unused)
        for name, _ in unused:
            self.facts.add("unused", name)
        self.facts.optimizer(optimizer)

    @guarded
    def end_last_step(self):
        """What still holds a graph is named while the script's variables are there."""
        self.facts.look(self.watch.optimizers.parameters())
        self.backward.note_living(with_holders=True)
        self.note_everything(with_copies=True)

    @guarded
    def note_refusal(self):
        """Out of memory: what is alive is named now, since the script may end here."""
        self.note_taker.forget_outputs()
        self.drain()
        self.backward.note_living(with_holders=False)
        self.note_everything(with_copies=True)
        self.drain()
        self.facts.look(self.watch.optimizers.parameters())
        self.note_taker.about(as_json({"facts": self.facts.table()}))

    def note_everything(self, with_copies):
        """Names by what holds the tensors now."""
        taken = {}
        for named in (self.names.of_modules(), self.names.of_optimizers(), self.names.of_gradients()):
            taken |= self.note_taker.all(named)
        if with_copies:
            self.note_taker.all(self.names.of_copies(taken))
        self.note_taker.all_named()
        self.note_taker.resume()

    # -- the file --------------------------------------------------------------------------------------------

    def drain(self, is_last=False):
        """Writes what happened since the last time; gives the segments, if it is the last."""
        if os.getpid() != self.pid:
            return None
        with self.draining:
            cut = self.note_taker.cut()
            begun = self.event_serials.begun()
            snapshot = self.history.take(with_segments=is_last)
            traces = snapshot["device_traces"]
            for device in range(len(traces)):
                self.open(device)
            self.note_taker.write(cut, traces, self.event_serials.serials(traces), self.names.of_parameter)
            self.event_serials.forget(begun)
        return snapshot["segments"]

    def open(self, device):
        """Begins the recording of a card that is used."""
        if self.note_taker.is_open(device) or not torch.cuda.memory_stats(device).get("allocation.all.allocated", 0):
            return
        about = {
            "torch": str(torch.__version__),
            "allocator_settings": allocator_settings(),
            "memory_bytes": self.total[device],
            "context_bytes": self.context[device],
            "device": device,
        }  # fmt: skip
        self.note_taker.open(device, os.path.join(self.folder, f"recording.{self.pid}.{device}.fathom"), as_json(about))

    def withdraw(self):
        """The script goes on as if there were no recording."""
        self.watch.recording_ended()
        self.party.withdraw()
        self.history.end()

    @guarded
    def finish(self):
        self.drain()
        self.backward.note_living(with_holders=True)
        self.note_everything(with_copies=True)
        segments = self.drain(is_last=True)
        if segments is None:
            return
        if self.parameters is None or not self.unused:
            self.count_parameters()
        parameters = self.parameters
        parameters["unused"] = sum(self.unused.values())
        self.facts.settle()
        kept, outputs = self.note_taker.saved()
        saved = {"saved_bytes": kept, "module_outputs_bytes": outputs}
        facts = {"parameters": parameters, "saved": saved, "facts": self.facts.table()}
        for device in self.note_taker.devices():
            self.note_taker.finish(device, segments, as_json({**facts, "counters": counters(device)}))


def make_note_taker(party, modules, joined):
    """What the note taker asks Python for."""
    settings = {
        "party": party.native,
        "announce": joined.announce,
        "is_text": joined.is_text,
        "describe": describe,
        "number_of": modules.number,
        "known_modules": modules.known,
        "fields_of": graph.fields_of,
        "storages": storages,
        "layout": layout,
        "may_enlarge": may_enlarge,
        "plain": PLAIN,
        "file_owner": FILE_OWNER,
        "paths": modules.paths,
        "classes": modules.classes,
    }
    return native.NoteTaker(settings)


def counters(device):
    """PyTorch's own, for comparison."""
    stats = torch.cuda.memory_stats(device)
    found = {f"{kind}_peak": stats.get(f"{kind}_bytes.all.peak", 0) for kind in ("allocated", "reserved", "requested")}
    for kind in ("allocated", "reserved"):
        found[kind] = stats.get(f"{kind}_bytes.all.current", 0)
    return found


def describe(func):
    """Name of a function, whether its results are inputs outside of modules, whether its arguments are looked at."""
    name = getattr(func, "__name__", None) or str(func)
    if name in ("__get__", "__set__"):
        name = getattr(getattr(func, "__self__", None), "__name__", name)
    return name, func in FACTORIES, func in LOOKS
