"""The way from the first call of a model to the backward pass, as statements of one block of the user's."""

import ast
import threading
import tokenize
from collections.abc import Mapping

import torch

from . import Blocked
from .places import locals_of, user_frames
from .source import is_inside, own_nodes, source_of


class Passage:
    """Statements `first` to `last` of a block; `last` is the one before the backward pass, or that itself."""

    def __init__(self, source, scope, block, begin, end, variables):
        self.source, self.scope = source, scope
        self.block, self.begin, self.end = block, begin, end
        self.variables = variables  # first sizes of what the frame held when the model was called

    def statements(self, through_backward=False):
        return self.block[self.begin : self.end + 1 if through_backward else self.end]

    def wrapped(self, edits, header, through_backward=False, without=()):
        """Puts the statements into a block of their own, below `header`; those `without` have gone elsewhere."""
        statements = self.statements(through_backward)
        source = self.source
        margin = source.indentation(statements[0])
        source.after(statements[-1])
        first, last = statements[0].lineno, statements[-1].end_lineno
        for kind, text, begin, stop in source.tokens:
            is_inside = source.starts[first - 1] <= begin and stop <= source.starts[last]
            if is_inside and "\n" in text and kind not in (tokenize.NL, tokenize.NEWLINE):
                raise Blocked(source.place(first), "a text of several lines stands in it, which would be moved")
        unit = "\t" if margin.startswith("\t") else "    "
        start = source.starts[first - 1]
        edits.note(source, start, start, "".join(margin + line + source.newline for line in header) + unit)
        gone = {line for each in without for line in range(each.lineno, each.end_lineno + 1)}
        for line in range(first + 1, last + 1):
            if source.lines[line - 1].strip() and line not in gone:
                edits.note(source, source.starts[line - 1], source.starts[line - 1], unit)

    def place(self):
        return self.source.place(self.block[self.begin].lineno)


def follow(outcome, then):
    """`then(passage or Blocked)` at the first backward pass behind a call of a model; gives what undoes it."""
    local, waiting = threading.local(), [then]

    def called(*_):
        is_recomputed = torch._C._current_graph_task_id() != -1
        if waiting and getattr(local, "frames", None) is None and torch.is_grad_enabled() and not is_recomputed:
            local.frames = [(id(frame), frame.f_code, frame.f_lineno, sizes(frame)) for frame in user_frames()]

    def passes(*_):
        frames, local.frames = getattr(local, "frames", None), None
        if waiting and frames is not None:
            act = waiting.pop()
            try:
                act(passage_of(frames, [(id(frame), frame.f_code, frame.f_lineno) for frame in user_frames()]))
            except Blocked as why:
                act(why)

    undo = [
        outcome.party.around(torch.nn.Module, "__call__", before=called),
        outcome.party.around(torch.autograd, "backward", before=passes),
    ]
    return lambda: [inverse() for inverse in reversed(undo)]


def sizes(frame):
    """First sizes of the tensors that a frame's variables hold: {name: (whether it is a dictionary of such, size)}. No
    frame and no tensor is kept: that would keep memory from being freed."""
    found = {}
    for name, value in locals_of(frame).items():
        if isinstance(value, torch.Tensor) and value.dim() and not value.requires_grad:
            found[name] = (False, value.shape[0])
        elif isinstance(value, Mapping) and value and all(isinstance(each, torch.Tensor) for each in value.values()):
            first = {each.shape[0] if each.dim() else 0 for each in value.values()}
            if len(first) == 1:
                found[name] = (True, first.pop())
    return found


def passage_of(called, passed):
    """The innermost function that was running both times."""
    common = [
        (code, line, variables, later)
        for number, code, line, variables in called
        for other, running, later in passed
        if number == other and code is running
    ]
    if not common:
        raise Blocked("", "model and backward pass are called by different functions")
    code, line, variables, later = common[-1]
    source = source_of(code.co_filename)
    scope = source.scope(code)
    for each in (line, later):
        if source.is_shared(scope, each):
            raise Blocked(source.place(each), "several statements stand on this line: give each a line of its own")
    first, last = source.statement(scope, line), source.statement(scope, later)
    for block in blocks(source, first, scope):
        inner = [index for index, statement in enumerate(block) if is_inside(first, statement)]
        outer = [index for index, statement in enumerate(block) if is_inside(last, statement)]
        if inner and outer:
            if inner[0] == outer[0]:
                raise Blocked(source.place(line), "model and backward pass are called by one statement")
            if outer[0] < inner[0]:
                raise Blocked(source.place(line), "the backward pass stands before the call of the model")
            return Passage(source, scope, block, inner[0], outer[0], variables)
    raise Blocked(source.place(line), "model and backward pass stand in different blocks")


def blocks(source, statement, scope):
    """The blocks around a statement, the innermost first."""
    for node in source.ancestors(statement):
        if node is scope:
            return
        if isinstance(node, ast.stmt):
            yield source.block_of(node)


def names_read(statements):
    return {
        node.id
        for statement in statements
        for node in ast.walk(statement)
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }


def bound_in_loop(passage):
    """Names that get their value in the loop around the passage, and so with every batch."""
    for outer in passage.source.ancestors(passage.block[passage.begin]):
        if outer is passage.scope:
            break
        if isinstance(outer, (ast.For, ast.AsyncFor, ast.While)):
            stored = (node for node in ast.walk(outer) if isinstance(node, ast.Name))
            return {node.id for node in stored if isinstance(node.ctx, ast.Store)}
    return set()


def names_read_later(passage):
    """Names that the rest of the function reads behind the passage, before it begins anew."""
    last = passage.block[passage.end]
    end = (last.end_lineno, last.end_col_offset)
    later = [node for node in own_nodes(passage.scope) if isinstance(node, ast.Name) and end < (node.lineno, node.col_offset)]
    setting = [node for node in later if isinstance(node.ctx, ast.Store)]
    reading = [node for node in later if isinstance(node.ctx, ast.Load)]
    return {node.id for node in reading if not any(is_set_by(passage.source, node, other) for other in setting)}


def is_set_by(source, reading, setting):
    """Whether a name surely has the value that it gets at `setting` when it is read."""
    if reading.id != setting.id:
        return False
    statement = next(each for each in source.ancestors(setting) if isinstance(each, ast.stmt))
    if isinstance(statement, (ast.For, ast.AsyncFor)):
        return any(is_inside(reading, each) for each in statement.body)
    if not isinstance(statement, ast.Assign) or is_inside(reading, statement):
        return False
    block = source.block_of(statement)
    return any(is_inside(reading, each) for each in block[block.index(statement) + 1 :])
