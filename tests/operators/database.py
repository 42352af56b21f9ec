"""PyTorch's own database of operators, on the phantom and on the CPU: `fathom run -- python database.py [--every N] [--json FILE]`.

For each operator and sample, forward and backward, the results of both are compared where the phantom says that it knows
them. What it does not know is listed; what it knows and has wrong, or refuses, is a fault.
"""

import argparse
import collections
import json
import sys
import warnings

import torch
from fathom import functions
from torch.testing._internal.common_methods_invocations import op_db

# Results of these are drawn anew on each device: only their shapes are compared.
RANDOM = ("rand", "normal", "uniform", "bernoulli", "dropout", "multinomial", "poisson", "exponential", "cauchy", "geometric",
          "log_normal", "rrelu", "random", "empty", "new_empty", "gumbel", "fractional", "attention")  # fmt: skip

# Results of these are one of many that are right: signs, orders, pivots.
FREE = ("svd", "eig", "qr", "lu", "ormqr", "geqrf", "pca_lowrank", "householder", "lstsq", "pinv", "matrix_rank", "lobpcg", "ldl")

# What PyTorch itself says of operators that it has for the CPU alone.
NOT_OURS = ("from the 'CUDA' backend", "is not supported on CUDA", "expected tensor_indices_or_sections to be on cpu",
            "is not implemented")  # fmt: skip

SAMPLES = 4


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--every", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--only", default="")
    parser.add_argument("--json")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    found = {}
    chosen = [op for op in op_db if options.only in op.name][options.first :: options.every]
    for op in chosen:
        name = op.name + (f".{op.variant_test_name}" if op.variant_test_name else "")
        found[name] = judge(op)
        if options.only:
            print(name, found[name])
    count = collections.Counter(verdict for verdict, _ in found.values())
    print(json.dumps(dict(count)))
    if options.json:
        with open(options.json, "w", encoding="utf-8") as file:
            json.dump({"torch": str(torch.__version__), "operators": found}, file, indent=1)
    sys.stdout.flush()


def judge(op):
    """The worst of what its samples give."""
    dtype = next((kind for kind in (torch.float32, torch.int64, torch.bool, torch.complex64) if kind in op.dtypes), None)
    if dtype is None:
        return "skipped", "no type of numbers that both have"
    worst = ("equal", "")
    order = ("equal", "skipped", "unknown", "differs", "raises")
    try:
        samples = list(op.sample_inputs("cpu", dtype, requires_grad=False))[:SAMPLES]
    except Exception as error:
        return "skipped", f"no samples: {type(error).__name__}"
    for sample in samples:
        found = compare(op, sample, dtype)
        if order.index(found[0]) > order.index(worst[0]):
            worst = found
    return worst


def compare(op, sample, dtype):
    try:
        expected, gradients = run(op, sample, "cpu", dtype)
    except Exception as error:
        return "skipped", f"the CPU refuses it: {type(error).__name__}"
    try:
        result, own = run(op, sample, "cuda", dtype)
    except Exception as error:
        text = f"{type(error).__name__}: {str(error)[:200]}"
        return ("skipped" if any(word in text for word in NOT_OURS) else "raises"), text
    is_random = any(word in op.name for word in RANDOM)
    verdict = alike(result, expected, is_random, any(word in op.name for word in FREE))
    if verdict[0] == "equal" and own is not None and gradients is not None and not is_random:
        verdict = alike(own, gradients, False, any(word in op.name for word in FREE))
        verdict = (verdict[0], verdict[1] and f"backward: {verdict[1]}")
    return verdict


def run(op, sample, device, dtype):
    """Results, and gradients of the inputs where they can be had."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        moved = sample.transform(lambda value: fresh(value, device))
        result = op.op(moved.input, *moved.args, **moved.kwargs)
    flat = list(tensors(result))
    leaves = [x for x in tensors((moved.input, moved.args, list(moved.kwargs.values()))) if x.requires_grad]
    outputs = [x for x in flat if x.requires_grad and x.is_floating_point()]
    if not (op.supports_autograd and leaves and outputs):
        return flat, None
    try:
        gradients = torch.autograd.grad(sum(x.sum() for x in outputs), leaves, allow_unused=True)
    except Exception:
        if device == "cpu":
            return flat, None
        raise
    return flat, [x for x in gradients if x is not None]


def fresh(value, device):
    if not isinstance(value, torch.Tensor):
        return "cuda" if device == "cuda" and value == "cpu" else value
    value = value.detach().clone().to(device)
    return value.requires_grad_() if value.is_floating_point() and value.layout is torch.strided else value


def alike(found, expected, is_random, is_free):
    ledger = functions.install().ledger
    if len(found) != len(expected):
        return "differs", f"{len(found)} results for {len(expected)}"
    for one, other in zip(found, expected):
        if one.layout is not torch.strided or other.layout is not torch.strided:
            continue
        if one.shape != other.shape:
            return "differs", f"shape {tuple(one.shape)} for {tuple(other.shape)}"
        if is_random or is_free or not one.is_cuda:
            continue
        known, how = ledger.known(one.detach(), 5.0)
        if known is None:
            return "unknown", how
        if one.dtype != other.dtype:
            continue
        if not torch.allclose(known, other.detach(), rtol=1e-3, atol=1e-4, equal_nan=True):
            return "differs", "values"
    return "equal", ""


def tensors(value):
    if isinstance(value, torch.Tensor):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item)


if __name__ == "__main__":
    main()
