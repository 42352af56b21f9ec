"""Gradients of DistributedDataParallel live in its buckets, not beside them."""

import torch

from ..edits.calls import with_keywords
from .moments import replace

CHANGE = "model = DistributedDataParallel(model, gradient_as_bucket_view=True)"
ABSENT = "the script does not use DistributedDataParallel"


def apply(options, outcome):
    def make(inner):
        def __init__(this, *args, **kwargs):
            if kwargs.get("gradient_as_bucket_view"):
                outcome.reason = "gradients are views of the buckets already"
            else:
                outcome.took("DistributedDataParallel")
                outcome.edits.contain(with_keywords, {"gradient_as_bucket_view": "True"}, given=kwargs)
            inner(this, *args, **{**kwargs, "gradient_as_bucket_view": True})

        return __init__

    return replace(outcome, torch.nn.parallel.DistributedDataParallel, "__init__", make)
