"""The other end of `pack_function.py`: `python call_function.py CALL.json`, inside the run."""

import importlib
import json
import os
import pickle
import sys
from typing import Any


def main(path: str) -> None:
    with open(path, encoding="utf-8") as file:
        order = json.load(file)
    # The folder of this file came first, and has modules with common names.
    sys.path[:] = [*order["path"], *sys.path[1:]]
    sys.argv = [order.get("file") or order["name"]]
    names = vars(sys.modules["__main__"])
    if "module" in order:
        place = importlib.import_module(order["module"])
    else:
        place = sys.modules["__main__"]
        read(order["file"], names)
        names.update(load(order["values"]) if "values" in order else {})
    arguments, keywords = load(order["arguments"])
    function: Any = place
    for name in order["name"].split("."):
        function = getattr(function, name)
    function(*arguments, **keywords)


def read(path: str, names: dict[str, Any]) -> None:
    """Executes a file as part of this one, so that pickles find its classes, but not as the main program."""
    with open(path, encoding="utf-8") as file:
        code = compile(file.read(), path, "exec", dont_inherit=True)  # no `__future__` of ours is theirs
    names.update(__name__="__fathom_main__", __file__=os.path.abspath(path))
    exec(code, names)


def load(path: str) -> Any:
    with open(path, "rb") as file:
        return pickle.load(file)


if __name__ == "__main__":
    main(sys.argv[1])
