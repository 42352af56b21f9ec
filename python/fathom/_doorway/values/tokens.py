"""Tokens that nobody knows, as a script sees them."""

import dis
import sys

# Instructions of Python's by which a script asks whether a token is another one. All else, as a look into a dictionary of
# characters, goes by the number.
ASKS = {dis.opmap[name] for name in ("COMPARE_OP", "CONTAINS_OP", "IS_OP")}


class Token(int):
    """A token that nobody knows: a number like any other, and none that a script looks for."""

    def __eq__(self, other):
        return self is other or (not is_asked(sys._getframe(1)) and int(self) == other)

    def __ne__(self, other):
        return not (self is other or (not is_asked(sys._getframe(1)) and int(self) == other))

    __hash__ = int.__hash__

    def __reduce__(self):
        return int, (int(self),)


def is_asked(frame):
    return frame.f_code.co_code[frame.f_lasti] in ASKS


def as_tokens(value):
    """The same numbers, as tokens that are equal to none."""
    return [as_tokens(each) for each in value] if isinstance(value, list) else Token(value)
