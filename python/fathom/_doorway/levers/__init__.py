"""Levers: changes of a training script that are tried inside its process, without touching its code.

Each lever is a file with `CHANGE` (the code change it stands for) and `apply(options, outcome)`, which puts it in place
and returns what undoes it. A lever says in its outcome where it took hold; one that found nothing to act on was not
applied, whatever its trial measured. When it is tried and how far it changes results is in its row of
`crates/diagnose/src/remedies/table.rs`.
"""

import atexit
import importlib
import os
import sys

import torch

from ... import contract
from .. import border
from ..edits import Edits
from ..file_owner import is_library
from ..texts import as_json


class Outcome:
    """Where a lever took hold, or why it did not."""

    def __init__(self, lever):
        self.lever = lever
        self.party = border.Party(f"the lever {lever} failed", ends=True, passes=torch.cuda.OutOfMemoryError)
        self.sites = []  # what was changed: paths of modules, classes of optimizers …
        self.meets_batch_norm = False  # whether a BatchNorm is where it acts: some levers then change more
        self.means_of_means = False  # whether the loss is a mean over unequal numbers of targets, which parts weigh otherwise
        self.reason = None  # why nothing was, or why it must not count
        self.change = None  # what to write for this script, if not all that the lever may stand for
        self.framework = None  # whose argument it changed, if that is what it did
        self.loaders = []  # batch sizes of loaders that it divided
        self.batch = None  # the script's batch size, if the lever is about it
        self.places = []  # file:line of the code that the change belongs to
        self.edits = Edits()  # the change as text
        self.words = []  # or as words behind the command
        self.settings = []  # of the script's own, that may do what a lever does

    def took(self, site, place=None):
        """Here it acts; `place` is the file:line that a change of the code belongs to, else the running line."""
        if site not in self.sites:
            self.sites.append(site)
            place = place or running_line()
            if place is not None and place not in self.places:
                self.places.append(place)

    def failure(self):
        """A lever that failed once may have changed only a part: what its trial measured does not count."""
        return next((fault["error"] for fault in border.faults if fault["loss"] == self.party.loss), None)

    def facts(self, module):
        self.party.contain("the end of a lever", getattr(module, "check", lambda outcome: None), self)
        reason = self.failure() or self.reason or (None if self.sites else getattr(module, "ABSENT", "nothing to act on"))
        return contract.lever(
            lever=self.lever,
            applied=reason is None,
            reason=reason,
            sites=self.sites,
            places=self.places,
            meets_batch_norm=self.meets_batch_norm,
            means_of_means=self.means_of_means,
            change=self.change or module.CHANGE,
            batch=self.batch,
            edits=[contract.edit(**edit) for edit in self.edits.all],
            in_the_way=self.edits.blocked,
            words=self.words,
            settings=self.settings,
        )


def running_line():
    """The innermost line of the user's own code, as file:line."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if not is_library(name) and os.path.isfile(name):
            return f"{name}:{frame.f_lineno}"
        frame = frame.f_back
    return None


def load(name):
    return importlib.import_module("." + name.replace("-", "_").replace("8bit", "eight_bit"), __name__)


def install(requests, folder=None):
    """Applies `[{"lever": name, …}]`. Gives the function that undoes all and the list of outcomes' facts."""
    applied = []
    for request in requests:
        module, outcome = load(request["lever"]), Outcome(request.get("name", request["lever"]))
        inverse = outcome.party.contain("the beginning of a lever", module.apply, request, outcome)
        applied.append((module, outcome, inverse or (lambda: None)))

    def facts():
        return [outcome.facts(module) for module, outcome, _ in applied]

    def undo():
        for _, _, inverse in reversed(applied):
            inverse()
        return facts()

    if folder:
        atexit.register(border.DOORWAY.callback(write), folder, os.getpid(), facts)
    return undo


def write(folder, pid, facts):
    if os.getpid() == pid:
        with open(os.path.join(folder, contract.levers_file(pid)), "w", encoding="utf-8") as file:
            file.write(as_json(contract.levers(levers=facts())))
