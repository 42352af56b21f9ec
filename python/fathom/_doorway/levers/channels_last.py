"""Images with their channels last in memory, which cuDNN's convolutions for tensor cores want."""

import torch

from .moments import at_first_call

CHANGE = "model = model.to(memory_format=torch.channels_last)   # and the images likewise"
ABSENT = "the model has no 2-d convolution"


def apply(options, outcome):
    def act(modules, changes):
        for path, module in modules.items():
            if type(module) is torch.nn.Conv2d and module.weight.dim() == 4:
                module.to(memory_format=torch.channels_last)
                hook = module.register_forward_pre_hook(outcome.party.callback(as_channels_last))
                changes.note(module, lambda module, hook=hook: (hook.remove(), module.to(memory_format=torch.contiguous_format)))
                outcome.took(path)

    return at_first_call(outcome, act)


def as_channels_last(module, args):
    is_image = [isinstance(value, torch.Tensor) and value.dim() == 4 for value in args]
    last = torch.channels_last
    return tuple(value.contiguous(memory_format=last) if image else value for value, image in zip(args, is_image))
