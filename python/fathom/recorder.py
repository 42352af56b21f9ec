"""Records who allocates: PyTorch's own memory history, joined with modules, functions, lines and autograd nodes.

Everything is noted by number and address: no tensor is held, nothing is unpacked, no operator is dispatched
differently, so peaks are the same with and without it. Each part of the script (a module's call, a function, a
node of the backward pass) begins with a serial number; `join.py` finds the number of each event again, and after
each step the events are written to the run's file.
"""

import bisect
import contextlib
import functools
import gc
import itertools
import os
import sys
import threading

import torch

from . import graph, history, join, workspaces
from .functions import PLAIN
from .modules import Modules
from .names import FACTORIES, Names, arguments
from .pen import Pen
from .recording_file import CATEGORIES, NAME, PHASE, PHASES, TENSOR
from .stacks import Stacks

# Parts that may begin before what happened is written out, step or no step.
PATIENCE = 50_000

# Nodes of the backward pass are found again by their sequence numbers: of this many parts at least.
MEMORY = 200_000

NOTHING = (0, None, 0, None)

CODES = {category: code for code, category in enumerate(CATEGORIES)}


def guarded(method):
    """The user's script matters more than our record of it: whatever goes wrong here ends the recording only."""

    @functools.wraps(method)
    def call(self, *args, **kwargs):
        if self.is_broken:
            return None
        try:
            with undisturbed():
                return method(self, *args, **kwargs)
        except Exception as error:
            self.is_broken = True
            where = error.__traceback__
            while where.tb_next is not None:
                where = where.tb_next
            place = f"{os.path.basename(where.tb_frame.f_code.co_filename)}:{where.tb_lineno}"
            print(f"fathom: recording ends here: {type(error).__name__}: {error} ({place})", file=sys.stderr)
            return None

    return call


