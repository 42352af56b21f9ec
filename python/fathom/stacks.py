"""Call stacks as small numbers: a frame on top of another stack. Nothing of a frame but its code is kept."""

import os


class Stacks:
    """Number 0 is the empty stack."""

    def __init__(self, boundary):
        self.boundary = boundary  # the code of our own wrapper: what lies beyond is known
        self.numbers = {}
        self.entries = [None]
        self.places = {}

    def of(self, frame, known):
        """The stack of a running frame; beyond our wrapper, or if the thread ends there, `known` goes on."""
        boundary, parts = self.boundary, []
        while frame is not None:
            code = frame.f_code
            if code is boundary:
                break
            parts.append((code, frame.f_lasti))
            frame = frame.f_back
        number, numbers = known, self.numbers
        for code, at in reversed(parts):
            # By its address, which is its own since `entries` keeps it: the hash of a code object reads all of it.
            key = (number, id(code), at)
            found = numbers.get(key)
            if found is None:
                found = numbers[key] = len(self.entries)
                self.entries.append((number, code, at))
            number = found
        return number

    def write(self, number, writer, written):
        """The number of a stack in a file; `written` remembers."""
        if number == 0:
            return 0
        found = written.get(number)
        if found is None:
            caller, code, at = self.entries[number]
            below = self.write(caller, writer, written)
            if self.is_our_file(code.co_filename):
                found = below
            else:
                found = writer.stack(code.co_filename, name_of(code), self.line(code, at), below)
            written[number] = found
        return found

    @staticmethod
    def is_our_file(path):
        return path.startswith(OUR_OWN)

    def user_line(self, number):
        """The innermost line of the user's own code, as `train.py:12`; None if there is none."""
        while number:
            number, code, at = self.entries[number]
            if not is_library(code.co_filename):
                return f"{code.co_filename}:{self.line(code, at)}"
        return None

    def line(self, code, at):
        line = self.places.get((id(code), at))
        if line is None:
            lines = (line for start, end, line in code.co_lines() if start <= at < end)
            line = self.places[(id(code), at)] = next(lines, None) or code.co_firstlineno
        return line


STANDARD = os.path.dirname(os.__file__)


def is_library(path):
    """Whether a file is not the user's: installed, of Python itself, generated, or ours."""
    if "site-packages" in path or "dist-packages" in path or path.startswith(("<", OUR_OWN)):
        return True
    return path.startswith(STANDARD)


OUR_OWN = __file__.rpartition("stacks.py")[0]


def name_of(code):
    return getattr(code, "co_qualname", code.co_name)
