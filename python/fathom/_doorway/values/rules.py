"""Which torch functions need more than "run it, and leave a recipe", and how each is treated.

A rule is `rule(values, func, args, kwargs) -> result`; it is only asked when a tensor on the card is among the
arguments, or one on the host that holds what is not known.
"""

import torch

from ..guard import undisturbed
from .by_cpu import made_by_cpu
from .evaluate import fill
from .stand_ins import StandIn, exact, whole
from .tokens import as_tokens

T, F = torch.Tensor, torch.nn.functional

# Seconds that numbers are worth which a function checks.
NUMBERS = 0.5


def _getters():
    """Attributes that say something about a tensor, not about its values: by far the most calls."""
    names = "shape device dtype is_cuda requires_grad grad_fn ndim layout is_leaf is_sparse is_quantized is_meta"
    names += " grad _grad data _base itemsize nbytes is_nested is_mkldnn is_cpu is_xla names _version retains_grad output_nr"
    found = {getattr(T, name).__get__ for name in names.split() if hasattr(T, name)}
    # These give a tensor another part, they compute nothing; `zero_grad` does it to every parameter.
    found |= {getattr(T, name).__set__ for name in ("grad", "data", "requires_grad")}
    methods = "size dim numel stride storage_offset is_contiguous data_ptr element_size is_floating_point is_complex"
    methods += " untyped_storage is_conj is_neg __len__ get_device nelement ndimension register_hook requires_grad_"
    methods += " register_post_accumulate_grad_hook is_inference is_shared is_pinned has_names is_same_size"
    found |= {getattr(T, name) for name in methods.split() if hasattr(T, name)}
    return found | {torch.is_complex, torch.is_floating_point, torch.numel}


PLAIN_GETTERS = _getters()

# Numbers for Python itself. Optimizers keep their counts of steps on the CPU and read one for each parameter.
READERS = {T.item, T.tolist, T.__bool__, T.__int__, T.__float__, T.__index__}

# Pieces of a tensor hold what it holds, and there may be thousands of them.
PIECES = {getattr(owner, name) for owner in (torch, T) for name in ("chunk", "split", "unbind", "tensor_split")}

# Functions that draw a token from what a model says of each: whole numbers that they give are its numbers.
DRAWS = {getattr(owner, name) for owner in (torch, T) for name in ("argmax", "multinomial", "topk", "max", "sort")}

# Functions that make a tensor on the card of numbers alone: it is known.
MAKERS = {torch.arange, torch.range}

# Functions that read from the card whether something went well: it did.
CHECKS = ("linalg_", "_linalg", "cholesky", "lu_", "svd", "eig", "qr", "lstsq", "inverse", "solve", "pinverse", "triangular",
          "slogdet", "logdet", "det", "matrix_", "ormqr", "geqrf", "cdist", "fft", "stft", "batch_norm", "embedding_bag",
          "ctc_loss", "_cudnn_ctc", "lstm", "gru", "rnn")  # fmt: skip


def only_checks(func):
    name = getattr(func, "__name__", "")
    return any(name.startswith(word) for word in CHECKS)


# Functions that bring values to the host, or leave them where they are: what is not known stays so, and nothing is decided.
COPIES = ("to", "cpu", "copy_", "numpy", "__array__", "type", "clone", "contiguous", "_to_copy")


def only_copies(func):
    return getattr(func, "__name__", "").split(".")[0] in COPIES


# -- rules ------------------------------------------------------------------------------------------


