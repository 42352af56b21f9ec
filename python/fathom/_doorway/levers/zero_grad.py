"""Gradients are given back right after the step: they are not there during the next forward pass."""

import ast

import torch

from ..edits import Blocked
from ..edits.places import user_frames, value_of
from ..edits.source import source_of
from .moments import at_optimizer

CHANGE = """optimizer.step()
optimizer.zero_grad(set_to_none=True)   # here, not before the next backward pass"""
ABSENT = "gradients are given back before the next forward pass already"


def apply(options, outcome):
    owing = set()  # optimizers whose gradients we dropped and the script has not

    def act(optimizer):
        zero = optimizer.zero_grad

        def make_zero_grad(inner):
            def zero_grad(set_to_none=True):
                owing.discard(id(optimizer))
                return inner(set_to_none=True)

            return zero_grad

        def dropped(*_):
            outcome.edits.contain(write)
            held = sum(p.grad is not None for group in optimizer.param_groups for p in group["params"])
            zero(set_to_none=True)
            if held:
                owing.add(id(optimizer))

        optimizer.zero_grad = outcome.party.replacing(zero, make_zero_grad, "zero_grad")
        optimizer.register_step_post_hook(outcome.party.callback(dropped))

    def called(*_):
        # Still owing when a model is called: here the script would have held its gradients.
        if owing and torch.is_grad_enabled():
            outcome.took(f"gradients of {len(owing)} optimizer{'s' if len(owing) > 1 else ''}")

    def passed(*_):
        if owing:
            outcome.reason = "the script keeps gradients across steps"

    undo = [
        at_optimizer(outcome, act),
        outcome.party.around(torch.nn.Module, "__call__", before=called),
        outcome.party.around(torch.autograd, "backward", before=passed),
    ]
    return lambda: [inverse() for inverse in reversed(undo)]


def write(edits):
    """Behind the line that steps: the optimizer's own hook runs while it does."""
    frame = next((frame for frame in reversed(user_frames())), None)
    if frame is None:
        raise Blocked("", "no line of the script steps")
    source = source_of(frame.f_code.co_filename)
    statement = source.statement(source.scope(frame.f_code), frame.f_lineno)
    call = statement.value if isinstance(statement, ast.Expr) else None
    is_step = isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "step"
    if not is_step:
        raise Blocked(source.place(frame.f_lineno), "the optimizer does not step by a statement of its own")
    # `scaler.step(optimizer)` steps for another.
    owners = [call.func.value, *call.args[:1]]
    owner = next((node for node in owners if callable(getattr(value_of(node, frame), "zero_grad", None))), None)
    if owner is None:
        raise Blocked(source.place(frame.f_lineno), "it is not clear which name the optimizer has here")
    owner = source.code(source.begin(owner), source.end(owner))
    source.lines_after(edits, statement, [f"{owner}.zero_grad(set_to_none=True)"])
