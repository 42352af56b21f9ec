"""Weights of few bits: what a packed tensor stands for, and the scales that belong to it.

bitsandbytes keeps a parameter of bytes whose `quant_state` has the shape and the scales of the weight. GPTQ, AWQ and their
like have layers without parameters: buffers of integers (`qweight`) and scales, and the layer says its width. Tensor classes
such as torchao's say their true shape themselves.
"""

import math

import torch

from ..storages import elements

# Buffers of a layer that has a `qweight`.
PARTS = ("qweight", "qzeros", "scales", "g_idx", "zeros")

# What such layers call their width.
WIDTHS = (("in_features", "out_features"), ("infeatures", "outfeatures"), ("input_size", "output_size"))


def stands_for(parameter):
    """How many numbers of the weight a parameter holds."""
    shape = getattr(getattr(parameter, "quant_state", None), "shape", None)
    return math.prod(shape) if shape else elements(parameter)


def scales(name, parameter):
    """(name, tensor) of what is needed to unpack a parameter: scales, the scales of those, tables of values."""
    state, path = getattr(parameter, "quant_state", None), name
    while state is not None:
        for key in ("absmax", "code", "offset"):
            tensor = getattr(state, key, None)
            if isinstance(tensor, torch.Tensor):
                yield f"{path}.{key}", tensor
        state, path = getattr(state, "state2", None), f"{path}.state2"


def is_part(module, name):
    """Whether a buffer of a module is a part of its packed weight."""
    return name in PARTS and isinstance(getattr(module, "qweight", None), torch.Tensor)


def layers(root):
    """How many numbers each layer of a model holds whose weight is packed into buffers."""
    for module in root.modules():
        if is_part(module, "qweight"):
            for names in WIDTHS:
                width = [getattr(module, name, None) for name in names]
                if all(isinstance(size, int) for size in width):
                    yield math.prod(width)
                    break
