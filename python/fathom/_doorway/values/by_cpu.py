"""Results that were computed by the CPU, and put on the card: autograd has not seen how, and learns of it here."""

import torch
from torch.utils._python_dispatch import _disable_current_modes

from ..guard import undisturbed

T = torch.Tensor


def made_by_cpu(values, func, args, kwargs, result):
    """The same result, with a backward pass if its arguments want gradients."""
    inputs = [value for value in (*args, *kwargs.values()) if isinstance(value, T) and value.requires_grad]
    if not inputs or not torch.is_grad_enabled():
        return result
    parts = list(result) if isinstance(result, (list, tuple)) else [result]
    with torch._C.DisableTorchFunction():
        parts = _Made.apply(_Call(values, func, args, kwargs), parts, *inputs)
    return type(result)(parts) if isinstance(result, (list, tuple)) else parts[0]


class _Call:
    """A function and its arguments; those that want gradients are not held, autograd holds them."""

    def __init__(self, values, func, args, kwargs):
        self.values, self.func = values, func
        self.args = [self.place(value) for value in args]
        self.kwargs = {name: self.place(value) for name, value in kwargs.items()}

    def place(self, value):
        return _HOLE if isinstance(value, T) and value.requires_grad else value

    def run(self, leaves):
        """On the CPU; `None` if something is not known."""
        left = iter(leaves)
        args = [next(left) if value is _HOLE else self.known(value) for value in self.args]
        kwargs = {name: next(left) if value is _HOLE else self.known(value) for name, value in self.kwargs.items()}
        result = self.func(*args, **kwargs)
        return list(result) if isinstance(result, (list, tuple)) else [result]

    def known(self, value):
        if not isinstance(value, T):
            return value
        known = self.values.value(value, 1.0)[0]
        if known is None:
            raise LookupError("a value that is not known")
        return known


# Where an argument stands that autograd holds.
_HOLE = object()


class _Made(torch.autograd.Function):
    @staticmethod
    def forward(ctx, call, parts, *inputs):
        ctx.call = call
        ctx.save_for_backward(*inputs)
        ctx.set_materialize_grads(False)
        fixed = [part for part in parts if not (part.is_floating_point() or part.is_complex())]
        ctx.mark_non_differentiable(*fixed)
        return tuple(parts)

    @staticmethod
    def backward(ctx, *gradients):
        call, inputs = ctx.call, ctx.saved_tensors
        with undisturbed(), _disable_current_modes():
            results = [torch.empty_like(value) for value in inputs]
            try:
                found = computed(call, inputs, gradients)
            except Exception:  # it cannot be had: it is unknown
                found = [None] * len(inputs)
            for result, value in zip(results, found):
                if value is None:
                    call.values.ledger.lose(result)
                else:
                    call.values.ledger.set(result, value)
        return None, None, *results


def computed(call, inputs, gradients):
    """Gradients by the CPU's own backward pass."""
    leaves = [call.known(value.detach()).clone().requires_grad_() for value in inputs]
    given = [None if gradient is None else call.known(gradient) for gradient in gradients]
    with torch.enable_grad():
        results = call.run(leaves)
    pairs = [(one, gradient) for one, gradient in zip(results, given) if gradient is not None and one.requires_grad]
    return torch.autograd.grad([one for one, _ in pairs], leaves, [gradient for _, gradient in pairs], allow_unused=True)
