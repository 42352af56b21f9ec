"""Chosen modules are not trained: no gradients, no state of the optimizer, no activations for their weights."""

from ..edits.places import place_of
from .moments import at_first_call

CHANGE = "module.requires_grad_(False)   # before the optimizer is made"
ABSENT = "none of the named modules has parameters to train"


def apply(options, outcome):
    def act(modules, changes):
        for path in options["modules"]:
            if path not in modules:
                outcome.reason = f"there is no module `{path}`"
                continue
            outcome.edits.contain(write, modules[path])
            for parameter in modules[path].parameters():
                if parameter.requires_grad:
                    parameter.requires_grad_(False)
                    changes.note(parameter, train)
                    outcome.took(path)

    return at_first_call(outcome, act)


def write(edits, module):
    place = place_of(module)
    place.write(edits, [f"{place.expression}.requires_grad_(False)"])


def train(parameter):
    parameter.requires_grad_(True)
