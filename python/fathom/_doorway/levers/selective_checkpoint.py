"""Checkpoints that keep the results of matrix products, convolutions and attention: what is computed again is cheap."""

from . import checkpoint

CHANGE = """from torch.utils.checkpoint import checkpoint, create_selective_checkpoint_contexts
# for each module named here, where it is called; COSTLY are torch.ops.aten.mm.default and its like:
y = checkpoint(module, x, use_reentrant=False, context_fn=lambda: create_selective_checkpoint_contexts(COSTLY))"""
ABSENT = checkpoint.ABSENT


def apply(options, outcome):
    return checkpoint.apply({**options, "change": CHANGE, "keeps_products": True}, outcome)
