"""The average of the weights waits in the memory of the host."""

import torch
from torch.optim.swa_utils import AveragedModel

from ..edits.calls import with_keywords
from .moments import replace

CHANGE = 'ema = AveragedModel(model, device="cpu", …)'
ABSENT = "the script has no AveragedModel; an average of its own must be moved by hand"


def apply(options, outcome):
    def make(inner):
        def __init__(this, model, device=None, *args, **kwargs):
            if device is not None and torch.device(device).type == "cpu":
                outcome.reason = "the average is on the CPU already"
            else:
                outcome.took("AveragedModel")
                outcome.edits.contain(with_keywords, {"device": '"cpu"'}, names=("model", "device"), given=kwargs)
            inner(this, model, "cpu", *args, **kwargs)

        return __init__

    return replace(outcome, AveragedModel, "__init__", make)
