"""Attention without the matrix of all pairs, where a library has a switch for it."""

import torch

from ..edits.calls import with_keywords
from ..edits.places import place_of
from .moments import at_first_call

CHANGE = "attention without its matrix: the switch of the library that it comes from"
ABSENT = "no attention of torch.nn, transformers, timm or diffusers keeps the matrix of all pairs"


def apply(options, outcome):
    def act(modules, changes):
        for path, module in modules.items():
            if not module.training:
                continue
            for of_library, change in LIBRARIES.items():
                inverse = of_library(module, outcome)
                if inverse is not None:
                    outcome.took(path)
                    outcome.change = "\n".join(dict.fromkeys([*(outcome.change or "").splitlines(), change]))
                    changes.note(module, inverse)
                    break

    return at_first_call(outcome, act)


def of_torch(module, outcome):
    """The weights of attention are asked for by default; inside torch's own layers they are not."""
    if type(module) is not torch.nn.MultiheadAttention or "forward" in vars(module):
        return None

    def make(inner):
        def forward(query, key, value, key_padding_mask=None, need_weights=True, **kwargs):
            outcome.edits.contain(with_keywords, {"need_weights": "False"}, names=WORDS)
            return inner(query, key, value, key_padding_mask=key_padding_mask, need_weights=False, **kwargs)

        return forward

    module.forward = outcome.party.replacing(module.forward, make, "attention")
    return lambda module: vars(module).pop("forward", None)


def of_timm(module, outcome):
    if getattr(module, "fused_attn", None) is not False:
        return None
    outcome.edits.contain(write, module, "{}.fused_attn = True")
    module.fused_attn = True
    return lambda module: setattr(module, "fused_attn", False)


def of_transformers(module, outcome):
    config = getattr(module, "config", None)
    if getattr(config, "_attn_implementation", None) != "eager" or not getattr(module, "_supports_sdpa", False):
        return None
    outcome.edits.contain(write, module, '{}.set_attn_implementation("sdpa")')
    config._attn_implementation = "sdpa"
    return lambda module: setattr(module.config, "_attn_implementation", "eager")


def of_diffusers(module, outcome):
    processor = getattr(module, "processor", None)
    if type(processor).__name__ != "AttnProcessor" or not hasattr(module, "set_processor"):
        return None
    from diffusers.models.attention_processor import AttnProcessor2_0

    outcome.edits.contain(write, module, "{}.set_processor(AttnProcessor2_0())")
    outcome.edits.contain(imports, module, "from diffusers.models.attention_processor import AttnProcessor2_0")
    module.set_processor(AttnProcessor2_0())
    return lambda module: module.set_processor(processor)


def write(edits, module, line):
    """A line behind the model that the module is part of."""
    place = place_of(module)
    place.write(edits, [line.format(place.expression)])


def imports(edits, module, line):
    place_of(module).source.imports(edits, line)


# The arguments of `MultiheadAttention.forward`, in their order.
WORDS = ("query", "key", "value", "key_padding_mask", "need_weights")

LIBRARIES = {
    of_torch: "attention(q, k, v, need_weights=False)   # torch.nn.MultiheadAttention",
    of_timm: "timm.layers.set_fused_attn(True)   # before the model is made",
    of_transformers: 'model = AutoModel.from_pretrained(…, attn_implementation="sdpa")',
    of_diffusers: "unet.set_attn_processor(AttnProcessor2_0())",
}
