"""What the two precisions share: autocast from the first module that is called up to the backward pass."""

import torch

from ..edits import Blocked, passage
from . import frameworks
from .moments import around_forward


def apply(dtype, outcome):
    def enter(module):
        if outcome.framework:
            return None
        device = next((p.device.type for p in module.parameters() if p.is_cuda), None)
        if device is None:
            device = "cuda" if torch.cuda.is_initialized() else "cpu"
        if torch.is_autocast_enabled(device):
            outcome.reason = "the script uses autocast already"
            return None
        outcome.took(type(module).__name__)
        return torch.autocast(device, dtype)

    def passed(found):
        if outcome.sites and not outcome.framework:
            outcome.edits.contain(write, found, dtype)

    undo = [frameworks.arguments(outcome, settings(dtype)), around_forward(outcome, enter), passage.follow(outcome, passed)]
    return lambda: [inverse() for inverse in reversed(undo)]


def settings(dtype):
    """The arguments of frameworks that do so."""
    word = "bf16" if dtype is torch.bfloat16 else "fp16"
    mixed = "bf16-mixed" if dtype is torch.bfloat16 else "16-mixed"
    full = (frameworks.NOTHING, None, 32, "32", "32-true")
    of_lightning = {"precision": mixed}
    return {
        "transformers": lambda get: None if get("bf16") is True or get("fp16") is True else {word: True},
        "lightning": lambda get: of_lightning if get("precision") in full else None,
        "pytorch_lightning": lambda get: of_lightning if get("precision") in full else None,
        "accelerate": lambda get: {"mixed_precision": word} if get("mixed_precision") in (frameworks.NOTHING, None, "no") else None,
    }


def write(edits, found, dtype):
    if isinstance(found, Exception):
        raise found
    if dtype is torch.float16:
        raise Blocked(found.place(), "gradients must be scaled too, which is written by hand")
    found.wrapped(edits, [f'with torch.autocast("cuda", dtype={dtype}):'])
    found.source.imports(edits, "import torch")
