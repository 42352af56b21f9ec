"""A setting of the script's own: which there are, and in a trial of one whether it does what its name says.

The setting itself is turned outside: as words of the command, or in a copy of the file. A name alone is no evidence: a
setting counts only if what it is like was seen in the run.
"""

import torch
from torch.nn.modules.batchnorm import _BatchNorm

from ... import contract
from ..own_settings import constants, divided, files, flags, kinds
from . import means
from .moments import at_first_call, at_optimizer, replace

CHANGE = "a setting of the script's own"
ABSENT = "the script has no flag, key or constant that says that it needs less memory"

# Settings that are tried, at most; smaller batches of one pair are one.
MOST = 8


def apply(options, outcome):
    if "like" not in options:
        return search(outcome)
    outcome.options, outcome.seen = options, []
    if options["like"] == "accumulate":
        return passes(outcome, options)
    return EVIDENCE[options["like"]](outcome)


# -- which there are -------------------------------------------------------------------------------------------


def search(outcome):
    found = outcome.found = []
    note = outcome.party.callback(found.append, "settings of the script")
    undo = [flags.follow(outcome, note), files.follow(outcome, note)]
    return lambda: [inverse() for inverse in reversed(undo)]


def check(outcome):
    """At the end, when all files of the script are loaded."""
    if hasattr(outcome, "found"):
        list_settings(outcome)
    elif not outcome.sites:
        seen = ", ".join(dict.fromkeys(outcome.seen)) or "in this run"
        outcome.reason = outcome.reason or f"nothing was seen of what its name says ({seen})"


def list_settings(outcome):
    told = {one.key for one in outcome.found}
    of_text = []
    constants.of_files(of_text.append)
    # A flag's name comes back as a field, a variable, an argument: the flag is what people turn.
    found = [*outcome.found, *(one for one in of_text if one.key not in told)]
    made, seen = [], set()
    for one in found:
        for value, like in kinds.proposals(one):
            setting = one.to(value, like)
            if setting is not None and (setting["shown"], like) not in seen:
                seen.add((setting["shown"], like))
                made.append(setting)
    made = made[:MOST] + list(divided.settings(found))
    outcome.settings = [contract.setting(**{**one, "edits": [contract.edit(**edit) for edit in one["edits"]]}) for one in made]
    for one in made:
        outcome.took(one["shown"], "")


# -- whether one does what it says -----------------------------------------------------------------------------


def recomputed(outcome):
    """A module that is called in a backward pass is called again."""

    def called(args, _):
        if torch._C._current_graph_task_id() != -1 and torch.is_grad_enabled():
            outcome.took("modules are called again in the backward pass", "")

    return both(outcome, torch.nn.Module, called)


def autocast(outcome):
    def called(args, _):
        if torch.is_autocast_enabled("cuda") or torch.is_autocast_enabled("cpu"):
            outcome.took("autocast", "")
        elif any(p.dtype in (torch.float16, torch.bfloat16) for p in args[0].parameters(recurse=False)):
            outcome.seen.append("weights in half precision without autocast train differently") if not outcome.seen else None

    return both(outcome, torch.nn.Module, called)


def both(outcome, kind, called):
    undo = [outcome.party.around(kind, "__call__", before=called), at_first_call(outcome, lambda modules, _: norms(outcome, modules))]
    return lambda: [inverse() for inverse in reversed(undo)]


def norms(outcome, modules):
    outcome.meets_batch_norm = any(isinstance(module, _BatchNorm) for module in modules.values())


def attention(outcome):
    def called(*_):
        outcome.took("F.scaled_dot_product_attention", "")

    return outcome.party.around(torch.nn.functional, "scaled_dot_product_attention", before=called)


def optimizer(outcome):
    def made(one):
        name = type(one).__name__
        plain = ("adam", "adamw", "sgd", "nadam", "radam")
        outcome.seen.append(name) if name.lower() in plain else outcome.took(name)

    return at_optimizer(outcome, made)


def passes(outcome, options):
    """As many backward passes before a step as it says, of batches as small as it says."""
    count, batches = [0], []

    def loaded(inner):
        def __init__(this, dataset, batch_size=1, *args, **kwargs):
            batches.append(batch_size)
            return inner(this, dataset, batch_size, *args, **kwargs)

        return __init__

    def passed(*_):
        count[0] += 1

    def stepped(*_):
        is_small = options.get("batch") is None or not batches or options["batch"] in batches
        if count[0] == options["parts"] and is_small:
            outcome.took(f"{count[0]} batches a step", "")
        elif count[0]:
            outcome.seen.append(f"{count[0]} batches a step" if is_small else f"batches of {batches[0]}")
        count[0] = 0

    undo = [
        outcome.party.around(torch.autograd, "backward", before=passed),
        replace(outcome, torch.utils.data.DataLoader, "__init__", loaded),
        at_optimizer(outcome, lambda one: one.register_step_post_hook(outcome.party.callback(stepped))),
        at_first_call(outcome, lambda modules, _: norms(outcome, modules)),
        means.follow(outcome),
    ]
    return lambda: [inverse() for inverse in reversed(undo)]


EVIDENCE = {
    "gradient-checkpointing": recomputed,
    "amp-bf16": autocast,
    "amp-fp16": autocast,
    "fused-attention": attention,
    "8bit-optimizer": optimizer,
    "adafactor": optimizer,
}
