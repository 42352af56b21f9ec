"""Decisions on values that nobody knows: what is assumed instead, and where it is noted.

The first run assumes the least: nothing is kept, a number is zero, and what came of a number that stands for another
(`stand_ins.py`) counts. A run with other values tries the most, and goes every way the other way round.
"""

import collections
import contextlib
import os
import sys

import torch

from ... import contract
from ..file_owner import is_library, is_ours
from ..guard import undisturbed
from ..storages import has_memory
from . import asserted, evaluate
from .inverses import Inverses
from .stand_ins import LARGE, Origin, only_writes, ordinary, stood_in

T = torch.Tensor

# Of a place, in what is assumed.
MOST_AT = "most at "

# Masks keep every second element: pairs of what is kept and what is not are most then.
HALF = "half"


class Decisions:
    """What was decided, and what this run assumes. `ledger` says what is known."""

    def __init__(self):
        self.decisions = collections.Counter()
        self.modelled = collections.Counter()  # decisions by weights that stand for those of later steps
        # Of one rank among others, also by what these are taken to give.
        self.modelled_by = "ranks" if int(os.environ.get(contract.WORLD_SIZE) or 1) > 1 else "weights"
        self.inverses = Inverses()
        self.dear = set()  # lines of which it was said that their values take long
        self.turns = collections.Counter()  # how often a number that is not followed was read, by its place
        self.is_reading = False  # what the script reads is answered here, not below
        words = os.environ.get(contract.ASSUME, "").split("\n")
        self.most, self.half = "most" in words, HALF in words
        self.most_at = [word.removeprefix(MOST_AT) for word in words if word.startswith(MOST_AT)]
        self.given = dict(word.rsplit("=", 1) for word in words if "=" in word)  # "train.py:88" -> "1200"

    def decide(self, func, how, assumed=None):
        """Something that is not known decides what the script does: where, and what was assumed. Not if it is printed."""
        if only_writes(sys._getframe(1)):
            return False
        user, library = places(sys._getframe(1))
        assumed = assumed or ("most" if self.tries_most(user) else "least")
        self.decisions[(name_of(func), how, assumed, user, library)] += 1
        return True

    def withdraw(self, before):
        """Takes back what was decided at this line since then; other threads may have decided something meanwhile."""
        here = places(sys._getframe(1))
        self.decisions -= collections.Counter({key: count for key, count in (self.decisions - before).items() if key[3:] == here})

    def given_at(self, place):
        """What the user says of a line, as a number."""
        return next((float(number) for named, number in self.given.items() if is_at(place, named)), None)

    def tries_most(self, place=None):
        """Whether this run tries the most, or the other way, at a line; without one, at that which runs."""
        if not self.most and not self.most_at or only_writes(sys._getframe(1)):
            return False
        if self.most:
            return True
        place = place or places(sys._getframe(1))[0]
        return any(is_at(place, named) for named in self.most_at)

    def model(self, func):
        """Something is decided by weights of the first step, which stand for those of later ones: that is said."""
        name = name_of(func)
        decision = (name, "modelled", self.modelled_by, *places(sys._getframe(1)))
        self.modelled[decision] += 1

    def read_below(self, size):
        """Code that we do not see, as of an extension, has copied something to the host that nobody knows. What it is to
        find there, as bytes; `None` for zeros."""
        if self.is_reading:
            return None
        number = self.given_at(places(sys._getframe(1))[0]) if size in (1, 2, 4, 8) else None
        self.decide("cudaMemcpy", "unknown", "given" if number is not None else None)
        if number is not None:
            return (int(number) % (1 << 8 * size)).to_bytes(size, "little")
        if not self.tries_most():
            return None
        # Nobody says what kind of numbers these are; the run must not be taken for the one with zeros.
        if size in (1, 2, 8):
            return min(LARGE, (1 << 8 * size - 1) - 1 if size > 1 else 1).to_bytes(size, "little")
        return (LARGE.to_bytes(4, "little") * -(-size // 4))[:size]

    def say_that_it_takes(self, seconds):
        """The line that asks for it, on the standard error, when it does so first."""
        user, library = places(sys._getframe(1))
        place = user or library
        if place is None or place in self.dear:
            return
        self.dear.add(place)
        text = f"what {os.path.basename(place[0])}:{place[1]} asks for is computed on the CPU, by estimate in {seconds:.0f} s"
        with contextlib.suppress(Exception):  # closed, or replaced by the script
            print(f"fathom: {text}", file=sys.stderr, flush=True)

    # -- what is assumed -----------------------------------------------------------------------------------

    def assume(self, tensor, func, how, bounds=None):
        """The least, or the most, that such values can lead to: nothing is kept, all is the same; all is kept, none is.
        Or what the user says of this line. `bounds`: the least and the most that its whole numbers can be."""
        user = places(sys._getframe(1))[0]
        number, most = self.given_at(user), self.tries_most(user)
        holds = self.as_asserted(tensor, func, number)
        if holds is not None:
            return holds
        bounds = bounds or self.bounds(tensor)
        # Of several numbers nobody knows which are the most together.
        is_bounded = bounds is not None and tensor.numel() == 1 and 0 <= bounds[0]
        of_one = "largest" if most else "smallest"
        is_decided = self.decide(func, how, "given" if number is not None else of_one if is_bounded else None)
        with aside():
            if tensor.layout is not torch.strided:
                return torch.zeros(tensor.shape, dtype=tensor.dtype, layout=tensor.layout, device="cpu")
            assumed = self.least_or_most(tensor, most, bounds) if number is None else chosen(tensor, number)
            if is_decided and is_whole_mask(tensor):
                self.ledger.set(tensor, assumed)  # its count, and what it is combined with, go with what it keeps
            return assumed

    def as_asserted(self, tensor, func, number):
        """The truth with which an assertion of the script's holds; `None` if nothing is asserted."""
        truth = asserted.wanted(sys._getframe(2)) if func is T.__bool__ and number is None else None
        with aside():
            return None if truth is None else torch.full(tensor.shape, truth, dtype=tensor.dtype, device="cpu")

    def bounds(self, tensor):
        """The least and the most that whole numbers on the card can be, if that is known."""
        is_whole = tensor.layout is torch.strided and tensor.dtype is not torch.bool and not tensor.is_floating_point()
        with aside():
            return self.ledger.bounds(tensor) if tensor.is_cuda and is_whole and not tensor.is_complex() else None

    def least_or_most(self, tensor, most, bounds=None):
        if tensor.dtype is torch.bool:
            if self.half and tensor.numel() > 1:
                number = torch.arange(tensor.numel(), device="cpu").reshape(tensor.shape)
                return number % 2 == int(tensor in self.inverses)
            # The most is a bound: what is pruned by the one mask must not hide what another one adds.
            return torch.full(tensor.shape, most or tensor in self.inverses, device="cpu")
        if tensor.is_floating_point() or tensor.is_complex():
            return large(tensor) if most else torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")
        bounds = bounds or self.bounds(tensor)
        if bounds is not None:
            return within(tensor, most, *bounds)
        if not most:
            return torch.zeros(tensor.shape, dtype=tensor.dtype, device="cpu")
        if tensor.numel() == 1:
            return torch.full(tensor.shape, min(LARGE, torch.iinfo(tensor.dtype).max), dtype=tensor.dtype, device="cpu")
        return torch.arange(1, tensor.numel() + 1, device="cpu").reshape(tensor.shape).to(tensor.dtype)

    def decide_on_host(self, tensor, func, how, is_there, bounds=None):
        """A tensor of the host's holds what is not known, and whoever reads it there is not seen: whether it was decided what
        it holds. One number that is there counts, as elsewhere; many are the least."""
        frame = sys._getframe(1)
        if only_writes(frame):
            return False
        if is_there and tensor.numel() == 1:
            found = self.go_by_stand_in(tensor, tensor.detach().clone(), func, how)
        else:
            found = self.assume(tensor, func, how, bounds)
        evaluate.fill(tensor, found)
        return True

    # -- numbers that stand for others ---------------------------------------------------------------------

    def go_by_stand_in(self, tensor, found, func, how=None):
        """A size, a count or a truth that came of a number which stands for another: what was found, or, in the run with the
        most, something else. Or what the user says of this line."""
        user, library = places(sys._getframe(1))
        number = self.given_at(user)
        is_truth = tensor.dtype is torch.bool
        holds = self.as_asserted(tensor, func, number)
        if holds is not None:
            return holds
        assumed = "given" if number is not None else "either" if is_truth else "one"
        self.go_by((name_of(func), how or self.why(tensor), user, library), assumed)
        with aside():
            if number is not None:
                return chosen(tensor, number)
            if not self.tries_most(user):
                return found
            return ~found if is_truth else self.least_or_most(tensor, True)

    def stand_in(self, tensor, found, func, how):
        """A number with a fraction for Python: whoever goes by it is noted. Or what the user says of this line."""
        user, library = places(sys._getframe(1))
        number = self.given_at(user)
        key = (name_of(func), "modelled" if how == "modelled" else self.why(tensor), user, library)
        if number is not None:
            self.go_by(key, "given")
            with aside():
                return func(chosen(tensor, number))
        if type(found) is complex:
            return complex(ordinary((Origin(self, key),), found.real), found.imag)
        return stood_in(found, Origin(self, key)) if func is not T.__float__ else ordinary((Origin(self, key),), found)

    def go_by(self, key, assumed):
        """Somebody goes by a number that stands for what was read there."""
        if only_writes(sys._getframe(1)):
            return
        name, how, user, library = key
        if how == "modelled":
            self.modelled[(name, how, self.modelled_by, user, library)] += 1
            return
        assumed = "most" if self.tries_most(user) and assumed != "given" else assumed
        self.decisions[(name, how, assumed, user, library)] += 1

    def why(self, tensor):
        with aside():
            has_value = tensor.is_cuda and has_memory(tensor)
            return "dear" if has_value and self.ledger.can_be_known(tensor) else "unknown"


@contextlib.contextmanager
def aside():
    """What is computed here is nobody's business: no gradients, and no functions of ours are seen."""
    with undisturbed(), torch.no_grad(), evaluate.made_on_host():
        yield


def chosen(tensor, number):
    """A mask that keeps so many, or a tensor of this number."""
    if tensor.dtype is not torch.bool:
        return torch.full(tensor.shape, number, device="cpu").to(tensor.dtype)
    return (torch.arange(tensor.numel(), device="cpu") < number).reshape(tensor.shape)


def large(tensor):
    """Numbers with a fraction that are large, each another."""
    found = torch.arange(LARGE, LARGE + tensor.numel(), dtype=torch.double, device="cpu").reshape(tensor.shape)
    return found.clamp(max=torch.finfo(tensor.dtype).max).to(tensor.dtype)


def within(tensor, most, least, largest):
    """Whole numbers that can be: as near to zero as may be, and all the same; or the largest, and as many others as there
    are."""
    if not most:
        return torch.full(tensor.shape, min(max(0, least), largest), dtype=tensor.dtype, device="cpu")
    steps = torch.arange(tensor.numel(), device="cpu") % (largest - least + 1)
    return (largest - steps).reshape(tensor.shape).to(tensor.dtype)


def is_whole_mask(tensor):
    """Whether it is a mask on the card, and nothing else lies in its storage."""
    is_mask = tensor.is_cuda and tensor.dtype is torch.bool and tensor.dim() > 0
    return is_mask and type(tensor) is torch.Tensor and tensor.untyped_storage().nbytes() == tensor.numel()


def name_of(func):
    return getattr(func, "__name__", str(func))


def is_at(place, named):
    """Whether a line is the one that is named so: `train.py:88`."""
    here = place and f"{place[0]}:{place[1]}"
    return here is not None and (here == named or here.endswith("/" + named))


def places(frame):
    """The line of the user's own code, and that of the library below it."""
    library = None
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file):
            return (file, frame.f_lineno), library
        if library is None and not is_ours(file):
            library = (file, frame.f_lineno)
        frame = frame.f_back
    return None, library
