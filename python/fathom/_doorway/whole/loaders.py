"""Makes an epoch short: a pass over a DataLoader ends after so many batches, and its length says so.

The last batch of a pass is the largest one that was found, where sizes vary: by then the optimizer has its state, which is
when a large batch hurts.
"""

import itertools
import math
import random
import sys
import time
import weakref

import torch
from torch.utils.data import DataLoader, IterableDataset
from torch.utils.data.dataloader import _BaseDataLoaderIter

from ... import contract
from .. import border
from ..card_memory import allocated
from . import items
from .sizes import Sizes, shapes

LOADERS = border.Party("data loaders may not be shortened")

# Batches of a loader whose sizes are looked at before it gives the first, and the seconds that this may take; then as long
# at single items.
LOOKED_AT, SECONDS = 32, 3.0

# Batches of a pass without gradients, or before anything is run backward: enough to see whether each leaves something behind.
EVALUATED = 4


# After so many passes one of a single step is enough, if something that comes later is waited for. Where steps are quick,
# 500 are seen before: many a script evaluates after so many.
SEEN, SEEN_IF_QUICK, QUICK = 2, 10, 50

# Batches that are shuffled, and those whose sizes are noted.
SHUFFLED, MOST_SIZES = 100_000, 1000


class Known:
    """What is known of one loader."""

    def __init__(self, loader, length):
        self.length = length  # batches of a pass, as the script has it; None if it does not say so
        self.is_stream = isinstance(loader.dataset, IterableDataset)
        self.sizes = Sizes()
        self.is_evaluation = False
        self.has_trained = False  # a loader that does both keeps the length of its training
        self.given = self.passes = self.grows = 0
        self.sizes_given = []  # where batches come in another order: the largest tensor of each
        self.was_largest_given = False


class Pass:
    """One iteration over a loader."""

    def __init__(self, known, backward_passes, batches):
        self.known = known
        self.batches = batches
        self.backward_passes = backward_passes  # the script's own count, in a list
        self.before = backward_passes[0]
        self.given = 0
        self.memory = []  # allocated before each batch
        self.is_over = False

    def trains(self):
        return self.before < self.backward_passes[0]

    def note_memory(self):
        if not self.trains() and torch.cuda.is_initialized():
            self.memory.append(allocated())

    def end(self):
        if self.is_over:
            return
        self.is_over = True
        self.known.passes += 1
        # Gradients may be switched off for each batch alone: what matters is that nothing was run backward.
        self.known.is_evaluation |= self.given > 0 and not self.trains()
        if self.known.is_evaluation:
            self.note_memory()
            # The first batch also makes what the next ones use again.
            grown = [after - before for before, after in zip(self.memory[1:], self.memory[2:], strict=False)]
            self.known.grows = max(self.known.grows, min(grown)) if len(grown) > 1 and min(grown) > 0 else self.known.grows


class Shuffled:
    """Batches of a loader, by their items, in another order; of a sampler that never ends, the first ones."""

    def __init__(self, theirs, seed):
        self.theirs, self.seed = theirs, seed

    def __iter__(self):
        batches = iter(self.theirs)
        first = list(itertools.islice(batches, SHUFFLED))
        random.Random(self.seed).shuffle(first)
        yield from first
        yield from batches

    def __len__(self):
        return len(self.theirs)


