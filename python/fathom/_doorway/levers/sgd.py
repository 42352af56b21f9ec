"""SGD with momentum instead of Adam: one number per parameter is kept, not two. It trains differently."""

import torch

from . import other_optimizer

CHANGE = "optimizer = torch.optim.SGD(model.parameters(), lr=…, momentum=0.9)   # another learning rate is needed"
ABSENT = "no optimizer of Adam's kind was made"


def apply(options, outcome):
    defaults = torch.optim.SGD([torch.zeros(1)], lr=0.0, momentum=0.9).defaults
    return other_optimizer.apply(outcome, torch.optim.SGD, defaults)
