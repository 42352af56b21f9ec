"""What is seen of a script beside its memory; the kinds are described in `crates/recording/src/facts.rs`.

Facts are texts: no tensor and no module is held.
"""

import itertools
import math
import os
import re

import torch

# Functions of two tensors whose result has the sizes of both.
OUTER = {
    getattr(owner, name)
    for owner in (torch, torch.Tensor)
    for name in "add sub mul div eq ne lt gt maximum minimum atan2 __sub__ __rsub__ __add__ __mul__ __truediv__".split()
    if hasattr(owner, name)
}

# Products of two tensors: of points, one number for each pair of them.
PRODUCTS = (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__, torch.bmm, torch.Tensor.bmm, torch.mm, torch.Tensor.mm)
# So many coordinates a point has, with the time at most; a product over one is of angles by frequencies, say.
COORDINATES = range(2, 5)

# Functions that copy what they are given, or may.
COPIES = {
    getattr(torch.Tensor, name)
    for name in "clone contiguous to float half bfloat16 double type reshape repeat flatten".split()
}

# A result this many times as large as either side is noted, if it has this many elements.
SPREAD, WORTH = 4, 1 << 16

# Of each kind at most this many values: a model may have thousands of modules.
MOST = 2000

# Casts between the maker of a tensor and its user.
PASSES = ("ToCopyBackward0",)

INTERPOLATION = "Upsample"

# What models call a switch for checkpointing: `gradient_checkpointing`, `use_checkpoint`, `with_cp`, `checkpoint_activations`.
# Other names with the word are of files (`save_checkpoint`) or of how one is read (`normalize_checkpoint_scalars`).
SWITCH = re.compile(
    r"_*((use|enable|do|with)_)?((grad|gradient|activation|act)_)?(checkpoint(ing|ed)?|ckpt)(_enabled|_activations|_blocks|_layers)?"
    r"|with_cp"
)


