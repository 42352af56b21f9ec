"""Calls in the user's text: which one is running, and the same with other arguments."""

import ast
import itertools
import sys

import torch

from ..file_owner import is_library, is_ours
from . import Blocked
from .places import locals_of
from .source import source_of

# Between a call of a module and what its forward pass calls.
MODULES = (torch.nn.Module._call_impl.__code__.co_filename, torch.nn.CrossEntropyLoss.forward.__code__.co_filename)

# Arguments of optimizers that say what a step is.
MEANINGFUL = ("maximize", "amsgrad", "nesterov")


def caller(made=None):
    """The frame that called what we stand in the place of, or that makes the object `made`; `Blocked` if that is a
    library's."""
    frame = sys._getframe(1)
    while frame is not None and is_between(frame, made):
        frame = frame.f_back
    if frame is None:
        raise Blocked("", "nobody called it")
    if is_library(frame.f_code.co_filename):
        own = frame
        while own is not None and is_library(own.f_code.co_filename):
            own = own.f_back
        place = f"{own.f_code.co_filename}:{own.f_lineno}" if own is not None else ""
        raise Blocked(place, f"it is made inside of a library, in `{frame.f_globals.get('__name__', '?')}`")
    return frame


def is_between(frame, made):
    """Ours, or part of the making of an object: its `__init__`, or that of a class which it comes from."""
    name = frame.f_code.co_filename
    if is_ours(name) or name in MODULES:
        return True
    if made is None or not frame.f_code.co_varnames:
        return False
    return locals_of(frame).get(frame.f_code.co_varnames[0]) is made


class Call:
    """A call that is running, as it stands in its file."""

    def __init__(self, frame):
        self.source = source_of(frame.f_code.co_filename)
        self.node = self.find(frame)
        self.line = self.node.lineno

    def find(self, frame):
        calls = [node for node in ast.walk(self.source.tree) if isinstance(node, ast.Call)]
        if hasattr(frame.f_code, "co_positions"):
            where = next(itertools.islice(frame.f_code.co_positions(), frame.f_lasti // 2, None))
            for node in calls:
                if (node.lineno, node.end_lineno, node.col_offset, node.end_col_offset) == where:
                    return node
        near = [node for node in calls if node.lineno <= frame.f_lineno <= node.end_lineno]
        if len(near) != 1:
            raise Blocked(self.source.place(frame.f_lineno), "it is not clear which call of this line it is")
        return near[0]

    def blocked(self, why):
        return Blocked(self.source.place(self.line), why)

    def spans(self):
        """Where each argument begins and ends, without the blanks around it, and the closing bracket."""
        opening, end = self.source.end(self.node.func), self.source.end(self.node)
        depth, spans, current = 0, [], None
        for _, text, begin, stop in self.source.tokens:
            if begin < opening or end < stop:
                continue
            if text in "([{" and text:
                depth += 1
                if depth == 1:
                    continue
            elif text in ")]}":
                depth -= 1
            if depth == 0 or depth == 1 and text == ",":
                if current is not None:
                    spans.append(tuple(current))
                current = None
                if depth == 0:
                    return spans, begin
                continue
            current = [begin, stop] if current is None else [current[0], stop]
        raise self.blocked("its brackets do not match")

    def arguments(self):
        """(keyword or None, begin, end, node) in the order in which they are written."""
        keywords = list(self.node.keywords)
        nodes = [(None, node) for node in self.node.args] + [(each.arg or "**", each) for each in keywords]
        spans, closing = self.spans()
        if len(spans) != len(nodes):
            raise self.blocked("its arguments cannot be told apart")
        nodes.sort(key=lambda row: self.source.begin(row[1].value if row[0] and row[0] != "**" else row[1]))
        return [(name, *span, node) for (name, node), span in zip(nodes, spans)], closing

    def change(self, edits, keywords=None, without=(), names=(), given=(), function=None):
        """Other keyword arguments (`{name: text}`, or a function of the text that stands there), without some; `names` are
        those of its positional ones, `given` those that it was called with."""
        arguments, closing = self.arguments()
        source, written = self.source, set()
        position = 0
        waiting = dict(keywords or {})
        last = self.source.end(self.node.func)
        remains = []
        for name, begin, end, node in arguments:
            if name is None:
                if isinstance(node, ast.Starred):
                    position = None
                elif position is not None:
                    name, position = (names[position] if position < len(names) else None), position + 1
                    if name in waiting:
                        edits.note(source, begin, end, written_as(waiting.pop(name), source.code(begin, end)))
                    elif name in without:
                        raise self.blocked(f"`{name}` is given by its place")
            elif name in waiting:
                start = source.raw.index(b"=", begin) + 1
                blank = len(source.raw[start:end]) - len(source.raw[start:end].lstrip())
                edits.note(source, start + blank, end, written_as(waiting.pop(name), source.code(start + blank, end)))
            written.add(name)
            remains.append((name, begin, end))
        hidden = [name for name in given if (name in waiting or name in without) and name not in written]
        if hidden:
            raise self.blocked(f"`{hidden[0]}` does not stand in the call: it comes with `**`")
        self.leave_out(edits, remains, without, closing)
        if function is not None:
            edits.note(source, source.begin(self.node.func), last, function)
        self.append(edits, remains, waiting, closing)

    def leave_out(self, edits, arguments, without, closing):
        for index, (name, begin, end) in enumerate(arguments):
            if name in without:
                is_last = index + 1 == len(arguments)
                before = arguments[index - 1][2] if index and is_last else begin
                after = end if is_last else arguments[index + 1][1]
                edits.note(self.source, before, after, "")

    def append(self, edits, arguments, keywords, closing):
        if not keywords:
            return
        text = ", ".join(f"{name}={written_as(value, '')}" for name, value in keywords.items())
        if not arguments:
            edits.note(self.source, closing, closing, text)
            return
        if len(self.node.args) == 1 and isinstance(self.node.args[0], ast.GeneratorExp):
            generator = self.node.args[0]
            if self.source.end(generator) == self.source.end(self.node):
                raise self.blocked("a generator stands in it without brackets")
        end = arguments[-1][2]
        edits.note(self.source, end, end, ", " + text)


def written_as(value, before):
    return value(before) if callable(value) else value


def with_keywords(edits, keywords, without=(), given=(), names=(), made=None):
    """The call that is running, or that makes an object, with other keyword arguments."""
    Call(caller(made)).change(edits, keywords, without, names, given)


def with_function(edits, function, keeps, made):
    """The call that makes an object, of something else: with the same arguments as far as that has them."""
    call = Call(caller(made))
    lost = [each.arg for each in call.node.keywords if each.arg in MEANINGFUL and each.arg not in keeps]
    if lost:
        raise call.blocked(f"`{lost[0]}` would be lost")
    words = [name for name, *_ in call.arguments()[0] if name not in keeps and name is not None]
    if "**" in words:
        raise call.blocked("some of its arguments come with `**`")
    call.change(edits, without=words, names=keeps, function=function)
    call.source.imports(edits, f"import {function.rpartition('.')[0]}")
