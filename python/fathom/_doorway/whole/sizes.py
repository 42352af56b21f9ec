"""How large batches are: every tensor or array in one, by its place."""

import copy
import math
from collections.abc import Mapping

# A batch is looked at so deep, and so many of its tensors are.
DEEP, MOST = 4, 1000


def shapes(batch):
    """{place: shape}."""
    found = {}
    walk(batch, "", DEEP, found)
    return found


def walk(part, place, deep, found):
    if len(found) >= MOST:
        return
    shape = getattr(part, "shape", None)
    if isinstance(shape, tuple):
        found[place or "batch"] = tuple(int(size) for size in shape)
    elif deep and isinstance(part, Mapping):
        for key, inner in part.items():
            walk(inner, f"{place}.{key}" if place else str(key), deep - 1, found)
    elif deep and isinstance(part, (list, tuple)):
        for index, inner in enumerate(part):
            walk(inner, f"{place}[{index}]", deep - 1, found)
    elif deep and hasattr(part, "__dict__") and not isinstance(part, type):
        for key, inner in vars(part).items():
            walk(inner, f"{place}.{key}" if place else str(key), deep - 1, found)


def elements(shapes_of):
    return sum(math.prod(shape) for shape in shapes_of.values())


def is_on_card(batch):
    """Whether some tensor of it is on a card already."""
    found = []

    def look(part, deep):
        if getattr(part, "is_cuda", False) is True:
            found.append(part)
        elif deep and isinstance(part, Mapping):
            for inner in part.values():
                look(inner, deep - 1)
        elif deep and isinstance(part, (list, tuple)):
            for inner in part:
                look(inner, deep - 1)

    look(batch, DEEP)
    return bool(found)


class Sizes:
    """The smallest and the largest batch that were met."""

    def __init__(self):
        self.looked_at = 0
        self.smallest = self.largest = None  # their shapes
        self.batch = None  # the largest itself
        self.is_on_card = False

    def look(self, batch):
        self.looked_at += 1
        self.compare(batch)

    def compare(self, batch):
        found = shapes(batch)
        self.is_on_card |= is_on_card(batch)
        if self.smallest is None or elements(found) < elements(self.smallest):
            self.smallest = found
        if self.largest is None or elements(found) > elements(self.largest):
            self.largest = found
            self.batch = None if self.is_on_card else batch
        if self.is_on_card:
            self.batch = None  # it would be held twice

    def varying(self):
        """The tensor that makes the difference, with its shape in the smallest and in the largest batch."""
        smallest, largest = self.smallest or {}, self.largest or {}
        different = [place for place, shape in largest.items() if smallest.get(place, shape) != shape]
        if not different:
            return None
        place = max(different, key=lambda place: math.prod(largest[place]))
        return place, smallest[place], largest[place]

    def copy(self):
        """The largest batch, anew: a script may change what it is given."""
        return copy.deepcopy(self.batch)
