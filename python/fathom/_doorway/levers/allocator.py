"""Settings of PyTorch's caching allocator."""

import os

import torch

CHANGE = "PYTORCH_CUDA_ALLOC_CONF=…   # in the environment of the command"

NAMES = ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_ALLOC_CONF")


def apply(options, outcome):
    settings = options["settings"]
    if torch.cuda.is_initialized():
        outcome.reason = "the card is in use already"
        return lambda: None
    given = next((os.environ[name] for name in NAMES if os.environ.get(name)), "")
    if settings in given.split(","):
        outcome.reason = "the script has this setting already"
        return lambda: None
    before = {name: os.environ.get(name) for name in NAMES}
    os.environ[NAMES[0]] = ",".join(filter(None, (given, settings)))
    outcome.took(settings)

    def undo():
        for name, value in before.items():
            os.environ.pop(name, None) if value is None else os.environ.update({name: value})

    return undo
