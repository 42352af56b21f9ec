"""Optimizers that take the place of the script's own: real ones, and stand-ins for what is not installed.

A stand-in keeps tensors of the sizes that the real one keeps and computes nothing: its peak is known, its results are not.
"""

import torch

# Smaller parameters keep their moments in 32 bits, as bitsandbytes does it; the others one scale per block.
SMALL, BLOCK = 4096, 256


def become(optimizer, kind, kept):
    """The optimizer is one of `kind` from here on, with its own groups and those of their options that are `kept`."""
    groups = [{key: value for key, value in group.items() if key in kept} for group in optimizer.param_groups]
    new = kind(groups, **{key: value for key, value in optimizer.defaults.items() if key in kept and key != "params"})
    optimizer.__class__ = type(new)
    vars(optimizer).clear()
    vars(optimizer).update(vars(new))


def put(optimizer, kind):
    """The same with a stand-in, which keeps all options."""
    optimizer.__class__ = kind
    # What torch does where an optimizer is made: the step calls the hooks by which steps are counted, else no trial ends.
    optimizer._patch_step_function()


class EightBit(torch.optim.AdamW):
    """Two moments of eight bits and their scales."""

    def step(self, closure=None):
        loss = closure() if closure is not None else None
        for group in self.param_groups:
            for p in group["params"]:
                if p.grad is not None and not self.state[p]:
                    self.state[p].update(step=0, **moments(p))
        return loss


def moments(p):
    if p.numel() < SMALL:
        return {name: torch.zeros_like(p, dtype=torch.float32) for name in ("state1", "state2")}
    kept = {name: torch.zeros_like(p, dtype=torch.uint8) for name in ("state1", "state2")}
    blocks = -(-p.numel() // BLOCK)
    return kept | {name: torch.zeros(blocks, device=p.device) for name in ("absmax1", "absmax2")}


class OnHost(torch.optim.AdamW):
    """Its state and a copy of the weights are on the host, where it steps: on the card nothing is left of it."""

    def step(self, closure=None):
        return closure() if closure is not None else None
