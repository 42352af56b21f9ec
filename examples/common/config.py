"""Configuration files of the case studies: YAML, one file may build on another, `key=value` overrides.

    config = load("examples/dit3d/tiny-4.yaml", ["TRAIN.BATCH_SIZE=2"])
    config.TRAIN.BATCH_SIZE                       # 2

A file with `base: other.yaml` (beside it) holds only what differs from that file. Whatever is not in the base is
unknown, as is an override that no file mentions: a misspelt key is an error and not a setting without effect.
"""

import argparse
import difflib
import re
from pathlib import Path
from types import SimpleNamespace

import yaml


class ConfigError(ValueError):
    """What is wrong in a configuration, in words for the user."""


class Loader(yaml.SafeLoader):
    """YAML that also reads `1e-4` as a number."""


EXPONENT = re.compile(r"^[-+]?\d+(\.\d*)?[eE][-+]?\d+$")
Loader.add_implicit_resolver("tag:yaml.org,2002:float", EXPONENT, list("-+0123456789"))


def load(path, overrides=()):
    """The settings of a file with `key=value` overrides (dotted keys), as attributes."""
    settings = read(Path(path))
    for override in overrides:
        key, equals, text = override.partition("=")
        if not equals:
            raise ConfigError(f"`{override}` is no override\nhint: write `key=value`")
        replace(settings, key, yaml.load(text, Loader), f"`{override}`")
    return as_attributes(settings)


def from_command_line(description, arguments=None):
    """The settings that `train.py --config FILE [key=value …]` asks for; an error ends the program."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--config", required=True, metavar="FILE", help="a YAML file of this example")
    parser.add_argument("overrides", nargs="*", metavar="key=value", help="settings to change, dotted keys")
    given = parser.parse_args(arguments)
    try:
        return load(given.config, given.overrides)
    except ConfigError as error:
        parser.exit(2, f"error: {error}\n")


def read(path):
    """One file as a dictionary, on top of its base if it names one."""
    if not path.is_file():
        raise ConfigError(f"there is no file `{path}`")
    changes = yaml.load(path.read_text(encoding="utf-8"), Loader) or {}
    base = changes.pop("base", None)
    if base is None:
        return changes
    settings = read(path.parent / base)
    for key, value in leaves(changes):
        replace(settings, key, value, f"`{path.name}`")
    return settings


def leaves(settings, prefix=""):
    """Every setting with its dotted key."""
    for name, value in settings.items():
        if isinstance(value, dict):
            yield from leaves(value, f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", value


def replace(settings, key, value, source):
    """Gives an existing setting another value."""
    known = dict(leaves(settings))
    if key not in known:
        near = [name for name in known if name.split(".")[-1] == key] or difflib.get_close_matches(key, known, n=1)
        hint = f"did you mean `{near[0]}`?" if near else "known are " + ", ".join(f"`{name}`" for name in known)
        raise ConfigError(f"unknown key `{key}` in {source}\nhint: {hint}")
    *parents, name = key.split(".")
    for parent in parents:
        settings = settings[parent]
    settings[name] = value


def as_attributes(value):
    """Nested dictionaries as objects with attributes."""
    if isinstance(value, dict):
        return SimpleNamespace(**{name: as_attributes(inner) for name, inner in value.items()})
    return value