@contextlib.contextmanager
def undisturbed():
    """No functions of ours are seen, and our many small objects do not make Python collect the user's garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with torch._C.DisableTorchFunction():
            yield
    finally:
        if was_enabled:
            gc.enable()


class Local(threading.local):
    """Where a thread is."""

    def __init__(self):
        self.part = NOTHING  # (module, function, stack, node) of the innermost module or node
        self.sequence = []  # autograd's sequence number when a function began …
        self.functions = []  # … and that function as a part
        self.hooked = []  # sequence numbers between which hooks pack what is saved
        self.hooks = 0


class Recorder:
    def __init__(self, folder, watch):
        self.watch = watch
        self.pid = os.getpid()
        self.folder = folder
        self.local = Local()
        self.counter = itertools.count(1)
        self.parts = {}  # serial number -> part, of this step …
        self.older = {}  # … and of the step before
        self.named = {}  # address -> what its allocation was called last
        self.marks = []  # (serial, device, kind, code, text, address)
        self.casts = {}  # serial number -> parameters that autocast may cast there
        self.stacks = Stacks(self.call_module.__func__.__code__)
        self.modules = Modules()
        self.names = Names(self.modules, watch.optimizers)
        self.region = 0  # serial number at which the running phase began
        self.unused = None
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
        self.watch_saved_hooks()
        self.begin(NOTHING)

    # -- parts of the script ------------------------------------------------------------------------

    def begin(self, part):
        """From here on this thread's events belong to this part."""
        serial = self.serial = next(self.counter)
        self.parts[serial] = part
        self.join.begin(serial)
        self.workspaces.begin(serial)
        return serial

    def enter_function(self, func, args):
        local = self.local
        module, _, stack, node = local.part
        part = (module, func, self.stacks.of(sys._getframe(2), stack), node)
        serial = self.begin(part)
        local.sequence.append(torch._C._autograd._get_sequence_nr())
        local.functions.append(part)
        local.func = func
        if torch.is_autocast_enabled():
            self.note_casts(serial, args)

    def note_result(self, result):
        """Called before `leave_function`: the events of the function come before what is said of its result."""
        if isinstance(result, torch.Tensor):
            self.note_tensor(result)
            local = self.local
            if local.part[0] == 0 and local.func in FACTORIES and result.is_cuda and result.grad_fn is None:
                self.note_name("inputs", f"{local.func.__name__}(…)", result)
        elif isinstance(result, (tuple, list)):
            for item in result:
                if isinstance(item, torch.Tensor):
                    self.note_tensor(item)

    def leave_function(self):
        self.begin(self.local.part)

    def call_module(self, inner, module, args, kwargs):
        local = self.local
        outer = local.part
        if outer[0] == 0:
            self.enter_model(module, args, kwargs)
        stack = self.stacks.of(sys._getframe(1), outer[2])
        local.part = (self.modules.number(module, outer[0]), None, stack, outer[3])
        self.begin(local.part)
        try:
            return inner(module, *args, **kwargs)
        finally:
            local.part = outer
            self.begin(outer)

    @guarded
    def enter_model(self, module, args, kwargs):
        """A model is called from outside of any module: what it is given are the inputs."""
        self.modules.number(module)
        self.watch.model_called(module)
        if len(self.parts) > PATIENCE:
            self.drain()
        for name, tensor in arguments(args, kwargs):
            if tensor.is_cuda and tensor.grad_fn is None and not isinstance(tensor, torch.nn.Parameter):
                self.note_name("inputs", name, tensor)
        self.begin(NOTHING)

    def note_casts(self, serial, args):
        parameters = [arg for arg in args if isinstance(arg, torch.nn.Parameter) and arg.dtype == torch.float32]
        if parameters:
            size = torch.get_autocast_dtype("cuda").itemsize
            self.casts[serial] = [(arg.numel() * size, id(arg)) for arg in parameters]

    # -- the backward pass ----------------------------------------------------------------------------

    def run_backward(self, run, roots):
        """Each node announces itself when it runs; what it keeps is noted before."""
        local = self.local
        outer, handles = local.part, []
        self.before_backward(roots, handles)
        self.begin(outer)
        try:
            return run()
        finally:
            local.part = outer
            self.after_backward(handles)
            self.begin(outer)

    @guarded
    def before_backward(self, roots, handles):
        for node in graph.nodes_of([root.grad_fn for root in roots if root.grad_fn is not None]):
            part = self.part_of(node, self.local)
            self.note_saved(node, part)
            if part is not None:
                handles.append(node.register_prehook(functools.partial(self.enter_node, part)))

    @guarded
    def after_backward(self, handles):
        for handle in handles:
            handle.remove()
        self.note_all(self.names.of_gradients())

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
                    self.note_tensor(gradient)
        self.local.part = part
        self.begin(part)

    def note_saved(self, node, part):
        hooked = self.local.hooked
        is_hooked = bool(hooked) and is_between(hooked, node._sequence_nr())
        for name, tensor in graph.saved_by(node, is_hooked):
            if tensor.is_cuda and tensor.numel():
                where = self.modules.paths[part[0]] if part else ""
                kept = f"{node.name()}.{name}" + (f" in {where}" if where else "")
                self.note_name("activations", kept, tensor)

    def note_graphs(self):
        """Out of memory before a backward pass: the graphs that are alive are looked for."""
        every = gc.get_objects()
        roots = [t.grad_fn for t in every if type(t) in PLAIN and t.is_cuda and t.grad_fn is not None]
        del every
        for node in graph.nodes_of(dict.fromkeys(roots)):
            self.note_saved(node, self.part_of(node, self.local))

    def watch_saved_hooks(self):
        """Between push and pop, what is saved is packed: only older torch needs to be told."""
        if graph.HAS_RAW_DATA:
            return
        functions, local = torch._C._autograd, self.local
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

    # -- what is noted ----------------------------------------------------------------------------------

    def note_tensor(self, tensor):
        if type(tensor) in PLAIN and tensor.is_cuda and not tensor._is_view() and tensor.layout is torch.strided:
            what = (tensor.dtype, tensor.shape)
            device = tensor.get_device()
            self.marks.append((self.serial, device, TENSOR, 0, what, tensor.data_ptr()))

    def note_name(self, category, name, tensor):
        for part in storages(tensor):
            self.marks.append((self.serial, part.get_device(), NAME, CODES[category], name, part.data_ptr()))

    def note_all(self, named):
        """Notes each, unless the same was said of this allocation before; gives their addresses."""
        noted = set()
        for category, name, tensor in named:
            if tensor.is_cuda:
                for part in storages(tensor):
                    address = part.data_ptr()
                    noted.add(address)
                    if self.named.get(address) != name:
                        self.named[address] = name
                        self.note_name(category, name, part)
                        self.note_tensor(part)
        return noted

    # -- phases --------------------------------------------------------------------------------------------

    def end_region(self, phase, step):
        """The phase that ends here gets its name; the next begins."""
        code = PHASES.index(phase.replace(" ", "_"))
        for device in self.total:
            self.marks.append((self.region, device, PHASE, code, step, 0))
        self.region = self.begin(self.local.part)

    @guarded
    def end_step(self, is_early):
        if self.unused is None:
            self.unused = self.names.unused()
        self.drain()  # first: it tells which names are of allocations that are gone
        self.note_everything(with_copies=is_early)

    @guarded
    def note_refusal(self):
        """Out of memory: what is alive is named now, since the script may end here."""
        self.drain()
        self.note_graphs()
        self.note_everything(with_copies=True)
        self.drain()

    def note_everything(self, with_copies):
        """Names by what holds the tensors now."""
        taken = set()
        for named in (self.names.of_modules(), self.names.of_optimizers(), self.names.of_gradients()):
            taken |= self.note_all(named)
        if with_copies:
            self.note_all(self.names.of_copies(taken))
        self.begin(self.local.part)

    # -- the file --------------------------------------------------------------------------------------------

    def drain(self):
        """Writes what happened since the last time."""
        if os.getpid() != self.pid:
            return None
        marks, self.marks = self.marks, []
        parts, self.parts = self.parts, {}
        casts, self.casts = self.casts, {}
        self.older.update(parts)
        spaces = self.workspaces.take()
        snapshot = self.history.take()
        for device, trace in enumerate(snapshot["device_traces"]):
            writer = self.writer(device)
            if writer is not None:
                serials = list(self.join.serials(device, trace))
                mine = [mark for mark in marks if mark[1] == device]
                writer.write(trace, serials, mine, self.older, casts, spaces, self.named)
        self.join.forget()
        self.older = parts
        self.trim()
        return snapshot

    def writer(self, device):
        if device not in self.writers and torch.cuda.memory_stats(device).get("segment.all.allocated", 0):
            path = os.path.join(self.folder, f"recording.{self.pid}.{device}.fathom")
            about = {
                "torch": str(torch.__version__),
                "allocator_settings": os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or "",
                "memory_bytes": self.total[device],
                "context_bytes": self.context[device],
                "device": device,
            }  # fmt: skip
            self.writers[device] = Pen(path, about, self.modules, self.stacks, self.names)
        return self.writers.get(device)

    def trim(self):
        local = self.local
        if len(local.sequence) > 2 * MEMORY:
            del local.sequence[:-MEMORY], local.functions[:-MEMORY]

    @guarded
    def finish(self):
        self.drain()
        self.note_everything(with_copies=True)
        snapshot = self.drain()
        parameters = {**self.names.counts(), "unused": self.unused or 0}
        for device, pen in self.writers.items():
            pen.finish(snapshot["segments"], device, parameters)


def last_at_most(numbers, number):
    at = bisect.bisect_right(numbers, number)
    return at - 1 if at else None


def is_between(bounds, number):
    """Whether a number lies between the first and second, the third and fourth … of increasing bounds."""
    return bisect.bisect_right(bounds, number) % 2 == 1


def storages(tensor):
    """What of a tensor lies on the card: itself, or the parts of a sparse or a distributed one."""
    if tensor.layout is not torch.strided:
        return [part for part in (tensor._indices(), tensor._values()) if part.is_cuda] if tensor.is_sparse else []
    local = getattr(tensor, "_local_tensor", tensor)
    return [local] if type(local) in PLAIN else []
