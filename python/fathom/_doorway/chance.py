"""The same script gives the same answer in every run, also where it sets no seed.

Generators of PyTorch, Python and NumPy begin anywhere; here they begin at a fixed place. A script that seeds them keeps its
own seed: what it does after torch is imported counts, and if it may have seeded Python's or NumPy's before that (its text
up to there has the word `seed`), these are left alone.
"""

import os
import re
import sys

from .. import contract

SEED = 67280421310721


def install():
    """While torch is imported."""
    if is_off():
        return
    import torch

    torch.default_generator.manual_seed(SEED)
    if not may_be_seeded():
        import random

        from .border import DOORWAY
        from .import_hooks import when_imported

        random.seed(SEED)
        when_imported("numpy.random", DOORWAY.callback(lambda module: module.seed(SEED % (1 << 32)), "numpy's seed"))


def seed_cards():
    """When CUDA is initialised: a seed that the script has set until then is set after this."""
    import torch

    for generator in torch.cuda.default_generators if not is_off() else ():
        generator.manual_seed(SEED)


def is_off():
    return os.environ.get(contract.SEED) == "off"


def may_be_seeded():
    """Whether the script's text has to do with seeds before it imports torch; one that cannot be read may."""
    path = getattr(sys.modules.get("__main__"), "__file__", None)
    if path is None:
        return False  # `python -c`, a notebook
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return "seed" in re.split(r"^\s*(?:import|from)\s+torch\b", file.read(), maxsplit=1, flags=re.M)[0]
    except OSError:
        return True
