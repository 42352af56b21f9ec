"""Values on the card, for scripts whose shapes and ways depend on them.

Kernels do not run on the phantom. What they would compute is known all the same, where everything behind it is known:
functions leave recipes (`crates/recorder/src/values`), and these are carried out by PyTorch's CPU kernels when a value
leaves the card for Python, for a shape or for a branch. That is a *decision*. What a decision needs and nobody knows is
assumed, and noted with its line: the report says so.

Which functions decide is said in `rules.py`; how recipes are carried out in `evaluate.py`; what is assumed where nobody
knows in `decisions.py`.
"""

import os

import torch
from torch.utils._python_dispatch import TorchDispatchMode

from ... import contract
from .. import functions, graph
from ..border import keep_theirs
from ..card_memory import allocated
from ..guard import undisturbed
from ..import_hooks import when_imported
from ..tracing import resumed, untraced
from . import evaluate, nested_rules, rules, several_cards, tensor_subclasses
from .closures import around, with_closure
from .decisions import Decisions, aside
from .generation import Generation
from .stand_ins import allow_in_checkpoints, in_yaml
from .unseen import Unseen, bytes_of

# Places that are told of, at most.
ROWS = 500

# A backward pass can have true values when no more than this is allocated on the card, and its leaves are as small.
TINY_BYTES = 128 << 20
TINY_ELEMENTS = 1 << 16

# What a number with a fraction is worth, in seconds; a whole number or a truth; a shape, which nearly always matters.
FRACTION, NUMBER, SHAPE = 2e-3, 0.5, 60.0

# Seconds for all decisions of a process, and bytes of host memory for the values that wait for them.
SECONDS = float(os.environ.get(contract.VALUE_SECONDS) or 300)
BYTES = int(os.environ.get(contract.VALUE_BYTES) or 2 << 30)

# Where torch's compiler computes what is constant.
FOLDING = "torch._inductor.constant_folding"


