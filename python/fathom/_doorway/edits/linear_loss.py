"""A linear layer and the cross entropy of what it gives, as one function that never has all logits at once."""

import ast

import torch

from . import Blocked
from .calls import Call, caller
from .places import locals_of
from .source import own_nodes

# About so many logits are there at once.
PART = 1 << 24

NAME = "linear_cross_entropy"

FUNCTION = '''

def linear_cross_entropy(hidden, head, targets, rows, ignore_index=-100):
    """The mean cross entropy of `head(hidden)`, some rows at a time: all logits are never there at once."""
    hidden, targets = hidden.reshape(-1, hidden.shape[-1]), targets.reshape(-1)

    def part(hidden, targets):
        return torch.nn.functional.cross_entropy(head(hidden), targets, ignore_index=ignore_index, reduction="sum")

    parts = zip(hidden.split(rows), targets.split(rows))
    total = sum(torch.utils.checkpoint.checkpoint(part, *each, use_reentrant=False) for each in parts)
    return total / (targets != ignore_index).sum()
'''

# What only gives the same logits another shape.
SHAPES = ("view", "reshape", "flatten", "transpose", "contiguous", "permute", "mT")


def write(edits, classes, ignore_index):
    """Where the loss is called at this moment."""
    frame = caller()
    call = Call(frame)
    source = call.source
    if len(call.node.args) != 2 or any(each.arg not in ("ignore_index", "reduction") for each in call.node.keywords):
        raise call.blocked("the loss has other arguments")
    scope = source.scope(frame.f_code)
    inner = call.node.args[0]
    while isinstance(inner, ast.Call) and isinstance(inner.func, ast.Attribute) and inner.func.attr in SHAPES:
        inner = inner.func.value
    if isinstance(inner, ast.Call):
        head, removed = inner, None
    elif isinstance(inner, ast.Name):
        head, removed = assigned(source, scope, inner, call)
    else:
        raise call.blocked("the logits are no variable")
    if len(head.args) != 1 or head.keywords or not isinstance(value_of(head.func, frame), torch.nn.Linear):
        raise Blocked(source.place(head.lineno), "the logits do not come straight out of a linear layer")
    layer, hidden = text(source, head.func), text(source, head.args[0])
    targets = call.node.args[1]
    while isinstance(targets, ast.Call) and isinstance(targets.func, ast.Attribute) and targets.func.attr in SHAPES:
        targets = targets.func.value
    words = [hidden, layer, text(source, targets), f"rows={max(1, PART // classes)}"]
    words += [f"ignore_index={ignore_index}"] * (ignore_index != -100)
    edits.note(source, source.begin(call.node), source.end(call.node), f"{NAME}({', '.join(words)})")
    if removed is not None:
        edits.note(source, source.before(removed), source.after(removed), "")
    define(edits, source)


def assigned(source, scope, name, call):
    """The call that gives the variable its value, which only the loss may read."""
    setting, reading = [], []
    inside = {id(node) for node in ast.walk(call.node)}
    for node in own_nodes(scope):
        if isinstance(node, ast.Name) and node.id == name.id:
            if isinstance(node.ctx, ast.Store):
                setting.append(node)
            elif id(node) not in inside:
                reading.append(node)
    if reading:
        raise Blocked(source.place(reading[0].lineno), f"`{name.id}` is read here, too")
    statement = source.parents.get(setting[0]) if len(setting) == 1 else None
    if not isinstance(statement, ast.Assign) or len(statement.targets) != 1 or not isinstance(statement.value, ast.Call):
        raise call.blocked(f"`{name.id}` is not set once, by a call")
    return statement.value, statement


def text(source, node):
    return source.code(source.begin(node), source.end(node))


def value_of(node, frame):
    """What a name or its attribute holds; nothing is called for it."""
    if isinstance(node, ast.Name):
        return locals_of(frame).get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = value_of(node.value, frame)
        return getattr(owner, node.attr, None) if isinstance(owner, torch.nn.Module) else None
    return None


def define(edits, source):
    """The function, behind the imports at the top."""
    last = None
    for statement in source.tree.body:
        if not isinstance(statement, (ast.Import, ast.ImportFrom)) and not is_text(statement):
            break
        last = statement
    at = source.after(last) if last is not None else 0
    if any(isinstance(node, ast.FunctionDef) and node.name == NAME for node in source.tree.body):
        raise Blocked("", f"the file has a function `{NAME}` already")
    source.imports(edits, "import torch.utils.checkpoint")
    edits.note(source, at, at, FUNCTION.replace("\n", source.newline))


def is_text(statement):
    return isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
