"""Constants of the user's own files: fields of config classes, globals, keys of dictionaries, defaults of parameters."""

import ast
import functools
import os
import sys

from ..edits import Blocked
from ..edits.source import source_of
from ..file_owner import is_library, is_ours
from . import Found, key_of


def of_files(note):
    """`note(found)` for every constant with a name, in the files that the script has loaded."""
    for module in list(sys.modules.values()):
        path = getattr(module, "__file__", None)
        if isinstance(path, str) and path.endswith(".py") and not is_library(path) and not is_ours(path):
            try:
                source = source_of(path)
            except Blocked:
                continue
            of_source(source, note)


def of_source(source, note):
    for node in ast.walk(source.tree):
        for name, value in named(node):
            number = constant(value)
            if number is not None:
                note(Found(name, key_of(name), number[0], source.path, (), functools.partial(written, source, name, value)))


def named(node):
    """(name, expression) of what a node gives a value."""
    if isinstance(node, ast.Assign):
        targets = [target for target in node.targets if name_of(target)]
        yield from ((name_of(target), node.value) for target in targets)
    elif isinstance(node, ast.AnnAssign) and node.value is not None and name_of(node.target):
        yield name_of(node.target), node.value
    elif isinstance(node, ast.Dict):
        keys = zip(node.keys, node.values)
        yield from ((key.value, value) for key, value in keys if isinstance(key, ast.Constant) and isinstance(key.value, str))
    elif isinstance(node, ast.Call):
        # What a flag has as its default is the flag's; what a dictionary or a config is made of is a key.
        yield from ((each.arg, each.value) for each in node.keywords if each.arg)
    elif isinstance(node, ast.arguments):
        positional = [*node.posonlyargs, *node.args]
        pairs = [*zip(positional[len(positional) - len(node.defaults) :], node.defaults), *zip(node.kwonlyargs, node.kw_defaults)]
        yield from ((argument.arg, value) for argument, value in pairs if value is not None)


def name_of(target):
    if isinstance(target, ast.Name):
        return target.id
    return target.attr if isinstance(target, ast.Attribute) else None


def constant(node):
    """`(value,)` of a truth value, a whole number or a text; also of a product such as `5 * 8`."""
    if isinstance(node, ast.Constant) and isinstance(node.value, (bool, int, str)):
        return (node.value,)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult):
        sides = [constant(side) for side in (node.left, node.right)]
        if all(side is not None and type(side[0]) is int for side in sides):
            return (sides[0][0] * sides[1][0],)
    return None


def written(source, name, node, value):
    old = source.code(source.begin(node), source.end(node))
    quote = old[0] if old[:1] in "\"'" and old else ""
    is_bare = not isinstance(value, str) or not quote and value.isdigit()
    text = str(value) if is_bare else f"{quote}{value}{quote}" if quote else repr(value)
    edit = {"file": source.path, "begin": source.begin(node), "end": source.end(node), "text": text}
    return f"{os.path.basename(source.path)}: {name} = {text}", [], [edit]