class Values(Decisions):
    def __init__(self):
        super().__init__()
        self.generation = Generation(self)
        self.unseen = Unseen(self)

    @property
    def ledger(self):
        return functions.install().ledger

    @untraced
    def run_special(self, func, args, kwargs):
        """A function with a rule of its own; the others run in `functions.rs`."""
        if not self.ledger.concerns(args, kwargs):
            return (self.note if func in rules.MAKERS else self.run)(func, args, kwargs)
        return rules.SPECIAL[func](self, func, args, kwargs)

    def note(self, func, args, kwargs):
        """An ordinary function: it runs, and leaves a recipe."""
        with resumed():
            return functions.install().inner.note(func, args, kwargs)

    def run(self, func, args, kwargs):
        """The function itself, for rules: its result and its error are the script's, whatever a rule does then."""
        with resumed():
            return functions.install().inner.theirs(func, args, kwargs)

    # -- what is known --------------------------------------------------------------------------------

    def value(self, tensor, seconds, may_stand_in=False):
        """A tensor's values on the CPU, and how they are known; `None` if they are not."""
        with aside():
            if tensor.layout is not torch.strided:
                return self.sparse_value(tensor, seconds)
            if not tensor.is_cuda:
                is_known = not self.ledger.is_unknown(tensor)
                # What the host computed with numbers that stand for others lies there.
                how = "known" if is_known else "stand-in" if may_stand_in else "unknown"
                return None if how == "unknown" else tensor.detach(), how
            return self.ledger.known(tensor, seconds, may_stand_in)

    def sparse_value(self, tensor, seconds):
        parts, is_coalesced = evaluate.parts(tensor)
        known = [self.value(part, seconds) for part in parts]
        if not parts or any(value is None for value, _ in known):
            return None, "unknown"
        return evaluate.assembled(tensor.layout, [value for value, _ in known], tensor.shape, is_coalesced), "known"

    def to_cpu(self, value, func, seconds=SHAPE, assumed=None):
        """An argument with true values. What is not known is assumed, and noted; `assumed` says what, if not as usual."""
        if isinstance(value, torch.Tensor):
            known, how = self.value(value, seconds)
            if how == "modelled":
                self.model(func)
            if known is None and assumed is not None:
                self.decide(func, how)
                with aside():
                    return assumed(value, self.tries_most())
            return known if known is not None else self.assume(value, func, how)
        if isinstance(value, (list, tuple)):
            parts = [self.to_cpu(item, func, seconds) for item in value]
            return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)
        if isinstance(value, torch.device) and value.type == "cuda" or isinstance(value, str) and value.startswith("cuda"):
            return torch.device("cpu")
        return value

    def compute(self, func, args, kwargs, seconds=SHAPE):
        """The same function of the same values, on the CPU; and whether these are known, not assumed."""
        before = self.decisions.total()
        args = tuple(self.to_cpu(value, func, seconds) for value in args)
        kwargs = {name: self.to_cpu(value, func, seconds) for name, value in kwargs.items() if name != "out"}
        with aside():
            return func(*args, **kwargs), self.decisions.total() == before

    # -- functions whose shape is a matter of values ------------------------------------------------------

    def with_answers(self, numbers, func, args, kwargs):
        """The function itself, which reads these numbers from the card, one after the other."""
        for number in numbers:
            self.ledger.answer(number, 1)
        try:
            return self.note(func, args, kwargs)
        finally:
            self.ledger.answer(0, 0)

    def produce(self, func, args, kwargs, value, is_known, count):
        """Runs a function that finds out itself how much it has to give: PyTorch's own allocations, and these values."""
        self.ledger.answer(count, 8)
        try:
            result = self.run(func, args, kwargs)
        except (RuntimeError, IndexError) as error:
            if isinstance(error, torch.cuda.OutOfMemoryError) or self.ledger.captures():
                raise  # the script's: who captures a graph cannot read from the card
            result = None  # numbers that no kernel wrote did not fit together
        finally:
            self.ledger.answer(0, 0)
        device = next((tensor.device for tensor in tensors((*args, *kwargs.values())) if tensor.is_cuda), None)
        if device is None:
            return self.made_on_host(value, is_known)
        return self.settled(result, value, is_known, device)

    def made_on_host(self, value, is_known):
        """A function of the host's whose arguments nobody knows: what it gives of what was assumed."""
        for tensor in tensors([value]):
            if not is_known and tensor.is_floating_point():
                self.ledger.lose_host(tensor)
        return value

    def settled(self, result, value, is_known, device):
        """The result with these values, if they are known; made anew if it has not their shape."""
        if isinstance(value, torch.Tensor) and value.layout is not torch.strided:
            with undisturbed():
                return self.settled_sparse(result, value, is_known, device)
        if isinstance(value, torch.Tensor):
            with undisturbed():
                if not isinstance(result, torch.Tensor) or result.shape != value.shape or result.dtype != value.dtype:
                    result = torch.empty(value.shape, dtype=value.dtype, device=device)
                if result.is_cuda and is_known:
                    self.ledger.set(result, value)
                elif result.is_cuda:
                    self.ledger.lose(result)
            return result
        if not isinstance(value, (list, tuple)):
            return value
        given = result if isinstance(result, (list, tuple)) and len(result) == len(value) else [None] * len(value)
        parts = [self.settled(one, item, is_known, device) for one, item in zip(given, value)]
        return type(value)(*parts) if hasattr(value, "_fields") else type(value)(parts)

    def settled_sparse(self, result, value, is_known, device):
        parts, is_coalesced = evaluate.parts(value)
        own = evaluate.parts(result)[0] if isinstance(result, torch.Tensor) and result.layout is value.layout else []
        if [part.shape for part in own] == [part.shape for part in parts]:
            for part, known in zip(own, parts):
                self.settled(part, known, is_known, device)
            return result  # autograd knows how it was made
        parts = [self.settled(None, part, is_known, device) for part in parts]
        return evaluate.assembled(value.layout, parts, value.shape, is_coalesced)

    def read_inside(self, func, args, kwargs, result):
        """A function has read something from the card that nobody knows: its result may be a matter of that."""
        if rules.only_checks(func) or rules.only_copies(func):
            return result
        before = self.decisions.copy()
        try:
            value, is_known = self.compute(func, args, kwargs)
        except Exception as error:  # no kernel for the CPU, or one that refuses what was assumed
            keep_theirs(error)
            self.withdraw(before)  # what was assumed for the CPU has led to nothing
            self.decide(func, "unknown", "zero")  # it has read zeros, and would with other values
            return result
        devices = [tensor.device for tensor in tensors((*args, *kwargs.values())) if tensor.is_cuda]
        return self.settled(result, value, is_known, devices[0]) if devices else result

    def storage_copied(self, storage, source):
        with aside():
            if storage.device.type != "cuda":
                if source.device.type == "cuda" and self.ledger.is_unknown(bytes_of(source)):
                    self.ledger.lose_host(bytes_of(storage))  # it is decided when somebody reads it there
                return
            here, there = bytes_of(storage), bytes_of(source)
            known, _ = self.value(there, NUMBER) if len(there) == len(here) else (None, None)
            if known is None:
                self.ledger.lose(here)
            else:
                self.ledger.set(here, known)

    # -- backward passes run in C++, where no function mode reaches ------------------------------------------

    def run_backward(self, inner, args, kwargs, parameters):
        """Gradients of toy graphs are computed; all others are unknown."""
        with undisturbed():
            devices = toy_devices(args[0]) if allocated() <= TINY_BYTES else None
        if devices is not None and "cuda" not in devices:
            return inner(*args, **kwargs)
        # On the CPU a mode changes what comes out of some functions of complex numbers, such as `pinv`.
        is_followed = devices is not None and "complex" not in devices
        self.ledger.backward(True)
        try:
            if is_followed:
                with _Operators(self):
                    return inner(*args, **kwargs)
            result = inner(*args, **kwargs)
            self.lose_on_host(args[0], result)
            return result
        finally:
            self.ledger.backward(False)
            if not is_followed:
                with undisturbed():
                    given = list(parameters())
                    self.ledger.lose_gradients(given)
                    self.lose_on_host(args[0], [value.grad for value in given])

    def lose_on_host(self, roots, gradients):
        """Gradients that came to the host from the card, where nobody computed them."""
        with undisturbed():
            if not any(root.is_cuda for root in tensors([roots])):
                return
            for gradient in tensors([gradients]):
                if not gradient.is_cuda and gradient.layout is torch.strided:
                    self.ledger.lose_host(gradient)

    # -- optimizers -------------------------------------------------------------------------------------------

    def begin_step(self, optimizer):
        """Weights count as those of the first step: what an optimizer computes from gradients that nobody knows is no
        reason to know less of the model. Where gradients are known, its functions are noted like all others."""
        with undisturbed():
            gradients = (p.grad for group in optimizer.param_groups for p in group["params"] if p.grad is not None)
            some = next(gradients, None)
            is_known = some is not None and some.is_cuda and not self.ledger.is_unknown(some)
            if some is not None and not is_known:
                self.ledger.set_modelled([p for group in optimizer.param_groups for p in group["params"]])
        self.ledger.set_quiet(not is_known)

    def follow_closure(self, optimizer, args, kwargs):
        """What computes the loss inside of a step is noted like all else, and gradients come of it."""
        leaves = functions.VALUES.callback(lambda: self.ledger.set_quiet(False), "the beginning of a closure")
        returns = functions.VALUES.callback(lambda: self.begin_step(optimizer), "the end of a closure")
        return with_closure(args, kwargs, lambda closure: around(closure, leaves, returns))

    def end_step(self):
        self.ledger.set_quiet(False)
        with undisturbed():
            self.ledger.end_of_step()


