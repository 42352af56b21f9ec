"""The largest batch that a data set can name: the items behind the batches of a pass are looked at, one by one."""

import itertools
import math
import time
from collections.abc import Mapping

from torch.utils.data import DataLoader

# An item is looked at so deep.
DEEP = 4

# Batches whose items are looked at, at most.
MOST = 100_000


def look(loader, sizes, until):
    """Looks at items up to that time, and has the batches made that promise to be largest: padded to their longest item,
    or with all items in a row."""
    promises = {}  # by kind: (how much, what to fetch)
    looked_at = 0
    picked, weighed = itertools.tee(itertools.islice(iter(loader._index_sampler), MOST))
    is_batch = loader._auto_collation
    weights = reader(loader, batches=(each if is_batch else [each] for each in weighed), collate=weigh)
    while time.monotonic() < until and (of_items := next(weights, None)) is not None:
        looked_at += 1
        indices = next(picked)
        for kind, promise in (("padded", len(of_items) * max(of_items, default=0)), ("in a row", sum(of_items))):
            if promises.get(kind, (0,))[0] < promise:
                promises[kind] = (promise, indices)
    weights = None  # workers end here
    for indices in {repr(indices): indices for _, indices in promises.values()}.values():
        sizes.compare(next(reader(loader, batches=[indices], collate=loader.collate_fn, is_batch=is_batch)))
    sizes.looked_at = max(sizes.looked_at, looked_at)


def reader(loader, batches, collate, is_batch=True):
    """Reads from the data set as the loader does: where it has processes for that, files may be theirs alone."""
    given = {"batch_sampler": Once(batches)} if is_batch else {"batch_size": None, "sampler": Once(batches)}
    same = {
        "num_workers": min(loader.num_workers, 2),
        "worker_init_fn": loader.worker_init_fn,
        "multiprocessing_context": loader.multiprocessing_context,
    }
    return DataLoader(loader.dataset, collate_fn=collate, **given, **same)._get_iterator()


class Once:
    """What is to be fetched, as a sampler."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def weigh(items):
    return [weight(item) for item in items]


def weight(part, deep=DEEP):
    """Numbers, letters or pixels of an item, before it becomes a part of a batch."""
    if isinstance(part, (str, bytes)):
        return len(part)
    for size in (getattr(part, "shape", None), getattr(part, "size", None)):  # the second is a picture's
        if isinstance(size, tuple):
            return math.prod(size)
    if not deep:
        return 0
    if isinstance(part, Mapping):
        return sum(weight(inner, deep - 1) for inner in part.values())
    if isinstance(part, (list, tuple)):
        is_flat = bool(part) and isinstance(part[0], (int, float))
        return len(part) if is_flat else sum(weight(inner, deep - 1) for inner in part)
    if hasattr(part, "__dict__") and not isinstance(part, type):
        return sum(weight(inner, deep - 1) for inner in vars(part).values())
    return 0
