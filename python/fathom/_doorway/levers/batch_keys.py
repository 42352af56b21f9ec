"""The batch size where scripts have it: in a DataLoader, among their flags, in their YAML files.

A number that was divided once is not divided again on its way from a file through the flags to the loader.
"""

import argparse
import functools
import re
import sys

import torch

from ..edits.calls import with_keywords
from .moments import replace

# `batch_size`, `BATCH_SIZE`, `train_batch_size`, `per_device_train_batch_size`, `bs`, but nothing of an evaluation.
KEY = re.compile(r"(?i)^(.*[_.-])?(batch([_-]?size)?|bs)$")
ELSEWHERE = re.compile(r"(?i)(^|[_.-])(e?val|valid(ation)?|test|infer(ence)?|sampl(e|ing)|predict)([_.-]|$)")
WORD = re.compile(r"^([\w.\-/+]+)=(\d+)$")


class Divider:
    """Divides what is a batch size by `parts`, once, and says so."""

    def __init__(self, parts, outcome):
        self.parts = parts
        self.outcome = outcome
        self.made = set()  # batch sizes that came of a division

    def divided(self, key, value, place=None):
        """The new number; the same one if it is no batch size, or was divided before."""
        name = key.replace("/", ".")
        is_size = KEY.match(name) and not ELSEWHERE.search(name)
        if not is_size or type(value) is not int or value in self.made:
            return value
        if value % self.parts:
            self.outcome.indivisible = value
            return value
        self.outcome.batch = self.outcome.batch or value
        self.made.add(value // self.parts)
        self.outcome.took(f"{key}: {value} → {value // self.parts}", place)
        return value // self.parts

    def text(self, before):
        """The size that stands there, divided."""
        is_number = before.strip().isdigit()
        return str(int(before) // self.parts) if is_number else f"({before}) // {self.parts}"

    def tree(self, tree, path="", place=None):
        """Divides in a dictionary of dictionaries, in place."""
        for key, value in tree.items() if isinstance(tree, dict) else ():
            whole = f"{path}.{key}" if path else str(key)
            if isinstance(value, dict):
                self.tree(value, whole, place)
            else:
                tree[key] = self.divided(whole, value, place)

    def words(self, words):
        """`train.batch_size=64` among the words of a command."""
        match = [WORD.match(word) if isinstance(word, str) else None for word in words]
        return [f"{m[1]}={self.divided(m[1], int(m[2]))}" if m else word for m, word in zip(match, words, strict=True)]


def install(parts, outcome):
    """Every batch size of the script becomes a part of what it was; gives the inverse."""
    divider = Divider(parts, outcome)
    undo = [
        replace(outcome, torch.utils.data.DataLoader, "__init__", lambda inner: loader(inner, divider)),
        replace(outcome, argparse.ArgumentParser, "parse_known_args", lambda inner: flags(inner, divider)),
    ]
    try:
        import yaml
    except ImportError:
        pass
    else:
        undo.append(replace(outcome, yaml, "load", lambda inner: file(inner, divider)))
    return lambda: [inverse() for inverse in reversed(undo)]


def is_lightning():
    """Then its Trainer divides the steps; the loader is what has to be divided by hand."""
    return "lightning" in sys.modules or "pytorch_lightning" in sys.modules


def loader(inner, divider):
    @functools.wraps(inner)
    def __init__(this, dataset, batch_size=1, *args, **kwargs):
        if "batch_sampler" in kwargs or batch_size is None:
            return inner(this, dataset, batch_size, *args, **kwargs)
        if divider.outcome.framework == "transformers":  # its arguments are divided already
            return inner(this, dataset, batch_size, *args, **kwargs)
        if not (divider.made and batch_size == 1):  # beside a training batch, one by one is an evaluation
            whole, batch_size = batch_size, divider.divided("batch_size", batch_size)
            if batch_size != whole:
                divider.outcome.loaders.append(whole)
                if divider.outcome.framework or is_lightning():
                    divider.outcome.edits.contain(with_keywords, {"batch_size": divider.text}, names=("dataset", "batch_size"))
        return inner(this, dataset, batch_size, *args, **kwargs)

    return __init__


def flags(inner, divider):
    @functools.wraps(inner)
    def parse_known_args(parser, *args, **kwargs):
        space, rest = inner(parser, *args, **kwargs)
        for name, value in vars(space).items():
            if isinstance(value, list):
                setattr(space, name, divider.words(value))
            else:
                setattr(space, name, divider.divided(name, value))
        return space, divider.words(rest)

    return parse_known_args


def file(inner, divider):
    @functools.wraps(inner)
    def load(stream, *args, **kwargs):
        tree = inner(stream, *args, **kwargs)
        name = getattr(stream, "name", None)
        divider.tree(tree, place=name if isinstance(name, str) else None)
        return tree

    return load