class _Operators(TorchDispatchMode):
    """Notes operators where no functions are seen, as in a backward pass. There it changes how gradients are added, and so
    the peak: only toy graphs get it."""

    def __init__(self, values):
        super().__init__()
        self.values = values

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        with torch._C.DisableTorchFunction():  # or operators would pass through both modes
            counts = rules.masks(self.values, func, args)
            return self.values.with_answers(counts, func, args, kwargs or {})


class _Checked:
    """A trace is run and compared with what was traced. It runs in C++, where nobody sees what it computes: what is not
    known is not compared, nor what has another shape because of that: it was noted where the trace read it."""

    def __enter__(self):
        self.theirs = torch.testing.assert_close
        torch.testing.assert_close = self.compare

    def __exit__(self, *_):
        torch.testing.assert_close = self.theirs

    def compare(self, actual, expected, **settings):
        given = [value for value in (actual, expected) if isinstance(value, torch.Tensor)]
        is_other = len({value.shape for value in given}) > 1 and all(value.is_cuda for value in given)
        if not is_other and not any(_values.ledger.is_unknown(value) for value in given):
            self.theirs(actual, expected, **settings)


def toy_devices(roots):
    """Where the ends of a graph lie, and whether some are complex numbers of the host's, if all that a backward pass gives
    gradients to is small together; stops where it is not."""
    roots = [roots] if isinstance(roots, torch.Tensor) else roots
    devices = {root.device.type for root in roots if isinstance(root, torch.Tensor)}
    nodes = list(graph.root_nodes(roots))
    seen, elements = set(nodes), 0
    while nodes:
        node = nodes.pop()
        leaf = getattr(node, "variable", None)
        if leaf is not None:
            elements += leaf.numel()
            devices.add(leaf.device.type)
            if leaf.is_complex() and not leaf.is_cuda:
                devices.add("complex")
        if elements > TINY_ELEMENTS:
            return None
        following = [after for after, _ in node.next_functions if after is not None and after not in seen]
        seen.update(following)
        nodes.extend(following)
    return devices


