"""Models that are not trained at all keep their weights in half precision."""

import torch

from .moments import at_first_call

CHANGE = "encoder = encoder.to(torch.bfloat16)   # the frozen model; its outputs go on in float32"
ABSENT = "no model is wholly frozen and in float32"


def apply(options, outcome):
    def act(modules, changes):
        roots = [(path, module) for path, module in modules.items() if is_frozen(module)]
        inner = {id(part) for _, module in roots for part in module.children()}
        for path, module in roots:
            if id(module) not in inner:
                module.to(torch.bfloat16)
                hooks = [
                    module.register_forward_pre_hook(outcome.party.callback(halved), with_kwargs=True),
                    module.register_forward_hook(outcome.party.callback(restored)),
                ]
                changes.note(module, lambda module, hooks=hooks: (module.float(), [hook.remove() for hook in hooks]))
                outcome.took(path)

    return at_first_call(outcome, act)


def is_frozen(module):
    parameters = list(module.parameters())
    return bool(parameters) and all(p.dtype is torch.float32 and not p.requires_grad for p in parameters)


def change(value, before, after):
    if isinstance(value, torch.Tensor):
        return value.to(after) if value.dtype is before else value
    if isinstance(value, dict):
        for key in value:
            value[key] = change(value[key], before, after)
        return value
    if type(value) in (tuple, list):
        return type(value)(change(part, before, after) for part in value)
    return value


def halved(module, args, kwargs):
    return change(args, torch.float32, torch.bfloat16), change(dict(kwargs), torch.float32, torch.bfloat16)


def restored(module, args, output):
    return change(output, torch.bfloat16, torch.float32)
