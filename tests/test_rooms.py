"""The rooms of `python/fathom`: who imports whom while a module is imported. Read from the files, nothing is run but once."""

import ast
import subprocess
import sys

import pytest
from conftest import ROOT

PACKAGE = ROOT / "python" / "fathom"

# What the doorway and the warm server use of the public room.
SHARED = {"fathom", "fathom.contract"}


def name_of(path):
    parts = ("fathom", *path.relative_to(PACKAGE).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {name_of(path): path for path in PACKAGE.rglob("*.py")}


def top_level(statements):
    """Imports that run with the module: not those in functions, nor those for type checkers alone."""
    for statement in statements:
        if isinstance(statement, (ast.Import, ast.ImportFrom)):
            yield statement
        elif isinstance(statement, ast.If) and "TYPE_CHECKING" in ast.dump(statement.test):
            yield from top_level(statement.orelse)
        elif not isinstance(statement, (ast.FunctionDef, ast.AsyncFunctionDef)):
            for field in ("body", "orelse", "finalbody", "handlers"):
                inner = getattr(statement, field, [])
                yield from top_level(inner if isinstance(inner, list) else [])


def imported(name, text, is_package, modules):
    """Modules of ours that a text imports at its top, with the packages around these."""
    package = name if is_package else name.rpartition(".")[0]
    found = set()
    for statement in top_level(ast.parse(text).body):
        if isinstance(statement, ast.Import):
            found.update(alias.name for alias in statement.names)
            continue
        above = package.split(".")[: len(package.split(".")) - statement.level + 1] if statement.level else []
        base = ".".join([*above, *([statement.module] if statement.module else [])])
        found.update(f"{base}.{alias.name}" if f"{base}.{alias.name}" in modules else base for alias in statement.names)
    around = {each.rsplit(".", up)[0] for each in found for up in range(each.count(".") + 1)}
    # Who is imported has the packages around it already.
    return {each for each in around if each in modules and not f"{name}.".startswith(f"{each}.")}


def graph_of(modules):
    return {name: imported(name, text, is_package, modules) for name, (text, is_package) in modules.items()}


def cycle(graph):
    """Modules that import each other in a circle, or nothing."""
    done = set()

    def walk(name, trail):
        if name in trail:
            return [*trail[trail.index(name) :], name]
        if name in done:
            return None
        found = next(filter(None, (walk(other, [*trail, name]) for other in sorted(graph[name]))), None)
        done.add(name)
        return found

    return next(filter(None, (walk(name, []) for name in sorted(graph))), None)


GRAPH = graph_of({name: (path.read_text(encoding="utf-8"), path.stem == "__init__") for name, path in MODULES.items()})


def is_in(name, room):
    return name == f"fathom.{room}" or name.startswith(f"fathom.{room}.")


def is_public(name):
    return not is_in(name, "_doorway") and not is_in(name, "_warm")


def test_no_module_is_imported_in_a_circle():
    assert len(GRAPH) > 80 and sum(map(len, GRAPH.values())) > 100, "imports were not found"
    assert cycle(GRAPH) is None


WAYS = ["from . import b", "from .b import x", "import fathom.b", "try:\n    from . import b\nexcept OSError: pass"]


@pytest.mark.parametrize("text", WAYS)
def test_a_circle_would_be_found(text):
    modules = {"fathom": ("", True), "fathom.a": (text, False), "fathom.b": ("from .c import x", False)}
    modules["fathom.c"] = ("from . import a", False)
    assert cycle(graph_of(modules)) == ["fathom.a", "fathom.b", "fathom.c", "fathom.a"]
    assert cycle(graph_of({**modules, "fathom.c": ("def f():\n    from . import a", False)})) is None


def test_the_public_room_is_imported_alone():
    wrong = {name: sorted(filter(lambda other: not is_public(other), others)) for name, others in GRAPH.items() if is_public(name)}
    assert {name: others for name, others in wrong.items() if others} == {}


def test_the_inner_rooms_use_what_is_shared_and_nothing_else():
    inner = {name: others for name, others in GRAPH.items() if not is_public(name)}
    used = {other for others in inner.values() for other in others if is_public(other)}
    assert used <= SHARED and "fathom.contract" in used
    assert not [name for name, others in inner.items() if is_in(name, "_doorway") for other in others if is_in(other, "_warm")]


def test_without_torch_the_public_room_is_there():
    """`-I` and `-S`: nothing but Python itself is installed; the doorway is not touched."""
    text = f"""
import sys
sys.path.insert(0, {str(ROOT / "python")!r})
sys.modules["torch"] = None
import fathom
fathom.run, fathom.Report, fathom.Error, fathom.record
import fathom.recording, fathom.notebook, fathom.pack_function, fathom.call_function
print([name for name in sys.modules if name.startswith(("fathom._doorway", "fathom._warm"))])
"""
    done = subprocess.run([sys.executable, "-I", "-S", "-c", text], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("[]\n", "")
