"""What no other rank is there to answer: the script is told so, and so is the launcher."""

import functools
import os

from ... import contract
from ..border import DOORWAY, Deliberate, is_ours
from ..texts import as_json


class Unanswered(RuntimeError, Deliberate):
    """A call that only other ranks could answer. The launcher is told too: the script may end before it is watched."""

    def __init__(self, message):
        super().__init__(message)
        folder = os.environ.get(contract.RUN)
        if folder:
            path = os.path.join(folder, contract.unanswered_file(os.getpid()))
            DOORWAY.contain("a note to the launcher", write, path, as_json(contract.unanswered(message=message)))


def write(path, text):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def answering(function):
    """What stands in for other ranks with nothing of PyTorch's behind it: if it fails, the script is told so."""

    @functools.wraps(function)
    def call(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            if not is_ours(error):
                raise
            text = f"fathom cannot answer `{function.__name__}` for other ranks: {type(error).__name__}: {error}"
            raise Unanswered(text) from error

    return call