def reader(values, func, args, kwargs):
    """Results for Python itself: numbers, truth, lists."""
    from .values import FRACTION, NUMBER, aside

    x = args[0]
    # What `int(x)` gives is Python's own number: it is decided like any other that is not known.
    if func in (T.item, T.tolist) and values.generation.is_unread(x):
        return as_tokens(values.run(func, args, kwargs))
    has_fraction = x.is_floating_point() or x.is_complex()
    # A whole number of something with a fraction, as in `int(x)`, is a size or a count.
    is_for_logging = has_fraction and func not in (T.__int__, T.__index__, T.__bool__)
    may_stand_in = x.numel() == 1 or is_for_logging and not x.is_cuda
    known, how = values.value(x, FRACTION if is_for_logging else NUMBER, may_stand_in)
    values.is_reading = True
    try:
        result = values.run(func, args, kwargs)  # its own synchronisation and allocations
    finally:
        values.is_reading = False
    if known is None:
        if is_for_logging:
            with aside():
                known = torch.ones(x.shape, dtype=x.dtype, device="cpu")
        else:
            known = values.assume(x, func, how)
    elif how == "modelled" and not is_for_logging:
        values.model(func)
    elif how == "stand-in" and not is_for_logging:
        known = values.go_by_stand_in(x, known, func)
    elif how == "known":
        return result  # it has read what is known
    with aside():
        found = func(known, *args[1:], **kwargs)
    return values.stand_in(x, found, func, how) if is_for_logging and how != "granted" else found


def for_numpy(values, func, args, kwargs):
    """NumPy reads the host's memory, and nobody sees what it makes of that."""
    x = args[0]
    if not x.is_cuda and values.ledger.is_unknown(x) and values.decide_on_host(x, func, "unknown", x.numel() == 1):
        values.ledger.know_host(x)
    return values.run(func, args, kwargs)


def drawn(values, func, args, kwargs):
    """The host refuses weights of zero, which stand there for such that nobody knows."""
    x = args[0] if args else kwargs["input"]
    if not x.is_cuda and values.ledger.is_unknown(x):
        fill(x, torch.ones_like(x))
    return values.note(func, args, kwargs)


def compared(values, func, args, kwargs):
    """`equal` and the like: one truth of several tensors."""
    from .values import NUMBER

    values.is_reading = True
    try:
        values.run(func, args, kwargs)
    finally:
        values.is_reading = False
    found, is_known = values.compute(func, args, kwargs, NUMBER)
    return found if is_known or not values.tries_most() else not found  # the other way


def finite(values, func, args, kwargs):
    """What is not known counts as finite."""
    result = values.note(func, args, kwargs)
    if isinstance(result, T) and result.is_cuda and values.ledger.is_unknown(result):
        is_true = func.__name__ == "isfinite"
        values.ledger.set_made(result, torch.full, tuple(result.shape), is_true, dtype=torch.bool)
    return result


def same(values, func, args, kwargs):
    """`x == x` asks for numbers that are none."""
    result = values.note(func, args, kwargs)
    is_same = len(args) == 2 and args[0] is args[1] and not kwargs
    if is_same and isinstance(result, T) and result.is_cuda and values.ledger.is_unknown(result):
        values.ledger.set_made(result, torch.full, tuple(result.shape), func.__name__ in ("eq", "__eq__"), dtype=torch.bool)
    return result


def amp_check(values, func, args, kwargs):
    """Gradients that are not known count as finite: `found_inf` stays what it is."""
    gradients, found = args[0], args[1]
    if not any(values.ledger.is_unknown(gradient) for gradient in gradients):
        return values.note(func, args, kwargs)
    with torch._C.DisableTorchFunction():
        known, _ = values.value(found, 1.0)
        result = values.run(func, args, kwargs)
        if known is not None:
            values.ledger.set(found, known)
    return result


def shaped(values, func, args, kwargs):
    """The result's shape depends on values: these are needed first."""
    value, is_known = values.compute(func, args, kwargs)
    parts = value if isinstance(value, (tuple, list)) else (value,)
    dim = args[1] if func.__name__ == "unique_dim" else kwargs.get("dim")
    count = next((size_of(part, dim or 0) for part in parts if isinstance(part, T) and part.dim()), 0)
    return values.produce(func, args, kwargs, value, is_known, count)


def size_of(value, dim):
    """The size that a function finds out."""
    return value.shape[dim] if value.layout is torch.strided else value._nnz()


