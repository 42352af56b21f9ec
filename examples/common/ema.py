"""The exponential moving average of a model's weights, kept on the model's device."""

import copy

import torch


class Ema:
    """A second copy of the model that follows the first: four more bytes for every fp32 parameter and buffer.

    The decay grows from 0 towards `decay` with the number of updates (`power` 0 keeps it constant).
    """

    def __init__(self, model, decay=0.9999, power=0.75):
        self.model = copy.deepcopy(model).requires_grad_(False).eval()
        self.decay, self.power = decay, power
        self.updates = 0

    @torch.no_grad()
    def update(self, model):
        """Moves the average a step towards the weights; buffers and frozen weights are taken over as they are."""
        warm = 1 - (1 + self.updates) ** -self.power if self.power else 1
        weight = 1 - min(self.decay, warm)
        for average, current in zip(self.model.parameters(), model.parameters(), strict=True):
            if current.requires_grad:
                average.lerp_(current, weight)
            else:
                average.copy_(current)
        for average, current in zip(self.model.buffers(), model.buffers(), strict=True):
            average.copy_(current)
        self.updates += 1