def tensors(values):
    for value in values:
        if isinstance(value, torch.Tensor):
            yield value
        elif isinstance(value, (list, tuple)):
            yield from tensors(value)


_values = None


def install():
    """The values of this process, to be asked for every function."""
    global _values
    _values = Values()
    functions.VALUES.around(torch.UntypedStorage, "copy_", before=_storage_is_copied, after=_storage_copied)
    several_cards.install(_values)
    tensor_subclasses.install()
    nested_rules.install()
    _values.generation.install()
    _values.unseen.install()
    functions.VALUES.within(torch.jit._trace, "_check_trace", lambda args, kwargs: _Checked())
    allow_in_checkpoints()
    when_imported("yaml.representer", functions.VALUES.callback(in_yaml, "the import of yaml"))
    when_imported(FOLDING, functions.VALUES.callback(_folding, f"the import of {FOLDING}"))
    return _values


def _folding(module):
    """torch's compiler computes constants on the card, reads them, and writes them into its code."""
    functions.VALUES.within(module.ConstantFolder, "run", lambda args, kwargs: _Operators(_values))


def _storage_is_copied(args, kwargs):
    _values.is_reading = True  # what is not known stays so on the host, and nothing is decided


def _storage_copied(_, args, kwargs, result, error):
    """Storages are copied below the functions, as when a file is loaded or written."""
    _values.is_reading = False
    if error is None and len(args) > 1:
        _values.storage_copied(args[0], args[1])


def get():
    """The values of this process, if it has any."""
    return _values


def run_backward(inner, args, kwargs, parameters):
    if _values is None:
        return inner(*args, **kwargs)
    return _values.run_backward(inner, args, kwargs, parameters)


def generations():
    """Texts that were sampled to their full length, since nobody knows where they end."""
    return [] if _values is None else _values.generation.table()


def decisions():
    """What was decided by values that are not known, the most frequent first; then by such that are modelled."""
    if _values is None:
        return []
    found = [*_values.decisions.most_common(ROWS), *_values.modelled.most_common(ROWS)]
    return [
        {
            "operator": name,
            "why": how,
            "assumed": assumed,
            "file": user and user[0],
            "line": user and user[1],
            "library_file": library and library[0],
            "library_line": library and library[1],
            "count": count,
        }
        for (name, how, assumed, user, library), count in found
    ]
