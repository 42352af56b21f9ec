"""What the two precisions share: autocast from the first module that is called up to the backward pass."""

import torch

from .moments import around_forward


def apply(dtype, outcome):
    def enter(module):
        device = next((p.device.type for p in module.parameters() if p.is_cuda), None)
        if device is None:
            device = "cuda" if torch.cuda.is_initialized() else "cpu"
        if torch.is_autocast_enabled(device):
            outcome.reason = "the script uses autocast already"
            return None
        outcome.took(type(module).__name__)
        return torch.autocast(device, dtype)

    return around_forward(outcome, enter)
