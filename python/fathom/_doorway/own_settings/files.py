"""Keys of the script's YAML and JSON files, with the place of each value in the text."""

import functools
import json
import os
import re

from ..file_owner import is_library
from ..import_hooks import when_imported
from . import Found, key_of


def follow(outcome, note):
    """`note(found)` for every key with one value of a file that the script reads; gives the inverse."""
    undo = []

    def make(read):
        def make_load(inner):
            @functools.wraps(inner)
            def load(stream, *args, **kwargs):
                tree = inner(stream, *args, **kwargs)
                outcome.party.contain("a config file", read, stream, note)
                return tree

            return load

        return make_load

    def yaml(module):
        undo.append(outcome.party.instead(module, "load", make(of_yaml)))

    when_imported("yaml", outcome.party.callback(yaml, "keys of YAML"))
    undo.append(outcome.party.instead(json, "load", make(of_json)))
    return lambda: [inverse() for inverse in reversed(undo)]


def file_of(stream):
    """The user's file that a stream reads, and its text."""
    path = getattr(stream, "name", None)
    if not isinstance(path, str) or not os.path.isfile(path) or is_library(os.path.realpath(path)):
        return None, ""
    path = os.path.realpath(path)
    with open(path, "rb") as file:
        raw = file.read()
    return (path, raw.decode("utf-8")) if len(raw) < 1 << 20 else (None, "")


def of_yaml(stream, note):
    import yaml

    path, text = file_of(stream)
    if path is None:
        return
    waiting = [("", yaml.compose(text))]
    while waiting:
        before, node = waiting.pop()
        if not isinstance(node, yaml.MappingNode):
            continue
        for key, value in node.value:
            whole = f"{before}.{key.value}" if before else str(key.value)
            waiting.append((whole, value))
            if isinstance(value, yaml.ScalarNode):
                begin, end = (len(text[: mark.index].encode()) for mark in (value.start_mark, value.end_mark))
                old = text[value.start_mark.index : value.end_mark.index]
                meant = yaml.safe_load(old) if not value.tag.endswith(":str") else value.value
                note(found(path, whole, meant, old, begin, end))


def of_json(stream, note):
    """JSON's parser does not say where a value stands: only what its key names once is found."""
    path, text = file_of(stream)
    if path is None:
        return
    waiting = [("", json.loads(text))]
    while waiting:
        before, tree = waiting.pop()
        for key, value in tree.items() if isinstance(tree, dict) else ():
            whole = f"{before}.{key}" if before else key
            waiting.append((whole, value))
            places = list(re.finditer(re.escape(json.dumps(key)) + r"\s*:\s*([^\s,{}\[\]]+)", text))
            if isinstance(value, (bool, int, str)) and len(places) == 1 and places[0][1] == json.dumps(value):
                begin, end = (len(text[:at].encode()) for at in places[0].span(1))
                note(found(path, whole, value, places[0][1], begin, end))


def found(path, name, value, old, begin, end):
    return Found(name, key_of(name), value, path, (), functools.partial(written, path, name, old, begin, end))


def written(path, name, old, begin, end, value):
    text = as_written(old, value)
    edit = {"file": path, "begin": begin, "end": end, "text": text}
    return f"{os.path.basename(path)}: {name}: {text}", [], [edit]


def as_written(old, value):
    """A value in the manner of the one that stands there."""
    if value is True:
        pairs = {"false": "true", "no": "yes", "off": "on", "0": "1"}
        new = pairs.get(old.strip("\"'").lower(), "true")
        return new.capitalize() if old[:1].isupper() else new
    quote = old[0] if old[:1] in "\"'" and old else ""
    return f"{quote}{value}{quote}"
