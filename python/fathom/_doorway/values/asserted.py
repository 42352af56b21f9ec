"""Assertions: a script that goes on says itself which way a truth goes that nobody knows.

`assert (boxes[:, 2:] >= boxes[:, :2]).all()` either holds or ends the script, and what a script needs that ends there is
no answer. So it holds, and nothing depends on it.
"""

import dis
import functools

from ..file_owner import is_ours

# What Python loads to fail an assertion; the second is the name since Python 3.14.
FAILS = ("LOAD_ASSERTION_ERROR", "LOAD_COMMON_CONSTANT")


def wanted(frame):
    """The truth with which an assertion goes on that asks for it now; `None` if the script asks for something else."""
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    return None if frame is None else wanted_at(frame.f_code, frame.f_lasti)


@functools.lru_cache(maxsize=1024)
def wanted_at(code, at):
    """By the jump that comes of the truth: one of its two ways fails the assertion."""
    instructions = list(dis.get_instructions(code))
    places = {instruction.offset: index for index, instruction in enumerate(instructions)}
    index = places.get(at)
    if index is not None and instructions[index].opname == "TO_BOOL":
        index += 1
    if index is None or "POP_JUMP" not in instructions[index].opname or "NONE" in instructions[index].opname:
        return None
    jump = instructions[index]
    jumps_if = "IF_TRUE" in jump.opname
    if fails(instructions, index + 1):
        return jumps_if
    if fails(instructions, places.get(jump.argval)):
        return not jumps_if
    return None


def fails(instructions, index):
    """Whether an assertion fails there."""
    rest = instructions[index:] if index is not None else []
    first = next((one for one in rest if one.opname not in ("NOT_TAKEN", "NOP", "CACHE")), None)
    return first is not None and first.opname in FAILS and (first.opname == FAILS[0] or "AssertionError" in first.argrepr)