def counted(values, func, args, kwargs):
    """`bincount` reads the smallest number and the largest."""
    value, is_known = values.compute(func, args, kwargs)
    return values.produce(func, args, kwargs, value, is_known, max(value.shape[0] - 1, 0))


def indexed(values, func, args, kwargs):
    """`x[mask]` and `x[mask] = y` read how many there are."""
    index = args[1] if isinstance(args[1], tuple) else (args[1],)
    is_alone = sum(isinstance(part, (T, list)) for part in index) == 1
    if func is T.__setitem__ and is_alone and not (isinstance(args[2], T) and args[2].dim()):
        return values.note(func, args, kwargs)  # it fills where the mask is true, however often that is
    counts = [count(values, func, part) for part in index if is_mask(part)]
    result = values.with_answers(counts, func, args, kwargs)
    if counts:
        changed = args[0] if func is T.__setitem__ else result
        answer_backward(values, changed.grad_fn, counts)
    return result


def answer_backward(values, node, counts):
    """The backward pass counts the same masks again, in C++."""
    if node is None:
        return

    def before(_):
        for number in counts * 2:
            values.ledger.answer(number, 1, is_now=True)

    def after(gradients, _):
        values.ledger.answer(0, 0, is_now=True)
        for gradient in gradients:
            if gradient is not None and gradient.grad_fn is not None:
                answer_backward(values, gradient.grad_fn, counts)  # gradients of gradients

    node.register_prehook(before)
    node.register_hook(after)


def is_mask(value):
    return isinstance(value, T) and value.is_cuda and value.dtype in (torch.bool, torch.uint8) and value.dim() > 0


def count(values, func, mask):
    return int(values.to_cpu(mask, func).count_nonzero())


def masks(values, func, args):
    """How many there are in each mask that an operator of the backward pass indexes with."""
    if func._schema.name not in ("aten::index", "aten::index_put", "aten::index_put_", "aten::_index_put_impl_"):
        return []
    return [count(values, func, part) for part in args[1] if is_mask(part)]


def masked_select(values, func, args, kwargs):
    x, mask = args[0], args[1] if len(args) > 1 else kwargs["mask"]
    known = values.to_cpu(mask, func)
    count = int(known.expand(torch.broadcast_shapes(x.shape, mask.shape)).count_nonzero())
    return values.with_answers([count], func, args, kwargs)


def inverted(values, func, args, kwargs):
    """Of a mask that may turn out to be unknown: what is then assumed of it holds for its inverse."""
    result = values.note(func, args, kwargs)
    x = args[0] if args else kwargs["input"]
    are_masks = all(type(tensor) is T and tensor.dtype is torch.bool for tensor in (x, result))
    if are_masks and result.is_cuda:
        values.inverses.add(result, of=x)
    return result


def masked_scatter(values, func, args, kwargs):
    """Its backward pass picks where the mask is true."""
    result = values.note(func, args, kwargs)
    if isinstance(result, T) and result.grad_fn is not None:
        mask = args[1] if len(args) > 1 else kwargs["mask"]
        answer_backward(values, result.grad_fn, [int(values.to_cpu(mask, func).expand(result.shape).count_nonzero())])
    return result


def flattened(values, func, args, kwargs):
    """Weights of a recurrent layer are put one behind the other, where cuDNN wants them, and hold what they held."""
    with undisturbed():
        before = [weight.detach() for weight in args[0]]
    result = values.run(func, args, kwargs)
    with undisturbed():
        places = [weight.storage_offset() for weight in args[0]]
        values.ledger.set_made(result, joined, before, places, result.numel())
    return result


def joined(tensors, places, count):
    found = torch.zeros(count, dtype=tensors[0].dtype)
    for tensor, place in zip(tensors, places):
        found[place : place + tensor.numel()] = tensor.flatten()
    return found


def where(values, func, args, kwargs):
    """With a condition alone it asks for positions."""
    if len(args) == 1 and not kwargs:
        return shaped(values, func, args, kwargs)
    return values.note(func, args, kwargs)


