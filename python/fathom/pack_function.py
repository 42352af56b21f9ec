"""Carries a function into a fresh process: by its module, by the script that defines it, or by its source.

A function of a module is imported there again. One of the running script is found by executing the script under
another name than `__main__`. One of a notebook takes along the source of what it uses, imports, and values that
can be pickled. What cannot be carried is named.
"""

from __future__ import annotations

import ast
import inspect
import json
import linecache
import os
import pickle
import pickletools
import site
import symtable
import sys
import sysconfig
import types
from typing import Any

# Where the function and its arguments wait, beside the files of the run; and how its file begins.
FOLDER = "fathom-call"
SCHEMA = "fathom.call/1"


def pack(function: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], folder: str) -> str:
    """Writes what `call_function.py` needs into a folder; gives the file to hand to it."""
    check(function)
    make_room(folder)
    order: dict[str, Any] = {"schema": SCHEMA, "name": function.__qualname__, "path": own_path()}
    script: str | None = getattr(sys.modules["__main__"], "__file__", None)
    luggage = Luggage()
    if function.__module__ != "__main__":
        order["module"] = function.__module__
    elif script:
        order["file"] = os.path.abspath(script)
    else:
        luggage.add(function.__name__, function, function.__name__)
        order["file"] = os.path.join(folder, "notebook.py")
        order["values"] = write(os.path.join(folder, "values.pickle"), luggage.values)
        with open(order["file"], "w", encoding="utf-8") as file:
            file.write("\n\n".join(luggage.texts.values()) + "\n")
    try:
        order["arguments"] = write(os.path.join(folder, "arguments.pickle"), (arguments, keywords))
    except Exception as error:
        raise refused(f"an argument of `{function.__name__}` cannot be pickled: {error}", function.__name__) from error
    path = os.path.join(folder, "call.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(order, file)
    return path


def make_room(folder: str) -> None:
    """Makes the folder, or uses it again if it is of an earlier run."""
    try:
        os.makedirs(folder)
    except FileExistsError:
        try:
            with open(os.path.join(folder, "call.json"), encoding="utf-8") as file:
                is_ours = json.load(file).get("schema") == SCHEMA
        except (OSError, ValueError, AttributeError):
            is_ours = False
        if not is_ours:
            raise refused(f"`{folder}` is yours, and the run would write to it", hint="name another folder with `out`") from None


def check(function: Any) -> None:
    """Only a function with a name at the top of its module can be found again."""
    name = getattr(function, "__qualname__", type(function).__name__)
    hint = "write it with `def` at the top of a module, a script or a cell"
    if not inspect.isfunction(function):
        raise refused(f"`{name}` is not a plain function", hint=hint)
    if "<lambda>" in name or "<locals>" in name:
        raise refused(f"`{name}` has no name at the top of its module", hint=hint)


def refused(message: str, name: str = "", hint: str = "") -> Exception:
    from .api import Error

    return Error(message, hint or f"make it inside `{name}`, or write it to a module")


def own_path() -> list[str]:
    """What this process added to the interpreter's own path; another Python has its own packages."""
    installed = [*sysconfig.get_paths().values(), *site.getsitepackages(), site.getusersitepackages()]
    roots = tuple(os.path.abspath(path) + os.sep for path in installed)
    own = [path for path in map(os.path.abspath, sys.path) if not (path + os.sep).startswith(roots)]
    return [path for path in own if not os.path.basename(path).startswith("python") or not path.endswith(".zip")]


def write(path: str, value: Any) -> str:
    data = pickle.dumps(value)
    with open(path, "wb") as file:
        file.write(data)
    return path


class Luggage:
    """Source texts by name, in the order in which they must run, and values that are pickled."""

    def __init__(self) -> None:
        self.texts: dict[str, str] = {}
        self.values: dict[str, Any] = {}
        self.open: set[str] = set()

    def add(self, name: str, value: Any, user: str) -> None:
        """One name that `user` uses, and what that needs before it."""
        if name in self.texts or name in self.values or name in self.open:
            return
        self.open.add(name)
        home = getattr(value, "__module__", None)
        if isinstance(value, types.ModuleType):
            self.texts[name] = f"import {value.__name__} as {name}"
        elif isinstance(value, (types.FunctionType, type)) and home == "__main__":
            self.add_source(name, value, user)
        elif isinstance(value, (types.FunctionType, types.BuiltinFunctionType, type)) and "." not in value.__qualname__ and home:
            self.texts[name] = f"from {home} import {value.__qualname__} as {name}"
        else:
            self.add_value(name, value, user)

    def add_source(self, name: str, value: Any, user: str) -> None:
        own = value.__name__
        if own != name:
            self.add(own, value, user)
            self.texts[name] = f"{name} = {own}"
            return
        text = source_of(value)
        if text is None:
            raise refused(f"`{user}` uses `{name}`, whose source is not known", user)
        known = vars(sys.modules["__main__"])
        for used in globals_of(text):
            if used in known:
                self.add(used, known[used], own)
        self.texts[name] = text

    def add_value(self, name: str, value: Any, user: str) -> None:
        try:
            data = pickle.dumps(value)
        except Exception as error:
            raise refused(f"`{user}` uses `{name}`, which cannot be carried into a fresh process: {error}", user) from error
        known = vars(sys.modules["__main__"])
        for own in classes_of_main(data):
            if own in known:
                self.add(own, known[own], user)
        self.values[name] = value


def source_of(value: Any) -> str | None:
    """The text of a function or class, from the cell or file that defined it last."""
    code = [member.__code__ for member in [value, *vars(value).values()] if inspect.isfunction(member)]
    own = [one.co_filename for one in code]
    # Classes without functions of their own do not say where they are from.
    for name in [*own, *reversed([name for name in linecache.cache if name not in own])]:
        lines = linecache.getlines(name)
        try:
            tree = ast.parse("".join(lines))
        except (SyntaxError, ValueError):
            continue
        for node in reversed(tree.body):
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)) and node.name == value.__name__:
                first = min([node.lineno, *(decorator.lineno for decorator in node.decorator_list)])
                return "".join(lines[first - 1 : node.end_lineno]).rstrip()
    return None


def globals_of(text: str) -> list[str]:
    """Names that a text takes from around it."""
    names: dict[str, None] = {}

    def walk(table: symtable.SymbolTable) -> None:
        for symbol in table.get_symbols():
            is_free = symbol.is_global() or (table.get_type() == "module" and not symbol.is_assigned())
            if is_free and symbol.is_referenced():
                names[symbol.get_name()] = None
        for below in table.get_children():
            walk(below)

    walk(symtable.symtable(text, "<source>", "exec"))
    return list(names)


def classes_of_main(data: bytes) -> list[str]:
    """Names of `__main__` that a pickle needs."""
    texts, found = [], []
    for opcode, argument, _ in pickletools.genops(data):
        if isinstance(argument, str):
            texts.append(argument)
        if opcode.name == "GLOBAL" and str(argument).startswith("__main__ "):
            found.append(str(argument).split(" ")[1])
    return [*found, *(second for first, second in zip(texts, texts[1:]) if first == "__main__")]
