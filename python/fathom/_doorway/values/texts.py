"""Numbers that leave as text and come back at once, as in `float(f"{loss:.3f}")`."""

import dis
import functools

# What makes a number of a text.
READERS = {"float", "int", "Decimal", "float64", "float32"}
# How Python brings what is called.
NAMES = {"LOAD_GLOBAL", "LOAD_NAME", "LOAD_FAST", "LOAD_DEREF", "LOAD_ATTR", "LOAD_METHOD"}


def is_read_back(frame):
    """Whether the text that is being made in this frame is a reader's argument."""
    return frame is not None and _is_read_back(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=1024)
def _is_read_back(code, place):
    """By where each instruction stands in the source: the call that the text stands in, and who is called there."""
    if not hasattr(code, "co_positions"):
        return False  # Python 3.10 does not say
    spans = {at: (span[0], span[2], span[1], span[3]) for at, span in zip(range(0, len(code.co_code), 2), code.co_positions())}
    here = spans.get(place)
    if here is None or None in here:
        return False
    steps = [(step, spans[step.offset]) for step in dis.get_instructions(code) if None not in spans[step.offset]]
    calls = [span for step, span in steps if step.opname == "CALL" and span != here and is_around(span, here)]
    if not calls:
        return False
    nearest = max(calls)[:2]  # that which begins last; who is called stands where it begins
    return any(step.argval in READERS for step, span in steps if step.opname in NAMES and span[:2] == nearest)


def is_around(outer, inner):
    """Spans are (line, column, last line, last column)."""
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]
