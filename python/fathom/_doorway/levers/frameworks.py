"""Settings of training frameworks: the same change as an argument of theirs, in the process and in the text.

What a Trainer does inside of its own loop no line of the user's can do: there an argument is the change.
"""

import sys

from ..border import NOTHING
from ..edits import Blocked
from ..edits.calls import with_keywords
from ..import_hooks import when_imported


def arguments(outcome, settings):
    """`{framework: change(made or {}, given) -> {name: value} or None}` for those that the script uses; gives the inverse.

    `outcome.framework` is the first of which an argument was changed: then the lever does nothing else."""
    undo = []
    outcome.framework = None
    for name, change in settings.items():
        module, owner, install = FRAMEWORKS[name]

        def hook(module, owner=owner, install=install, change=change, name=name):
            kind = getattr(module, owner, None)
            if kind is not None:
                undo.append(install(outcome, name, kind, change))

        when_imported(module, outcome.party.callback(hook, f"the arguments of {name}"))
    return lambda: [inverse() for inverse in reversed(undo)]


def of_fields(outcome, name, kind, change):
    """A data class: its fields are set before it looks at them."""

    def make(inner):
        def __post_init__(this, *args, **kwargs):
            changed = change(lambda field: getattr(this, field, NOTHING))
            for field, value in (changed or {}).items():
                setattr(this, field, value)
            if changed:
                outcome.framework = name
                outcome.took(shown(changed))
                outcome.edits.contain(write_fields, this, changed, outcome)
            return inner(this, *args, **kwargs)

        return __post_init__

    return outcome.party.instead(kind, "__post_init__", make)


def of_keywords(outcome, name, kind, change):
    def make(inner):
        def __init__(this, *args, **kwargs):
            changed = change(lambda word: kwargs.get(word, NOTHING)) if outcome.framework is None else None
            if changed:
                outcome.framework = name
                outcome.took(shown(changed))
                texts = {word: repr(value) for word, value in changed.items()}
                outcome.edits.contain(with_keywords, texts, given=kwargs)
            return inner(this, *args, **{**kwargs, **(changed or {})})

        return __init__

    return outcome.party.instead(kind, "__init__", make)


def write_fields(edits, made, changed, outcome):
    texts = {word: repr(value) for word, value in changed.items()}
    try:
        with_keywords(edits, texts, made=made)
    except Blocked:
        if not is_from_command(made):
            raise
        for word, value in changed.items():
            outcome.words += [f"--{word}", str(value)]


def is_from_command(made):
    """Whether transformers' parser makes it, of the words of the command."""
    frame = sys._getframe(1)
    while frame is not None:
        if frame.f_code.co_name == "parse_args_into_dataclasses":
            return True
        frame = frame.f_back
    return False


def shown(changed):
    return ", ".join(f"{word}={value!r}" for word, value in changed.items())


# Where each keeps its settings: module, class, how they are given.
FRAMEWORKS = {
    "transformers": ("transformers.training_args", "TrainingArguments", of_fields),
    "lightning": ("lightning.pytorch.trainer.trainer", "Trainer", of_keywords),
    "pytorch_lightning": ("pytorch_lightning.trainer.trainer", "Trainer", of_keywords),
    "accelerate": ("accelerate.accelerator", "Accelerator", of_keywords),
}

