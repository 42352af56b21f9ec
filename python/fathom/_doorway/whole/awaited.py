"""Evaluations that the script's own text has, and that it has not come to: what they take is not known.

A line counts that puts a model into evaluation mode, `model.eval()`, in the file that was started or in another of the
user's that is imported. The branch of a mode that was not asked for, and functions that nothing else names, are not waited
for.
"""

import functools
import os
import sys

import torch

from ... import contract
from .. import border
from ..file_owner import is_library, is_ours
from .text import Text

EVALUATIONS = border.Party("evaluations that were not reached may be missing from the report")


class Awaited:
    def __init__(self):
        self.reached = set()  # (file, line): of every call around one of `eval`
        self.texts = {}  # file -> Text
        self.modules = 0  # that were there when texts were read last
        self.over = set()  # (file, line) of ways that were not taken
        self.running = {None}  # functions that run; `None` is what stands outside of all

    def install(self):
        EVALUATIONS.around(torch.nn.Module, "eval", before=self.note)

    def note(self, *_):
        self.reached.update(place(frame) for frame in users(sys._getframe(1)))

    def is_open(self):
        return bool(self.sites())

    def look(self):
        """Notes where the script is."""
        EVALUATIONS.contain("a look at the script's text", self.follow, sys._getframe(1))

    def sites(self):
        """`contract.site` of each that was not reached, by the last look."""
        return EVALUATIONS.contain("a look at the script's text", self.unreached) or []

    def follow(self, frame):
        if self.modules != len(sys.modules):
            self.read_texts()
        self.over, self.running, is_in_loop = set(), {None}, False
        for each in reversed(list(users(frame))):
            file, line = place(each)
            function = each.f_code.co_name
            self.running.add(function)
            if file not in self.texts or is_in_loop:
                continue  # what is called again and again may take another way then
            ranges, is_in_loop = self.texts[file].over(function, line)
            self.over.update((file, number) for first, last in ranges for number in range(first, last + 1))

    def read_texts(self):
        self.modules = len(sys.modules)
        main = getattr(sys.modules.get("__main__"), "__file__", None)
        for file in {getattr(module, "__file__", None) for module in list(sys.modules.values())} - {None}:
            path = full(file)
            if file.endswith(".py") and path not in self.texts and not is_library(file):
                self.texts[path] = Text(file, file == main)

    def unreached(self):
        named = self.named()
        return [
            contract.site(file=file, line=line)
            for file, text in sorted(self.texts.items())
            for function, line, last in text.evaluations
            if function in named and (file, line) not in self.over
            if not any((file, each) in self.reached for each in range(line, last + 1))
        ]

    def named(self):
        """Functions that may run: those that run now, and all that they name in what is not over, and so on."""
        named, found = set(), set(self.running)
        while named != found:
            named = set(found)
            for file, text in self.texts.items():
                found.update(word for word, function, line in text.names if function in named and (file, line) not in self.over)
        return named


def place(frame):
    return full(frame.f_code.co_filename), frame.f_lineno


@functools.cache
def full(file):
    return os.path.abspath(file)


def users(frame):
    """Frames of the user's own code, innermost first."""
    while frame is not None:
        file = frame.f_code.co_filename
        if not is_library(file) and not is_ours(file):
            yield frame
        frame = frame.f_back
