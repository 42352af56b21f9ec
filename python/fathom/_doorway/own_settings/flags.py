"""Flags: what a parser of the script knows, whether the command names it or not."""

import argparse
import functools
import sys

from ..import_hooks import when_imported
from . import Found, key_of

TRUE = ("True", "true", "1", "yes", "on")


def follow(outcome, note):
    """`note(found)` for every flag of a parser that reads the command; gives the inverse."""

    def make(inner):
        @functools.wraps(inner)
        def parse_known_args(parser, *args, **kwargs):
            space, rest = inner(parser, *args, **kwargs)
            # A parser of words that somebody else made says nothing of the command.
            given = args[0] if args else kwargs.get("args")
            if given is None or is_rest(list(given)):
                outcome.party.contain("flags of the script", of_parser, parser, space, note)
            return space, rest

        return parse_known_args

    undo = [outcome.party.instead(argparse.ArgumentParser, "parse_known_args", make)]

    def click(module):
        undo.append(outcome.party.around(module.Command, "invoke", before=lambda args, _: of_click(args[1], note)))

    when_imported("click.core", outcome.party.callback(click, "flags of click"))
    return lambda: [inverse() for inverse in reversed(undo)]


def is_rest(words):
    """A parser may be given `sys.argv[1:]`, and one of a command below another the rest of the words."""
    return words == sys.argv[len(sys.argv) - len(words) :]


def of_parser(parser, space, note):
    for action in parser._actions:
        flag = next((text for text in action.option_strings if text.startswith("--") and not text.startswith("--no-")), None)
        if flag is None or not hasattr(space, action.dest) or belongs_to_trainer(parser, action.dest):
            continue
        value = getattr(space, action.dest)
        words = functools.partial(words_for, parser, action, flag)
        values = tuple(action.choices or ()) if not isinstance(action.choices, dict) else tuple(action.choices)
        note(Found(flag, key_of(flag.lstrip("-")), value, "flags", values, functools.partial(written, words)))


def belongs_to_trainer(parser, name):
    """Arguments of transformers' Trainer, which other levers change."""
    if not any(kind.__name__ == "HfArgumentParser" for kind in type(parser).__mro__):
        return False
    import transformers

    return name in transformers.TrainingArguments.__dataclass_fields__


def written(words_for, value):
    words = words_for(value)
    return (" ".join(words), words, []) if words else None


def words_for(parser, action, flag, value):
    """The words that set a flag; `None` if it cannot be set so."""
    if value is True and action.nargs == 0:
        is_switch = isinstance(action, argparse._StoreTrueAction) or type(action).__name__ == "BooleanOptionalAction"
        return [flag] if is_switch else None
    if action.nargs not in (None, "?") or not isinstance(action, argparse._StoreAction):
        return None
    for text in TRUE if value is True else (str(value),):
        if action.choices is not None and text not in [str(choice) for choice in action.choices]:
            continue
        try:
            parsed = parser._get_value(action, text)
        except argparse.ArgumentError:
            continue
        # `type=bool` takes every text for true; what it stands for is what counts.
        if parsed == value or value is not True and str(parsed).lower() == text.lower():
            return [flag, text]
    return None


def of_click(context, note):
    for parameter in context.command.params:
        flag = next((text for text in parameter.opts if text.startswith("--")), None)
        if flag is None or parameter.name not in context.params:
            continue
        value = context.params[parameter.name]
        values = tuple(getattr(parameter.type, "choices", ()) or ())
        is_switch = getattr(parameter, "is_flag", False)
        note(Found(flag, key_of(flag.lstrip("-")), value, "flags", values, functools.partial(of_option, flag, is_switch)))


def of_option(flag, is_switch, value):
    words = [flag] if is_switch and value is True else [flag, str(value)]
    return " ".join(words), words, []
