"""An exception that ends a script before it uses the card: then nothing else says how it ended."""

import json
import os
import sys

import torch

from .. import contract
from . import border
from .script_frames import describe, without_ours

ENDS = border.Party("how the script ended may not be known")


def install(folder):
    pid = os.getpid()

    def make(inner):
        def excepthook(kind, error, trace):
            # From the card's first use on, the watch says it.
            if not torch.cuda.is_initialized() and os.getpid() == pid:
                ENDS.contain("the end", note, folder, error)
            inner(kind, error, without_ours(trace))

        return excepthook

    ENDS.instead(sys, "excepthook", make)


def note(folder, error):
    with open(os.path.join(folder, contract.early_file(os.getpid())), "w", encoding="utf-8") as file:
        json.dump(contract.early(end=describe(error)), file)
