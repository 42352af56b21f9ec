"""What is seen of a script beside its memory; the kinds are described in `crates/recording/src/facts.rs`.

Facts are texts: no tensor and no module is held.
"""

import itertools
import math

import torch

SDPA = torch.nn.functional.scaled_dot_product_attention

# Functions of two tensors whose result has the sizes of both.
OUTER = {
    getattr(owner, name)
    for owner in (torch, torch.Tensor)
    for name in "add sub mul div eq ne lt gt maximum minimum atan2 __sub__ __rsub__ __add__ __mul__ __truediv__".split()
    if hasattr(owner, name)
}

# A result this many times as large as either side is noted, if it has this many elements.
SPREAD, WORTH = 4, 1 << 16

# Of each kind at most this many values: a model may have thousands of modules.
MOST = 2000

# Casts between the maker of a tensor and its user.
PASSES = ("ToCopyBackward0",)


class Facts:
    def __init__(self, modules):
        self.modules = modules
        self.of_kind = {}  # kind -> {value: None}, in order
        self.asked = set()  # modules whose arguments were looked at
        self.evaluated = None  # a model called in evaluation mode with gradients; unless a backward pass follows

    def add(self, kind, value):
        values = self.of_kind.setdefault(kind, {})
        if len(values) < MOST:
            values[value] = None

    # -- calls --------------------------------------------------------------------------------------

    def attention(self, module, args, kwargs):
        """`scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, …)`"""
        query, key = args[0], args[1]
        mask = args[3] if len(args) > 3 else kwargs.get("attn_mask")
        dropout = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)
        words = {
            "module": self.modules.paths[module] or "-",
            "q": query.shape[-2],
            "k": key.shape[-2],
            "heads": query.shape[-3] if query.dim() > 3 else 1,
            "dim": query.shape[-1],
            "dtype": str(query.dtype).removeprefix("torch."),
            "mask": "no" if mask is None else "learned" if mask.requires_grad else "yes",
            "dropout": dropout,
            "grad": "yes" if torch.is_grad_enabled() else "no",
        }
        self.add("sdpa", " ".join(f"{key}={value}" for key, value in words.items()))

    def outer(self, module, func, args):
        """Two tensors that are spread over each other: the result is larger than both."""
        if len(args) < 2 or not (isinstance(args[0], torch.Tensor) and isinstance(args[1], torch.Tensor)):
            return
        one, other = args[0].shape, args[1].shape
        if one == other or len(one) < 2 or len(other) < 2:
            return
        sizes = [max(a, b) for a, b in itertools.zip_longest(reversed(one), reversed(other), fillvalue=1)]
        elements = math.prod(sizes)
        if elements >= WORTH and elements >= SPREAD * max(one.numel(), other.numel()):
            shape = "x".join(map(str, reversed(sizes)))
            self.add("outer", f"module={self.modules.paths[module] or '-'} operator={func.__name__} shape={shape}")

    def module_called(self, number, module, args, kwargs):
        """Arguments that decide how a module works: looked at once."""
        self.asked.add(number)
        if isinstance(module, torch.nn.MultiheadAttention):
            wanted = args[4] if len(args) > 4 else kwargs.get("need_weights", True)
            if wanted:
                self.add("weights_wanted", self.modules.paths[number])

    def recomputed(self, number):
        self.add("recomputed", self.modules.paths[number])

    def model_evaluated(self, number, result):
        parts = result if isinstance(result, (tuple, list)) else (result,)
        if any(isinstance(part, torch.Tensor) and part.requires_grad for part in parts):
            self.evaluated = self.modules.paths[number]

    def backward_begins(self, is_retained, where):
        self.evaluated = None
        if is_retained:
            self.add("retained", where)

    def settle(self):
        """No backward pass came."""
        if self.evaluated is not None:
            self.add("evaluated_with_grad", self.evaluated)
            self.evaluated = None

    def optimizer(self, optimizer):
        group = optimizer.param_groups[0] if optimizer.param_groups else {}
        said = {None: "default", True: "yes", False: "no"}
        words = [f"{key}={said.get(group[key], 'yes')}" for key in ("foreach", "fused") if key in group]
        self.add("optimizer", " ".join([type(optimizer).__name__, *words]))

    def convolution(self, node, part):
        """Whether an interpolation made what a convolution keeps."""
        source = node.next_functions[0][0] if node.next_functions else None
        while source is not None and source.name() in PASSES:
            source = source.next_functions[0][0]
        if source is not None and source.name().startswith("Upsample"):
            self.add("upsampled", self.modules.paths[part[0]])

    # -- the model --------------------------------------------------------------------------------------

    def look(self):
        """What modules are now; says nothing if they are gone."""
        frozen, switched = {}, {}
        for reference, number in list(self.modules.known.values()):
            module = reference and reference()
            if module is None or number not in self.asked:  # a copy of the model that nobody calls
                continue
            own = list(module._parameters.values())
            own = [parameter for parameter in own if parameter is not None]
            if own and not any(parameter.requires_grad for parameter in own):
                frozen[self.modules.paths[number]] = None
            if any("checkpoint" in name and value is True for name, value in vars(module).items()):
                switched[self.modules.paths[number]] = None
        for kind, values in (("frozen", frozen), ("checkpointing", switched)):
            if values:
                self.of_kind[kind] = dict(list(values.items())[:MOST])
        if torch.backends.cudnn.benchmark:
            self.add("cudnn_benchmark", "on")

    def table(self):
        return {kind: list(values) for kind, values in self.of_kind.items()}
