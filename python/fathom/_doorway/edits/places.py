"""Where a model stands in the user's text: the variable that holds it, and the statement that gives it its value."""

import ast
import inspect
import sys

import torch

from ..file_owner import is_library, is_ours
from . import Blocked
from .source import own_nodes, source_of

# Objects of the script's that hold models, and their attributes, are looked into so far.
ATTRIBUTES = 200


def user_frames():
    """Frames of the user's own code, the outermost first."""
    frames, frame = [], sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_ours(name) and not is_library(name):
            frames.append(frame)
        frame = frame.f_back
    return frames[::-1]


def locals_of(frame):
    """A frame's variables. Before Python 3.13 a function's frame keeps the dictionary that it was asked for, and with it
    tensors that the function drops: it is emptied."""
    found = dict(frame.f_locals)
    if frame.f_code.co_flags & inspect.CO_OPTIMIZED and sys.version_info < (3, 13):
        frame.f_locals.clear()
    return found


def value_of(node, frame):
    """What a name or its attribute holds; nothing is called for it but the attributes of modules."""
    if isinstance(node, ast.Name):
        return locals_of(frame).get(node.id, frame.f_globals.get(node.id))
    if isinstance(node, ast.Attribute):
        owner = value_of(node.value, frame)
        if isinstance(owner, torch.nn.Module):
            return getattr(owner, node.attr, None)
        return getattr(owner, "__dict__", {}).get(node.attr)
    return None


class Place:
    """A model as an expression, and the statement behind which it holds."""

    def __init__(self, source, expression, statement):
        self.source, self.expression, self.statement = source, expression, statement

    def write(self, edits, lines):
        self.source.lines_after(edits, self.statement, lines)


def place_of(module):
    """Of a module, called by any name that one of the script's frames has for it or for what contains it."""
    blocked = None
    for depth in (0, 1):  # variables first, then attributes of objects
        for frame in user_frames():
            for name, value in locals_of(frame).items():
                found = held(value, module, depth)
                if found is None or not name.isidentifier():
                    continue
                try:
                    return of_variable(frame, name, value, found)
                except Blocked as why:
                    blocked = blocked or why
    raise blocked or Blocked("", f"no variable of the script holds the {type(module).__name__}")


def held(value, module, depth):
    """How a value is written on to get to a module: `""`, `.module`, `.net`; `None` if it does not hold it."""
    if isinstance(value, torch.nn.Module):
        return path_to(value, module) if depth == 0 else None
    attributes = getattr(value, "__dict__", None)
    if depth == 0 or not isinstance(attributes, dict) or isinstance(value, (type, type(sys))):
        return None
    for name, inner in list(attributes.items())[:ATTRIBUTES]:
        if isinstance(inner, torch.nn.Module) and name.isidentifier():
            path = path_to(inner, module)
            if path is not None:
                return f".{name}{path}"
    return None


def path_to(outer, module):
    if outer is module:
        return ""
    for path, inner in outer.named_modules():
        if inner is module:
            return attributes_of(outer, path)
    return None


def attributes_of(outer, path):
    """`.encoder.layers[3].attention` of `encoder.layers.3.attention`."""
    text = ""
    for name in path.split(".") if path else ():
        is_list = isinstance(outer, (torch.nn.Sequential, torch.nn.ModuleList))
        if is_list and name.isdigit():
            text += f"[{name}]"
        elif isinstance(outer, torch.nn.ModuleDict):
            text += f"[{name!r}]"
        elif name.isidentifier():
            text += f".{name}"
        else:
            text += f".get_submodule({name!r})"
        outer = outer._modules[name]
    return text


def of_variable(frame, name, value, path):
    source = source_of(frame.f_code.co_filename)
    scope = source.scope(frame.f_code)
    running = source.statement(scope, frame.f_lineno)
    first = path.split(".")[1].split("[")[0] if path.startswith(".") else None
    if name == "self" and not isinstance(value, torch.nn.Module) and first:
        return of_attribute(value, first, path)
    path_to_running = list(source.ancestors(running))
    found = None
    for node in own_nodes(scope):
        if not (isinstance(node, ast.stmt) and name in bound_by(node)) or running.lineno <= node.end_lineno:
            continue
        # The statement of the running line's blocks that the assignment is part of: behind it, it has happened.
        for outer in source.ancestors(node):
            if isinstance(outer, ast.stmt) and any(
                outer in block for block in blocks_of(path_to_running, source)
            ):
                if found is None or found.end_lineno < outer.end_lineno:
                    found = outer
                break
    if found is None:
        raise Blocked(source.place(frame.f_lineno), f"`{name}` gets its value somewhere else")
    if isinstance(found, (ast.For, ast.While)) or is_in_loop(source, found, scope):
        raise Blocked(source.place(found.lineno), f"`{name}` gets its value in a loop")
    return Place(source, name + path, found)


def blocks_of(path, source):
    for node in path:
        if isinstance(node, ast.stmt):
            yield source.block_of(node)


def is_in_loop(source, statement, scope):
    outer = source.parents.get(statement)
    while outer is not None and outer is not scope:
        if isinstance(outer, (ast.For, ast.While)):
            return True
        outer = source.parents.get(outer)
    return False


def of_attribute(owner, name, path):
    """`self.model`: behind the statement of its class that sets it."""
    for kind in type(owner).__mro__:
        module = sys.modules.get(kind.__module__)
        file = getattr(module, "__file__", None)
        if file is None or is_library(file):
            continue
        source = source_of(file)
        for node in ast.walk(source.tree):
            if not (isinstance(node, ast.ClassDef) and node.name == kind.__name__):
                continue
            for method in node.body:
                if not isinstance(method, ast.FunctionDef):
                    continue
                setting = [each for each in own_nodes(method) if isinstance(each, ast.stmt) and f"self.{name}" in bound_by(each)]
                setting = [each for each in setting if each in method.body]
                if setting:
                    return Place(source, "self" + path, max(setting, key=lambda each: each.lineno))
    raise Blocked("", f"no method of {type(owner).__name__} sets `self.{name}` by itself")


def bound_by(statement):
    """Names that a statement gives a value."""
    targets = []
    if isinstance(statement, ast.Assign):
        targets = statement.targets
    elif isinstance(statement, (ast.AnnAssign, ast.AugAssign)) and statement.value is not None:
        targets = [statement.target]
    elif isinstance(statement, (ast.With, ast.AsyncWith)):
        targets = [item.optional_vars for item in statement.items if item.optional_vars is not None]
    found = set()
    for target in targets:
        for node in ast.walk(target):
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                found.add(node.id)
            elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store) and isinstance(node.value, ast.Name):
                found.add(f"{node.value.id}.{node.attr}")
    return found
