"""The state of Adam waits on the host, where its step is made: gradients go there, weights come back.

In the process a stand-in shows what that leaves on the card. As text it is torchao's optimizer, where that is installed and
the host has the memory.
"""

import importlib.util
import os

import torch

from ..edits import Blocked
from ..edits.calls import Call, caller
from . import stand_in
from .moments import at_optimizer

CHANGE = "optimizer = torchao.optim.CPUOffloadOptimizer(model.parameters(), torch.optim.AdamW, lr=…)"
ABSENT = "no optimizer of Adam's kind was made"

# Bytes on the host for each parameter: its copy, its gradient and two moments, of 32 bits each.
PER_PARAMETER = 16

KEPT = ("params", "lr", "betas", "eps", "weight_decay")
CLIPPING = ("clip_grad_norm_", "clip_grad_value_")


def apply(options, outcome):
    def act(optimizer):
        name = type(optimizer).__name__
        if name not in ("Adam", "AdamW"):
            return
        count = sum(p.numel() for group in optimizer.param_groups for p in group["params"])
        outcome.took(f"state of {count / 1e6:.1f} M parameters: {count * PER_PARAMETER / 2**30:.1f} GiB on the host")
        outcome.edits.contain(write, optimizer, name, count)
        stand_in.put(optimizer, stand_in.OnHost)

    # What changes gradients behind the backward pass comes too late for the copies on the host.
    undo = [
        at_optimizer(outcome, act),
        *(outcome.party.around(torch.nn.utils, name, before=lambda *_: outcome.edits.contain(clipped)) for name in CLIPPING),
    ]
    return lambda: [inverse() for inverse in reversed(undo)]


def write(edits, optimizer, name, count):
    if importlib.util.find_spec("torchao") is None:
        raise Blocked("", "torchao is not installed (`pip install torchao`): the peak is that of a stand-in which keeps nothing on the GPU")
    if free_bytes() < count * PER_PARAMETER:
        raise Blocked("", f"this machine has less than the {count * PER_PARAMETER / 2**30:.1f} GiB that its copy would need")
    call = Call(caller(optimizer))
    words = [word for word, *_ in call.arguments()[0] if word not in KEPT and word is not None]
    if "**" in words:
        raise call.blocked("some of its arguments come with `**`")
    call.change(edits, {"optimizer_class": f"torch.optim.{name}"}, words, KEPT, function="torchao.optim.CPUOffloadOptimizer")
    call.source.imports(edits, "import torch")
    call.source.imports(edits, "import torchao.optim")


def free_bytes():
    return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")


def clipped(edits):
    raise Blocked("", "gradients are clipped after the backward pass: torchao's optimizer has taken its copies by then")
