"""Smaller batches whose gradients add up: the same number of samples per step, fewer at a time.

The batch size becomes a part of what it was; the optimizer steps when all parts have passed. A trial needs no more
than two `passes` before a step: the memory of all further ones is the same.
"""

import functools
import types

import torch

from ..edits import passage, small_batches
from . import batch_keys, frameworks, means, reductions
from .moments import at_first_call, at_optimizer, replace

CHANGE = """(loss / parts).backward()
if (index + 1) % parts == 0:
    optimizer.step(); optimizer.zero_grad()"""
ABSENT = "no batch size was found in a DataLoader, a flag or a YAML file: name it with --set and --vary"


def apply(options, outcome):
    parts = int(options.get("parts", 2))
    passes = min(parts, int(options.get("passes", parts)))
    outcome.parts, outcome.indivisible, outcome.steps, outcome.asked = parts, None, 0, 0
    outcome.reduced = set()

    def passed(found):
        if outcome.sites and not outcome.framework:
            outcome.edits.contain(small_batches.write, found, parts, outcome.batch, is_sum(outcome))

    undo = [
        frameworks.arguments(outcome, settings(parts, outcome)),
        passage.follow(outcome, passed),
        batch_keys.install(parts, outcome),
        replace(outcome, torch.autograd, "backward", lambda inner: scaled(inner, parts, outcome)),
        at_optimizer(outcome, lambda optimizer: gate(optimizer, passes, outcome)),
        at_first_call(outcome, lambda modules, _: warn(modules, outcome)),
        means.follow(outcome),
    ]
    return lambda: [inverse() for inverse in reversed(undo)]


def settings(parts, outcome):
    """The arguments of frameworks that accumulate by themselves."""

    def of_transformers(get):
        batch, so_far = get("per_device_train_batch_size"), get("gradient_accumulation_steps")
        if type(batch) is not int or type(so_far) is not int:
            return None
        if batch % parts:
            outcome.indivisible = batch
            return None
        outcome.batch = batch
        return {"per_device_train_batch_size": batch // parts, "gradient_accumulation_steps": so_far * parts}

    def of_lightning(get):
        so_far = get("accumulate_grad_batches")
        so_far = 1 if so_far in (frameworks.NOTHING, None) else so_far
        return {"accumulate_grad_batches": so_far * parts} if type(so_far) is int else None

    return {"transformers": of_transformers, "lightning": of_lightning, "pytorch_lightning": of_lightning}


def scaled(inner, parts, outcome):
    @functools.wraps(inner)
    def backward(tensors, *args, **kwargs):
        tensors = (tensors,) if isinstance(tensors, torch.Tensor) else tuple(tensors)
        outcome.party.contain("what a loss is made of", look, tensors, outcome)
        if outcome.framework or is_sum(outcome):
            return inner(tensors, *args, **kwargs)
        return inner(tuple(tensor / parts for tensor in tensors), *args, **kwargs)

    return backward


def look(tensors, outcome):
    outcome.reduced |= reductions.of(tensors)
    outcome.means_of_means |= reductions.RATIO in outcome.reduced


def is_sum(outcome):
    """Sums of parts add up to the sum of the whole: nothing is divided."""
    return outcome.reduced == {reductions.SUM}


def gate(optimizer, passes, outcome):
    """Of `passes` steps that the script asks for, the last is one; gradients stay until then."""
    asked, party = [0], outcome.party
    if outcome.framework:
        return

    def make_step(inner):
        def gated(_, *args, **kwargs):
            asked[0] += 1
            outcome.asked += 1
            if asked[0] % passes == 0:
                outcome.steps += 1
                return type(optimizer).step(optimizer, *args, **kwargs)  # its class may be another lever's
            return None

        return gated

    def make_zero_grad(inner):
        def zero_grad(set_to_none=True):
            if asked[0] % passes == 0:
                inner(set_to_none=set_to_none)

        return zero_grad

    # A bound method: schedulers look into it.
    optimizer.step = types.MethodType(party.replacing(type(optimizer).step, make_step, "step"), optimizer)
    optimizer.zero_grad = party.replacing(optimizer.zero_grad, make_zero_grad, "zero_grad")


def check(outcome):
    """A script that ends before its first step shows less than it would need."""
    if is_sum(outcome):
        outcome.change = CHANGE.replace("(loss / parts).backward()", "loss.backward()   # a sum: not divided")
    if outcome.means_of_means:
        outcome.change = CHANGE + means.ADDED
    unclear = outcome.reduced & {reductions.SUM, reductions.WEIGHTED}
    if unclear and (outcome.framework or not is_sum(outcome)):
        kinds = " and ".join(sorted(outcome.reduced))
        outcome.reason = f"the loss is {kinds}: gradients of smaller batches would be weighted otherwise"
    elif outcome.indivisible and not outcome.sites:
        outcome.reason = f"a batch of {outcome.indivisible} cannot be divided into {outcome.parts} equal parts"
    elif outcome.framework and outcome.batch is None:
        outcome.reason = f"no batch size was found beside {outcome.framework}'s own accumulation"
    elif outcome.asked and not outcome.steps and not outcome.framework:
        outcome.reason = f"the script ended after {outcome.asked} batch, before all parts of one had passed"


def warn(modules, outcome):
    """BatchNorm sees smaller batches."""
    kinds = {type(module).__name__ for module in modules.values()}
    if any(name.startswith(("BatchNorm", "SyncBatchNorm")) for name in kinds):
        outcome.meets_batch_norm = True
