"""Moments of Adam in eight bits. Only with a package that has such an optimizer."""

import importlib.util

CHANGE = "optimizer = bitsandbytes.optim.AdamW8bit(model.parameters(), lr=…)"

PACKAGES = ("bitsandbytes", "torchao")


def apply(options, outcome):
    found = [name for name in PACKAGES if importlib.util.find_spec(name) is not None]
    # Their kernels are compiled for real cards; what they allocate on the phantom was never compared.
    outcome.reason = (
        f"{found[0]} is installed, but fathom cannot try it" if found else f"none of {', '.join(PACKAGES)} is installed"
    )
    return lambda: None
