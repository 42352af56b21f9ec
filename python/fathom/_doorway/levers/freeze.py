"""Chosen modules are not trained: no gradients, no state of the optimizer, no activations for their weights."""

from .moments import at_first_call

CHANGE = "module.requires_grad_(False)   # before the optimizer is made"
ABSENT = "none of the named modules has parameters to train"


def apply(options, outcome):
    frozen = []

    def act(modules):
        for path in options["modules"]:
            if path not in modules:
                outcome.reason = f"there is no module `{path}`"
                continue
            for parameter in modules[path].parameters():
                if parameter.requires_grad:
                    parameter.requires_grad_(False)
                    frozen.append(parameter)
                    outcome.took(path)

    first = at_first_call(outcome, act)
    return lambda: (first(), [parameter.requires_grad_(True) for parameter in frozen])
