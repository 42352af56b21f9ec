"""The step goes parameter by parameter: temporaries of one parameter instead of all, and more kernels."""

from .fused_optimizer import ABSENT, with_option  # noqa: F401

CHANGE = "optimizer = torch.optim.AdamW(…, foreach=False)"


def apply(options, outcome):
    return with_option(outcome, "foreach", False)