def sized(values, func, args, kwargs):
    """A size that the function itself makes of a number with a fraction."""
    number = lambda one: float(whole(one.origins, exact(one))) if type(one) is StandIn else one  # noqa: E731
    settle = lambda one: type(one)(map(number, one)) if type(one) in (list, tuple) else number(one)  # noqa: E731
    return values.note(func, tuple(map(settle, args)), {name: settle(one) for name, one in kwargs.items()})


def one_hot(values, func, args, kwargs):
    """Without a number of classes it is the largest value plus one."""
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if isinstance(classes, T):
        classes = int(values.to_cpu(classes, func))
    if classes == -1:
        known = values.to_cpu(args[0], func)
        classes = int(known.max()) + 1 if known.numel() else 0
    return values.note(func, (args[0], classes), {})


def repeat_interleave(values, func, args, kwargs):
    """Repeats on the card are summed up, and the sum is read; then, whether none is negative."""
    repeats = args[1] if len(args) > 1 else kwargs.get("repeats")
    if repeats is None:
        repeats = args[0]
    if not isinstance(repeats, T) or kwargs.get("output_size") is not None:
        return values.note(func, args, kwargs)
    known = values.to_cpu(repeats, func)
    if repeats is not args[0] and repeats.numel() == 1:
        dim = args[2] if len(args) > 2 else kwargs.get("dim")
        count = int(known) * (args[0].numel() if dim is None else args[0].shape[dim])
    else:
        count = int(known.sum())
    return values.with_answers([count, int((known >= 0).all())], func, args, kwargs)


def product(values, func, args, kwargs):
    """The backward pass of a product looks for zeros among the factors, in C++, and goes another way if there are any."""
    result = values.note(func, args, kwargs)
    if isinstance(result, T) and result.grad_fn is not None:
        x = args[0] if args else kwargs["input"]
        zeros = x.numel() - int(values.to_cpu(x, func, assumed=_none_is_zero).count_nonzero())
        is_cumulative = func.__name__.startswith("cumprod")
        answer_backward(values, result.grad_fn, [int(zeros > 0) if is_cumulative else zeros])
    return result


def _none_is_zero(x, most):
    """Nearly always so; at most they all are."""
    return torch.full(x.shape, not most, dtype=x.dtype, device="cpu")


def multiplied(values, func, args, kwargs):
    """A product with a sparse tensor that has elements twice adds these up first: it reads how many there are then."""
    doubled = [x for x in args[:3] if isinstance(x, T) and x.layout is torch.sparse_coo and not x.is_coalesced()]
    if not doubled:
        return values.note(func, args, kwargs)
    with torch._C.DisableTorchFunction():
        indices = [x._indices() for x in doubled]
    counts = [values.to_cpu(index, func).unique(dim=1).shape[1] for index in indices]
    return values.with_answers(counts, func, args, kwargs)


def matrix_exp(values, func, args, kwargs):
    """It sorts matrices by their norms, which it reads: one after the other there is nothing to sort."""
    x = args[0] if args else kwargs["input"]
    if x.dim() == 2 or x.numel() == 0:
        return values.note(func, args, kwargs)
    each = [values.note(func, (one,), {}) for one in values.note(T.reshape, (x, (-1, *x.shape[-2:])), {})]
    return values.note(torch.stack, (each,), {}).reshape(x.shape)


def on_cpu(values, func, args, kwargs):
    """It reads so much on its way that nothing but its result is worth having."""
    value, is_known = values.compute(func, args, kwargs)
    return made_by_cpu(values, func, args, kwargs, values.settled(None, value, is_known, args[0].device))


def mode(values, func, args, kwargs):
    """It sorts and looks for what it has found, and fails if that is not there."""
    value, is_known = values.compute(func, args, kwargs)
    result = values.produce(func, args, kwargs, value, is_known, 0)
    return result if result[0].grad_fn is not None else made_by_cpu(values, func, args, kwargs, result)


