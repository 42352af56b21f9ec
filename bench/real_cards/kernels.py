"""Operators of which Liger-Kernel published peaks, written anew: `bench/data/published/README.md` says how that is known.

    python kernels.py ROWS.json PEAKS.json [LIGER]

Writes the peak in MiB of each row. LIGER is a folder with the package `liger_kernel` of the rows' commit; only the rows
of the provider `liger` need it.
"""

import importlib
import json
import statistics
import sys
import types
from pathlib import Path

import torch
from torch import nn
from torch.nn import functional

# The published number is a median of ten repeats; only the first differs, before there are gradients.
REPEATS = 3


class Gated(nn.Module):
    """The feed-forward block of Llama."""

    def __init__(self, hidden, inner, activation):
        super().__init__()
        self.gate_proj = nn.Linear(hidden, inner, bias=False)
        self.up_proj = nn.Linear(hidden, inner, bias=False)
        self.down_proj = nn.Linear(inner, hidden, bias=False)
        self.activation = activation

    def forward(self, x):
        return self.down_proj(self.activation(self.gate_proj(x)) * self.up_proj(x))


class RmsNorm(nn.Module):
    """Llama's, which computes in fp32."""

    def __init__(self, hidden):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(hidden))

    def forward(self, hidden_states):
        dtype = hidden_states.dtype
        hidden_states = hidden_states.to(torch.float32)
        variance = hidden_states.pow(2).mean(-1, keepdim=True)
        hidden_states = hidden_states * torch.rsqrt(variance + 1e-6)
        return self.weight * hidden_states.to(dtype)


class Sparsemax(nn.Module):
    def forward(self, x):
        in_order, _ = torch.sort(x, dim=-1, descending=True)
        sums = torch.cumsum(in_order, dim=-1)
        ranks = torch.arange(1, x.size(-1) + 1, device=x.device, dtype=x.dtype).view(1, -1)
        bound = 1 + ranks * in_order
        support = bound > sums
        count = support.sum(dim=-1, keepdim=True).clamp(min=1)
        total = (in_order * support).sum(dim=-1, keepdim=True)
        threshold = (total - 1) / count
        return torch.clamp(x - threshold, min=0)


