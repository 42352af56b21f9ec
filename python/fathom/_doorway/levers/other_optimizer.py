"""What levers share that put another optimizer in the place of the script's own."""

from ..edits.calls import with_function
from . import frameworks
from .moments import at_optimizer


def apply(outcome, kind, defaults, of_trainer=None):
    """Optimizers of a class that keeps two moments become `kind`; their learning rate and weight decay stay. Where
    transformers' Trainer makes it, `of_trainer` are the arguments that say so."""

    def of_transformers(get):
        return of_trainer if str(getattr(get("optim"), "value", get("optim"))).startswith("adamw_torch") else None

    def act(optimizer):
        name = type(optimizer).__name__
        if outcome.framework:
            return
        if type(optimizer) is kind:
            outcome.reason = f"the optimizer is {name} already"
            return
        if not name.lower().startswith(("adam", "nadam", "radam")):
            return
        written = f"{kind.__module__.partition('.')[0]}.optim.{kind.__name__}"
        outcome.edits.contain(with_function, written, ("params", "lr", "weight_decay"), optimizer)
        optimizer.__class__ = kind
        for group in optimizer.param_groups:
            kept = {key: group[key] for key in ("params", "lr", "weight_decay") if key in group}
            kept.update({key: value for key, value in group.items() if key.startswith("initial_")})
            group.clear()
            group.update(defaults, **kept)
        optimizer.defaults = {**defaults, "lr": optimizer.defaults.get("lr")}
        outcome.took(f"{name} → {kind.__name__}")

    undo = [frameworks.arguments(outcome, {"transformers": of_transformers}), at_optimizer(outcome, act)]
    return lambda: [inverse() for inverse in reversed(undo)]