def cov(values, func, args, kwargs):
    """It reads whether weights are right, and whether there are as many degrees of freedom as it takes off."""
    given = dict(zip(("input", *(() if func.__name__ == "corrcoef" else ("correction",))), args)) | kwargs
    weights = [given[name] for name in ("fweights", "aweights") if given.get(name) is not None]
    x, correction = given.get("input", args[0] if args else None), given.get("correction", 1)
    known = [values.to_cpu(weight, func, NUMBERS) for weight in weights]
    total = x.shape[-1] if x.dim() else 1
    if known:
        product = known[0] * known[-1] if len(known) == 2 else known[0]
        total = float(product.sum())
        if given.get("aweights") is not None and total:
            correction *= float((product * known[-1]).sum()) / total
    checks = len(known) * bool(x.numel()) + bool(known)
    return values.with_answers([1] * checks + [int(total <= correction)], func, args, kwargs)


def segments(values, func, args, kwargs):
    """It reads the shortest length, and whether their sum is right."""
    return values.with_answers([0, 1], func, args, kwargs)


def isin(values, func, args, kwargs):
    """It may look for different numbers in both, and reads how many there are."""
    given = [value for value in (*args, *kwargs.values()) if isinstance(value, T)]
    return values.with_answers([len(values.to_cpu(value, func).unique()) for value in given], func, args, kwargs)


def _table():
    table = {}

    def add(rule, *functions):
        table.update({function: rule for function in functions if function is not None})

    both = lambda name: [getattr(owner, name, None) for owner in (torch, T)]  # noqa: E731
    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__complex__"):
        add(reader, getattr(T, name, None))
    add(drawn, *both("multinomial"))
    add(for_numpy, T.numpy, T.__array__, T.__dlpack__)
    for name in ("equal", "allclose", "is_nonzero"):
        add(compared, *both(name))
    add(compared, T.__contains__)
    for name in ("isnan", "isinf", "isfinite"):
        add(finite, *both(name))
    for name in ("eq", "ne", "__eq__", "__ne__"):
        add(same, *both(name))
    add(amp_check, getattr(torch, "_amp_foreach_non_finite_check_and_unscale_", None))
    for name in ("nonzero", "unique", "unique_consecutive", "argwhere", "combinations", "to_sparse", "to_sparse_csr",
                 "to_sparse_csc", "to_sparse_bsr", "to_sparse_bsc", "to_sparse_coo", "coalesce", "_coalesced_"):  # fmt: skip
        add(shaped, *both(name))
    for name in ("_unique2", "unique_dim", "unique_consecutive", "_unique"):
        add(shaped, getattr(torch, name, None), getattr(torch._VF, name, None))
    add(matrix_exp, *both("matrix_exp"), torch.linalg.matrix_exp)
    add(on_cpu, *both("eig"), torch.linalg.eig, torch.linalg.eigvals)
    add(mode, *both("mode"))
    add(cov, *both("cov"), *both("corrcoef"))
    add(segments, getattr(torch, "segment_reduce", None), getattr(torch, "_segment_reduce", None))
    add(isin, torch.isin)
    add(counted, *both("bincount"))
    add(indexed, T.__getitem__, T.__setitem__)
    add(masked_select, *both("masked_select"))
    add(masked_scatter, *both("masked_scatter"), T.masked_scatter_)
    add(flattened, getattr(torch, "_cudnn_rnn_flatten_weight", None))
    for name in ("logical_not", "bitwise_not", "__invert__"):
        add(inverted, *both(name))
    add(where, torch.where)
    add(sized, *MAKERS)
    add(sized, *(getattr(torch._C._nn, name) for name in dir(torch._C._nn) if "upsample" in name))
    add(one_hot, F.one_hot)
    add(repeat_interleave, *both("repeat_interleave"))
    for name in ("prod", "cumprod"):
        add(product, *both(name))
    for name in ("mm", "matmul", "smm", "spmm", "addmm"):
        add(multiplied, *both(name))
    add(multiplied, T.__matmul__, torch.sparse.mm, torch.sparse.addmm)
    return table


SPECIAL = _table()