class Loaders:
    def __init__(self, asked, awaited):
        self.batches, self.of_step = asked["batches"], asked["of_step"]
        self.order = asked["order"]  # a seed, if batches come in another order than the script's
        self.awaited = awaited
        self.known = weakref.WeakKeyDictionary()  # by loader
        self.passes = weakref.WeakKeyDictionary()  # by iterator
        self.all = []  # what is known outlives its loader
        self.seconds = SECONDS
        self.looked = 0.0  # seconds that looks have taken
        self.passes_of = [0]  # backward passes of the script so far, first in the list

    def install(self):
        LOADERS.instead(DataLoader, "__len__", self.length)
        LOADERS.instead(DataLoader, "__iter__", self.iterate)
        LOADERS.instead(_BaseDataLoaderIter, "__next__", self.give)
        if self.order is not None:
            theirs = DataLoader._index_sampler
            border.exchange(DataLoader, "_index_sampler", property(lambda loader: self.sampler(theirs, loader)))

    def sampler(self, theirs, loader):
        """Epochs differ, as they do where a loader shuffles; an evaluation keeps its order."""
        sampler, known = theirs.__get__(loader), self.known.get(loader)
        if known is None or known.is_stream or not torch.is_grad_enabled():
            return sampler
        return Shuffled(sampler, self.order * 1000 + known.passes)

    def epochs(self):
        """Passes of the loader that trains, to their end; `None` if nothing was read from a loader."""
        training = [known for known in self.all if not known.is_evaluation and known.given]
        return max((known.passes for known in training), default=None)

    def length(self, theirs):
        def call(loader):
            known = self.known.get(loader)
            only_evaluates = known is not None and known.is_evaluation and not known.has_trained
            return min(theirs(loader), EVALUATED if only_evaluates else self.batches)

        return call

    def iterate(self, theirs):
        def call(loader):
            known = self.known.get(loader) or LOADERS.contain("a look at a loader", self.look_at, loader)
            iterator = theirs(loader)
            if known is not None:
                batches = LOADERS.contain("the length of a pass", self.batches_of, known) or self.batches
                self.passes[iterator] = Pass(known, self.passes_of, batches)
            return iterator

        return call

    def batches_of(self, known):
        """Of the next pass."""
        if known.passes < (SEEN_IF_QUICK if QUICK * self.of_step <= self.batches else SEEN):
            return self.batches
        self.awaited.look()
        return self.of_step if self.awaited.is_open() else self.batches

    def look_at(self, loader):
        """Looks through the first batches of a loader, before the script gets one. Random numbers stay where they were."""
        known = self.known[loader] = Known(loader, true_length(loader))
        self.all.append(known)
        if known.is_stream or (known.length is not None and known.length <= 1):
            return known
        chance = Chance(loader)
        begun = time.monotonic()
        try:
            self.look_at_batches(loader, known, begun + self.seconds)
            if self.order is None and not known.sizes.is_on_card and known.sizes.looked_at + 1 < (known.length or 0):
                items.look(loader, known.sizes, time.monotonic() + self.seconds)
        except Exception as error:  # the script meets it in its own way
            border.keep_theirs(error)
        finally:
            chance.restore(loader)
        took = time.monotonic() - begun
        self.seconds, self.looked = max(0.5, self.seconds - took), self.looked + took
        return known

    def look_at_batches(self, loader, known, until):
        iterator = loader._get_iterator()
        while known.sizes.looked_at < LOOKED_AT and time.monotonic() < until:
            batch = next(iterator, None)
            if batch is None:
                break
            # The last one is often a smaller rest.
            if known.sizes.looked_at + 1 != known.length or known.length <= 2:
                known.sizes.look(batch)
            if known.sizes.is_on_card:
                break

    def give(self, theirs):
        def call(iterator):
            now = self.passes.get(iterator)
            if now is None:
                return theirs(iterator)
            known = now.known
            known.has_trained |= now.trains()
            known.is_evaluation = not torch.is_grad_enabled() or (known.is_evaluation and not now.trains())
            limit = self.limit(now)
            if now.given >= limit:
                now.end()
                raise border.of_script(StopIteration())
            now.note_memory()
            batch = self.largest(now, limit)
            if batch is None:
                try:
                    batch = theirs(iterator)
                except StopIteration:
                    now.end()
                    raise
                if known.is_stream:
                    known.sizes.look(batch)
            if self.order is not None and len(known.sizes_given) < MOST_SIZES:
                known.sizes_given.append(max(shapes(batch).values(), key=math.prod, default=()))
            now.given += 1
            known.given = max(known.given, now.given)
            return batch

        return call

    def limit(self, now):
        """Batches of this pass. Two steps may show a training; what an evaluation keeps of each batch takes more."""
        if not torch.is_grad_enabled():
            return EVALUATED
        return now.batches if now.trains() else max(EVALUATED, now.batches)

    def largest(self, now, limit):
        """For the last place of a pass that would not come to it by itself. Who reads ahead comes to the last place of a
        training before anything has trained."""
        known = now.known
        is_short = known.length is not None and known.length <= limit
        is_last = now.given + 1 in (limit, now.batches)
        if self.order is not None or is_short or not is_last or known.sizes.batch is None or known.sizes.varying() is None:
            return None
        batch = LOADERS.contain("the largest batch", known.sizes.copy)
        known.was_largest_given = batch is not None
        return batch

    def facts(self):
        return [facts(known) for known in self.all if known.given]


def facts(known):
    place, smallest, largest = known.sizes.varying() or (None, (), ())
    return contract.loader(
        is_evaluation=known.is_evaluation,
        batches=known.length,
        given=known.given,
        passes=known.passes,
        looked_at=known.sizes.looked_at,
        varies=place,
        smallest=list(smallest),
        largest=list(largest),
        was_largest_given=known.was_largest_given or (known.length is not None and known.given >= known.length),
        sizes_given=[list(shape) for shape in known.sizes_given],
        grows_bytes=known.grows,
    )


def true_length(loader):
    """Batches of a pass; `None` if the script does not say."""
    try:
        if isinstance(loader.dataset, IterableDataset):
            return None
        return len(loader._index_sampler)
    except (TypeError, NotImplementedError, AttributeError):
        return None


class Chance:
    """Where random numbers are."""

    def __init__(self, loader):
        self.torch, self.python = torch.get_rng_state(), random.getstate()
        self.own = loader.generator.get_state() if loader.generator is not None else None
        numpy = sys.modules.get("numpy")
        self.numpy = numpy.random.get_state() if numpy is not None else None

    def restore(self, loader):
        torch.set_rng_state(self.torch)
        random.setstate(self.python)
        if self.own is not None:
            loader.generator.set_state(self.own)
        if self.numpy is not None:
            sys.modules["numpy"].random.set_state(self.numpy)