class MultiTokenAttention(nn.Module):
    """Scores of attention, masked, through a convolution."""

    def __init__(self, channels, size):
        super().__init__()
        self.weight = nn.Parameter(torch.empty(channels, channels, size, size))
        self.bias = nn.Parameter(torch.empty(channels))
        self.size = size

    def forward(self, scores):
        length = scores.shape[-1]
        mask = torch.tril(torch.ones(length, length, dtype=torch.bool, device=scores.device)).view(1, 1, length, length)
        lowest = torch.tensor(-1e9, device=scores.device, dtype=scores.dtype)
        zero = torch.tensor(0.0, device=scores.device, dtype=scores.dtype)
        masked = scores.masked_fill(~mask, lowest)
        weights = functional.softmax(masked, dim=-1)
        mixed = functional.conv2d(weights, self.weight, self.bias, padding=self.size // 2)
        return mixed.masked_fill(~mask, zero)


def liger(module, name):
    """A class of the package, without what its `__init__` imports: all of transformers."""
    if "liger_kernel.transformers" not in sys.modules:
        package = importlib.import_module("liger_kernel")
        bare = types.ModuleType("liger_kernel.transformers")
        bare.__path__ = [f"{folder}/transformers" for folder in package.__path__]
        sys.modules[bare.__name__] = bare
    return getattr(importlib.import_module(f"liger_kernel.transformers.{module}"), name)


def gated(module, name, activation):
    """One of the two is on the card."""

    def operator(is_liger, asked, dtype):
        sizes = {name: asked[name] for name in ("hidden_size", "intermediate_size", "hidden_act")}
        if is_liger:
            layer = liger(module, name)(types.SimpleNamespace(**sizes))
        else:
            layer = Gated(sizes["hidden_size"], sizes["intermediate_size"], activation)
        return layer.to(dtype)

    return operator


def beside(ours, theirs):
    """Both are on the card, whichever is measured; their parameters are of the same sizes."""

    def operator(is_liger, asked, dtype):
        measured, other = (theirs if is_liger else ours)(asked), ours(asked)
        return lambda x, other=other: measured(x)

    return operator


def multi_token(is_liger, asked, dtype):
    channels, size = asked["C_in"], asked["K"]

    def theirs():
        return liger("multi_token_attention", "LigerMultiTokenAttention")(channels, channels, size, padding=size // 2)

    def ours():
        return MultiTokenAttention(channels, size)

    measured, other = (theirs if is_liger else ours)().to(dtype), ours().to(dtype)
    return lambda x, other=other: measured(x)


def cross_entropy(is_liger, asked, dtype):
    rows = asked["B"] * asked["T"]
    target = torch.randint(asked["x"], (rows, 1)).squeeze(1)
    loss = liger("cross_entropy", "LigerCrossEntropyLoss")() if is_liger else nn.CrossEntropyLoss()
    return lambda x: loss(x, target)


def plain(ours, module, name):
    def operator(is_liger, asked, dtype):
        return liger(module, name)() if is_liger else ours()

    return operator


def from_rows(asked):
    return asked["M"], asked["x"]


def layer_norms():
    return beside(
        lambda asked: nn.LayerNorm(asked["x"], eps=asked["eps"]),
        lambda asked: liger("layer_norm", "LigerLayerNorm")(hidden_size=asked["x"]),
    )


def rms_norms():
    return beside(
        lambda asked: RmsNorm(asked["x"]),
        lambda asked: liger("rms_norm", "LigerRMSNorm")(hidden_size=asked["x"], eps=asked["eps"]),
    )


# By kernel: the operator, the shape of its input, and when the gradient of its result is made: before, or in each repeat.
KERNELS = {
    "cross_entropy": (cross_entropy, lambda asked: (asked["B"] * asked["T"], asked["x"]), None),
    "geglu": (
        gated("geglu", "LigerGEGLUMLP", nn.GELU(approximate="tanh")),
        lambda asked: (asked["bsz"], asked["x"], asked["hidden_size"]),
        "repeat",
    ),
    "swiglu": (
        gated("swiglu", "LigerSwiGLUMLP", nn.SiLU()),
        lambda asked: (asked["B"], asked["x"], asked["hidden_size"]),
        "repeat",
    ),
    "layer_norm": (layer_norms(), from_rows, "before"),
    "rms_norm": (rms_norms(), from_rows, "before"),
    "multi_token_attention": (
        multi_token,
        lambda asked: (asked["B"], asked["C_in"], asked["x"], asked["x"]),
        "before",
    ),
    "sparsemax": (
        plain(Sparsemax, "sparsemax", "LigerSparsemax"),
        lambda asked: (asked["B"] * asked["T"], asked["x"]),
        "before",
    ),
    # Their script takes the size for the whole shape.
    "softmax": (plain(lambda: nn.Softmax(dim=-1), "softmax", "LigerKernelSoftmax"), lambda asked: (asked["x"],), "repeat"),
}


def measured(row):
    """The median peak of a row, as their `_test_memory` takes it."""
    make, shape, gradient = KERNELS[row["kernel"]]
    asked = json.loads(row["config"]) | {"x": int(row["x_value"])}
    dtype = getattr(torch, asked.get("dtype", "torch.float32").removeprefix("torch."))
    with torch.device("cuda"):
        x = torch.randn(shape(asked), dtype=dtype)
        given = torch.randn_like(x) if gradient == "before" or row["mode"] == "backward" else None
        x.requires_grad_(True)
        operator = make(row["provider"] == "liger", asked, dtype)
        result = operator(x) if row["mode"] == "backward" else None

    def backward(result):
        if gradient is None:
            result.backward()
        else:
            result.backward(torch.randn_like(result) if given is None else given, retain_graph=True)

    def repeat():
        if row["mode"] == "backward":
            backward(result)
        elif row["mode"] == "forward":
            operator(x)
        else:
            backward(operator(x))

    return statistics.median(peak(repeat) for _ in range(REPEATS))


def peak(run):
    torch.cuda.reset_peak_memory_stats()
    run()
    return torch.cuda.max_memory_allocated() / 2**20


def main(rows, peaks, packages=None):
    if packages:
        sys.path.insert(0, packages)
    found, kernel = [], None
    for row in json.loads(Path(rows).read_text()):
        if row["kernel"] != kernel:
            # Each kernel has a script of its own, in which cuBLAS has no workspaces before its first matrix product.
            torch._C._cuda_clearCublasWorkspaces()
        kernel = row["kernel"]
        found.append(measured(row))
    Path(peaks).write_text(json.dumps(found))


if __name__ == "__main__":
    main(*sys.argv[1:])
