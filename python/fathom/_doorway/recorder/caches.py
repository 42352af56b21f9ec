"""Keys and values of earlier tokens, which inference keeps for the next ones.

They are known by who keeps them: the caches of transformers, tensors of a module that are called so, and whatever a module
makes longer with every token by joining it with something new.
"""

import re

import torch

from ..border import guarded
from ..import_hooks import when_imported

CACHES = "transformers.cache_utils"

# What models call a cache that they make at its full length: `k_cache`, `cache_v`, `kv_cache`, `past_keys`.
NAMES = re.compile(r"(^|[._])((k|v|kv|keys?|values?)_?caches?|caches?_?(k|v|kv)|past_(keys?|values?)\w*)$")

# Batch, heads, tokens and numbers of a head; at least tokens and numbers of a batch.
FEWEST_DIMENSIONS = 3


class Caches:
    def __init__(self, recorder):
        self.recorder = recorder
        self.ends = {}  # (module, other sizes) -> lengths of what was joined last and before, and how many of a kind
        if recorder.party.is_over:
            return
        when_imported(CACHES, recorder.party.callback(self.watch, f"the import of {CACHES}"))

    @property
    def party(self):
        return self.recorder.party

    # -- transformers ---------------------------------------------------------------------------------

    def watch(self, module):
        kinds = [kind for kind in vars(module).values() if isinstance(kind, type) and issubclass(kind, module.Cache)]
        for kind in kinds:
            if "update" in vars(kind):
                self.party.around(kind, "update", after=self.updated)

    @guarded
    def updated(self, _, args, kwargs, result, error):
        """`update(self, keys, values, layer, …)` gives all keys and values of a layer."""
        if error is not None or torch.is_grad_enabled():
            return
        cache, layer = args[0], args[3] if len(args) > 3 else kwargs.get("layer_idx", 0)
        layers = getattr(cache, "layers", ())
        held = layers[layer] if len(layers) > layer else None
        for index, name in enumerate(("keys", "values")):
            tensor = getattr(held, name, None)
            tensor = tensor if isinstance(tensor, torch.Tensor) else result[index]
            if tensor.is_cuda and tensor.numel():
                self.recorder.note_taker.name("kv_cache", f"{name} of layer {layer}", tensor)
        self.say(type(cache).__name__, -2)

    # -- other models -----------------------------------------------------------------------------------

    def joined(self, module, args, kwargs):
        """`cat((past, new), dim)` in a module: what was its result for the last token, and something new."""
        parts = args[0] if args else kwargs.get("tensors", ())
        if not module or torch.is_grad_enabled() or len(parts) != 2:
            return
        past, new = parts
        dim = args[1] if len(args) > 1 else kwargs.get("dim", 0)
        if not past.is_cuda or past.dim() < FEWEST_DIMENSIONS or past.dim() != new.dim():
            return
        dim %= past.dim()
        key = (module, dim, *(size for at, size in enumerate(past.shape) if at != dim))
        length, longer = past.shape[dim], past.shape[dim] + new.shape[dim]
        last, before, count = self.ends.get(key, (None, None, 0))
        is_first = length == last  # the next token's keys; its values have the same lengths
        if is_first or length == before and count:
            count = 1 if is_first else count + 1
            path = self.recorder.modules.paths[module]
            self.recorder.note_taker.expect("kv_cache", f"cache {count} of {path}")
            self.say("joined", dim - past.dim())
        if is_first or length != before:
            last, before = longer, length
        self.ends[key] = (last, before, count)

    def of_module(self, prefix, path, module):
        """(category, name, tensor) of a module's own tensors that are called so; buffers have their names already."""
        for name, tensor in list(vars(module).items()):
            if isinstance(tensor, torch.Tensor) and tensor.is_cuda and NAMES.search(name):
                self.say("named", None)
                yield "kv_cache", prefix + f"{path}.{name}".lstrip("."), tensor

    def is_cache(self, name, tensor):
        """Whether a buffer is called so."""
        is_one = tensor.dim() >= FEWEST_DIMENSIONS and NAMES.search(name) is not None
        if is_one:
            self.say("named", None)
        return is_one

    def say(self, kind, axis):
        """Which dimension counts tokens, from the last; `-` if nobody knows."""
        self.recorder.facts.add("kv_cache", f"kind={kind} tokens={'-' if axis is None else axis}")
