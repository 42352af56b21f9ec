"""Closures of optimizers: `step(closure)` calls the script's own function, which computes the loss."""

import functools


def with_closure(args, kwargs, follow):
    """What a step is to be called with instead, so that its closure is `follow(closure)`; `None` if it has none."""
    _, *rest = args
    if rest and callable(rest[0]):
        return (args[0], follow(rest[0]), *rest[1:]), kwargs
    if callable(kwargs.get("closure")):
        return args, kwargs | {"closure": follow(kwargs["closure"])}
    return None


def around(closure, before, after):
    """The closure between two functions; also what calls it again with arguments of its own."""

    @functools.wraps(closure)
    def followed(*args, **kwargs):
        before()
        try:
            return closure(*args, **kwargs)
        finally:
            after()

    return followed