class Facts:
    def __init__(self, modules):
        self.modules = modules
        self.of_kind = {}  # kind -> {value: None}, in order
        self.asked = set()  # modules whose arguments were looked at
        self.caches = None  # see caches.py
        self.had_gradient = set()  # ids of parameters that an optimizer found with a gradient
        self.evaluated = None  # a model called in evaluation mode with gradients; unless a backward pass follows

    def add(self, kind, value):
        values = self.of_kind.setdefault(kind, {})
        if len(values) < MOST:
            values[value] = None

    # -- calls --------------------------------------------------------------------------------------

    def function(self, module, func, args, kwargs):
        """One of `LOOKS` is called. Arguments that it will refuse are its own matter."""
        try:
            LOOKS[func](self, module, func, args, kwargs)
        except (AttributeError, IndexError, RuntimeError, TypeError, ValueError):
            pass

    def attention(self, module, _, args, kwargs):
        """`scaled_dot_product_attention(query, key, value, attn_mask, dropout_p, …)`"""
        if len(args) < 2:
            return
        query, key = args[0], args[1]
        mask = args[3] if len(args) > 3 else kwargs.get("attn_mask")
        dropout = args[4] if len(args) > 4 else kwargs.get("dropout_p", 0.0)
        words = {
            "module": self.modules.paths[module] or "-",
            "q": query.shape[-2],
            "k": key.shape[-2],
            "heads": query.shape[-3] if query.dim() > 3 else 1,
            "groups": key.shape[-3] if key.dim() > 3 else 1,
            "dim": query.shape[-1],
            "dtype": str(query.dtype).removeprefix("torch."),
            "mask": "no" if mask is None else "learned" if mask.requires_grad else "yes",
            "dropout": dropout,
            "grad": "yes" if torch.is_grad_enabled() else "no",
        }
        self.add("sdpa", " ".join(f"{key}={value}" for key, value in words.items()))

    def unfolded(self, module, _, args, kwargs):
        """`im2col(input, kernel, dilation, padding, stride)`: how many times each number is written."""
        if len(args) < 5 or not all(isinstance(pair, (tuple, list)) and len(pair) == 2 for pair in args[1:5]):
            return
        sizes = args[0].shape[-2:]
        places = [
            (size + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
            for size, kernel, dilation, padding, stride in zip(sizes, *args[1:5])
        ]
        columns = args[0].shape[-3] * math.prod(args[1])
        times = math.prod(places) * math.prod(args[1]) / max(math.prod(sizes), 1)
        self.add("unfolded", f"module={self.modules.paths[module] or '-'} columns={columns} times={times:.1f}")

    def one_hot(self, module, _, args, kwargs):
        """`one_hot(indices, num_classes)`"""
        classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
        if args and isinstance(classes, int) and classes > 0:
            shape = "x".join(map(str, (*args[0].shape, classes)))
            self.add("one_hot", f"module={self.modules.paths[module] or '-'} shape={shape}")

    def copied(self, module, _, args, kwargs):
        """A copy of what no function has made: an input. Copies of results are told by what autograd keeps."""
        source = args[0] if args else None
        if isinstance(source, torch.Tensor) and source.grad_fn is None and source.is_cuda and source.numel() >= WORTH:
            self.add("copied", f"module={self.modules.paths[module] or '-'} elements={source.numel()}")

    def outer(self, module, func, args, kwargs):
        """Two tensors that are broadcast against each other: the result is larger than both."""
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

    def joined(self, module, _, args, kwargs):
        self.caches.joined(module, args, kwargs)

    def distances(self, module, func, args, kwargs):
        """`cdist(one, other)`: as many numbers as there are pairs."""
        if len(args) > 1:
            shape = "x".join(map(str, (*args[0].shape[:-1], args[1].shape[-2])))
            self.add("outer", f"module={self.modules.paths[module] or '-'} operator=cdist shape={shape}")

    def products(self, module, func, args, kwargs):
        """`-2 * one @ other.mT` of points, as distances are computed by hand; a layer's weights are no points."""
        one, other = args[:2]
        if min(one.dim(), other.dim()) < 2 or one.shape[-1] not in COORDINATES or is_weight(one) or is_weight(other):
            return
        shape = (*torch.broadcast_shapes(one.shape[:-2], other.shape[:-2]), one.shape[-2], other.shape[-1])
        elements = math.prod(shape)
        if elements >= WORTH and elements >= SPREAD * max(one.numel(), other.numel()):
            words = "x".join(map(str, shape))
            self.add("outer", f"module={self.modules.paths[module] or '-'} operator={func.__name__} shape={words}")

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

    def trains(self):
        """A backward pass came after all: what was called was not evaluated."""
        self.evaluated = None
        self.of_kind.pop("evaluated_with_grad", None)

    def backward_begins(self, keeps_graph, makes_graph, where):
        """A graph of the graph needs it kept; else somebody asked for that."""
        self.evaluated = None
        if keeps_graph or makes_graph:
            self.add("differentiated" if makes_graph else "retained", where)

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

    def convolution(self, node, module):
        """Whether an interpolation enlarged what a convolution keeps."""
        source = node.next_functions[0][0] if node.next_functions else None
        while source is not None and source.name() in PASSES:
            source = source.next_functions[0][0]
        if source is not None and source.name().startswith(INTERPOLATION) and is_enlarged(source):
            self.add("upsampled", self.modules.paths[module])

    # -- the model --------------------------------------------------------------------------------------

    def look(self, optimized):
        """What modules are now; says nothing if they are gone. `optimized` are parameters that optimizers have."""
        frozen, untrained, switched, is_there = {}, {}, {}, False
        optimized = self.owned(optimized)
        for reference, number in list(self.modules.known.values()):
            module = reference and reference()
            if module is None or number not in self.asked:  # a copy of the model that nobody calls
                continue
            is_there = True
            frozen.update(dict.fromkeys(map(self.path, self.frozen_in(module))))
            untrained.update(dict.fromkeys(map(self.path, self.untrained_in(module, optimized))))
            self.sizes_of(module)
            if any(map(is_channels_last, module._parameters.values())):
                self.add("channels_last", "on")
            if any(value is True and SWITCH.fullmatch(name) for name, value in vars(module).items()):
                switched[self.modules.paths[number]] = None
        frozen.pop(None, None)
        untrained.pop(None, None)
        if is_there:
            for kind, values in (("frozen", frozen), ("untrained", untrained), ("checkpointing", switched)):
                self.of_kind[kind] = dict(list(values.items())[:MOST])
        if torch.backends.cudnn.benchmark:
            self.add("cudnn_benchmark", "on")
        if "expandable_segments:True" in allocator_settings():
            self.add("expandable_segments", "on")

    def look_at_copies(self, copies):
        """Which copies of a model run while it is trained: a teacher or a target network does, an average does not."""
        for prefix, reference in copies.items():
            module = reference()
            entries = (self.modules.known.get(id(part)) for part in (module.modules() if module is not None else ()))
            if any(entry and entry[1] in self.asked for entry in entries):
                self.add("copy_called", prefix)

    def sizes_of(self, module):
        """Whole numbers that a module has as attributes: a size with the same number may be a multiple of it."""
        for name, value in vars(module).items():
            if type(value) is int and value > 1 and not name.startswith("_"):
                self.add("size", f"{name}={value}")

    def gradients_of(self, optimizer):
        """A GAN switches its networks off in turn: who ever had a gradient at a step is not frozen."""
        parameters = (p for group in optimizer.param_groups for p in group["params"])
        self.had_gradient.update(id(parameter) for parameter in parameters if parameter.grad is not None)

    def is_trained(self, parameter):
        return parameter.requires_grad or id(parameter) in self.had_gradient

    def frozen_in(self, module):
        """A module whose parameters are all frozen, with all in it: an activation function between frozen layers too."""
        parameters = list(module.parameters())
        return module.modules() if parameters and not any(map(self.is_trained, parameters)) else ()

    def owned(self, optimized):
        """Their ids, if modules have them all: of flat parameters, or wide copies of short ones, no module knows."""
        modules = [reference and reference() for reference, _ in list(self.modules.known.values())]
        here = {id(parameter) for module in modules if module is not None for parameter in module._parameters.values()}
        wanted = {id(parameter) for parameter in optimized if parameter.is_cuda}
        return wanted if wanted <= here else set()

    def untrained_in(self, module, optimized):
        """A module that autograd follows for parameters which no optimizer has, with all in it."""
        parameters = list(module.parameters()) if optimized else ()
        is_idle = any(p.requires_grad for p in parameters) and not any(id(p) in optimized for p in parameters)
        return module.modules() if is_idle else ()

    def path(self, module):
        entry = self.modules.known.get(id(module))
        return self.modules.paths[entry[1]] if entry else None

    def table(self):
        return {kind: list(values) for kind, values in self.of_kind.items()}


def allocator_settings():
    return os.environ.get("PYTORCH_ALLOC_CONF") or os.environ.get("PYTORCH_CUDA_ALLOC_CONF") or ""


def is_channels_last(parameter):
    return (
        parameter is not None
        and parameter.dim() == 4
        and not parameter.is_contiguous()
        and parameter.is_contiguous(memory_format=torch.channels_last)
    )


def is_weight(tensor):
    """A parameter, or a view of one."""
    return isinstance(tensor, torch.nn.Parameter) or isinstance(tensor._base, torch.nn.Parameter)


def may_enlarge(name):
    """Whether a node of this name is an interpolation, or may be a cast of its result."""
    return name.startswith(INTERPOLATION) or name in PASSES


def is_enlarged(node):
    """Whether an interpolation's result is larger than its input; yes if its node does not say."""
    before, after = (getattr(node, f"_saved_{name}", None) for name in ("self_sym_sizes", "output_size"))
    if before is None:
        before = getattr(node, "_saved_input_sym_sizes", None)
    return not before or not after or math.prod(after) > math.prod(before[2:])


# Functions whose arguments are looked at.
LOOKS = {
    **dict.fromkeys(OUTER, Facts.outer),
    **dict.fromkeys(COPIES, Facts.copied),
    torch.nn.functional.scaled_dot_product_attention: Facts.attention,
    torch._C._nn.im2col: Facts.unfolded,
    torch.nn.functional.one_hot: Facts.one_hot,
    torch._C._VariableFunctions.cdist: Facts.distances,
    torch.cdist: Facts.distances,
    **dict.fromkeys(PRODUCTS, Facts.products),
    **dict.fromkeys((torch.cat, torch.concat, torch.concatenate), Facts.joined),
}
