"""Which installed modules a script imports, read from its text and from that of the modules beside it.

Only imports that stand before any statement that could matter to them count: a script that sets a variable of the
environment and then imports a library means the library to see it.
"""

import ast
import importlib.util
import os
import sys

# More files than this are not read.
FILES = 200


def installed_imports(words, folder):
    """Names in the order in which the script imports them; `words` as after `python`, `folder` is where it looks first."""
    if words[0] == "-c":
        return list(dict.fromkeys(names_of(words[1])))
    path = file_of_module(words[1], folder) if words[0] == "-m" else words[0]
    found, seen, waiting = {}, set(), [path]
    while waiting and len(seen) < FILES:
        path = waiting.pop(0)
        if path is None or path in seen:
            continue
        seen.add(path)
        for name in names_of(text_of(path)):
            local = file_of_module(name, folder)
            if local is not None:
                waiting.append(local)
            elif is_installed(name):
                found[name] = None
    return list(found)


def text_of(path):
    try:
        with open(path, encoding="utf-8") as file:
            return file.read()
    except (OSError, UnicodeDecodeError):
        return ""


def names_of(text):
    """Modules that a text imports at its top, up to the first statement that sets the environment."""
    try:
        statements = ast.parse(text).body
    except (SyntaxError, ValueError):
        return
    for statement in statements:
        if isinstance(statement, ast.Import):
            yield from (alias.name for alias in statement.names)
        elif isinstance(statement, ast.ImportFrom) and statement.level == 0 and statement.module != "__future__":
            yield statement.module
        elif "environ" in ast.dump(statement) or "putenv" in ast.dump(statement):
            return


def file_of_module(name, folder):
    """The file of a module that lies beside the script."""
    path = os.path.join(folder, *name.split("."))
    for candidate in (path + ".py", os.path.join(path, "__init__.py")):
        if os.path.isfile(candidate):
            return candidate
    return None


def is_installed(name):
    """Whether an import finds it among the installed packages, not in the user's project."""
    top = name.split(".")[0]
    if top in sys.builtin_module_names or top in sys.stdlib_module_names:
        return True
    try:
        spec = importlib.util.find_spec(top)
    except (ImportError, ValueError):
        return False
    return spec is not None and "site-packages" in (spec.origin or "")
