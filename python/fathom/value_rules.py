"""Which torch functions need more than "run it, then fill in the result", and how each is treated.

A rule is `rule(values, func, args, kwargs) -> result`; it is only asked when a tensor on the card is
among the arguments.
"""

import torch

T = torch.Tensor

# Results that cannot hold tensors.
NOT_TENSORS = (bool, int, float, complex, str, torch.Size, torch.dtype, torch.device, torch.layout, type(None))


def _getters():
    """Attributes that say something about a tensor, not about its values: by far the most calls."""
    names = "shape device dtype is_cuda requires_grad grad_fn ndim layout is_leaf is_sparse is_quantized is_meta"
    names += " grad _grad data _base itemsize nbytes is_nested is_mkldnn is_cpu is_xla names _version retains_grad output_nr"
    found = {getattr(T, name).__get__ for name in names.split() if hasattr(T, name)}
    # These give a tensor another part, they compute nothing; `zero_grad` does it to every parameter.
    found |= {getattr(T, name).__set__ for name in ("grad", "data", "requires_grad")}
    methods = "size dim numel stride storage_offset is_contiguous data_ptr element_size is_floating_point is_complex"
    methods += " untyped_storage is_conj is_neg __len__ get_device nelement ndimension register_hook requires_grad_"
    methods += " register_post_accumulate_grad_hook is_inference is_shared is_pinned type has_names is_same_size"
    found |= {getattr(T, name) for name in methods.split() if hasattr(T, name)}
    return found | {torch.is_complex, torch.is_floating_point, torch.numel}


PLAIN_GETTERS = _getters()

# Numbers for Python itself. Optimizers keep their counts of steps on the CPU and read one for each parameter.
READERS = {T.item, T.tolist, T.__bool__, T.__int__, T.__float__, T.__index__}

# What is empty has no values yet: computing it would only touch memory, page by page. Pieces of a tensor hold what it
# holds, and there may be thousands of them.
NOTHING_TO_FILL = {torch.empty, torch.empty_like, torch.empty_strided, T.new_empty, T.new_empty_strided}
NOTHING_TO_FILL |= {getattr(owner, name) for owner in (torch, T) for name in ("chunk", "split", "unbind")}

RANDOM = ("rand", "normal", "uniform", "bernoulli", "dropout", "multinomial", "poisson", "exponential",
          "cauchy", "geometric", "log_normal", "rrelu")  # fmt: skip


def is_random(func):
    name = getattr(func, "__name__", "")
    return any(word in name for word in RANDOM)


# Operators of backward passes whose inputs are gradients and what functions have filled in, so that the
# CPU kernel is safe on them. What reads hidden results of a CUDA kernel (indices of pooling, statistics of
# norms, states of fused kernels) is not here: those were never computed.
SAFE_IN_BACKWARD = set(
    """
    add add_ sub mul mul_ div neg abs sgn sign exp log sqrt rsqrt pow sin cos tanh sigmoid clamp where square
    mm bmm addmm matmul dot mv sum mean expand sum_to_size view _unsafe_view reshape t transpose permute
    squeeze unsqueeze select slice cat stack split clone copy_ contiguous detach alias _to_copy to ones_like
    zeros_like zeros ones new_zeros new_ones full_like empty_like new_empty_strided fill_ zero_ masked_fill
    masked_fill_ index index_put index_put_ _index_put_impl_ index_select index_add index_add_ gather scatter
    scatter_add select_backward slice_backward threshold_backward tanh_backward sigmoid_backward
    gelu_backward silu_backward leaky_relu_backward elu_backward hardtanh_backward softplus_backward
    mse_loss_backward smooth_l1_loss_backward _softmax_backward_data _log_softmax_backward_data
    embedding_dense_backward cumprod cumsum flip prod roll tril triu diagonal_backward eq ne lt le gt ge logical_not bitwise_not isnan isinf
    """.split()
)


# -- rules ------------------------------------------------------------------------------------------


def scalar(values, func, args, kwargs):
    """Results for Python itself: numbers, truth, lists."""
    try:
        known = values.compute(func, args, kwargs)
    except Exception:
        return func(*args, **kwargs)
    func(*args, **kwargs)  # its own synchronisation and allocations
    return known


def first(values, func, args, kwargs):
    """Shapes that depend on values, of results without gradients: computed first, then placed."""
    try:
        with torch.no_grad():
            known = values.compute(func, args, kwargs)
            device = next(t for t in _cuda(args, kwargs)).device
            return values.to_card(known, device)
    except Exception:
        values.note(func)
        return func(*args, **kwargs)


def indexed(values, func, args, kwargs):
    """`x[index]` and `x[index] = y`: masks become positions, numbers on the card become numbers."""
    index = args[1]
    parts = list(index) if isinstance(index, tuple) else [index]
    replaced = []
    for part in parts:
        if isinstance(part, torch.Tensor) and part.is_cuda and part.dtype in (torch.bool, torch.uint8):
            replaced.extend(values.positions(func, part) if part.dim() else [part])
        elif isinstance(part, torch.Tensor) and part.is_cuda and part.dim() == 0 and not part.is_floating_point():
            replaced.append(_number(values, part))
        elif isinstance(part, slice):
            replaced.append(slice(*(_number(values, end) for end in (part.start, part.stop, part.step))))
        else:
            replaced.append(part)
    args = (args[0], tuple(replaced) if isinstance(index, tuple) or len(replaced) != 1 else replaced[0], *args[2:])
    return ordinary(values, func, args, kwargs)


def masked_select(values, func, args, kwargs):
    x, mask = args[0], args[1] if len(args) > 1 else kwargs["mask"]
    x, mask = torch.broadcast_tensors(x, mask)
    return ordinary(values, T.__getitem__, (x, tuple(values.positions(func, mask))), {})


def repeat_interleave(values, func, args, kwargs):
    """Repeats on the card become positions; `index_select` does the rest, as PyTorch itself does it."""
    repeats = args[1] if len(args) > 1 else kwargs.get("repeats")
    if not isinstance(repeats, torch.Tensor):
        if isinstance(args[0], torch.Tensor) and repeats is None:
            return first(values, func, args, kwargs)
        return ordinary(values, func, args, kwargs)
    dim = args[2] if len(args) > 2 else kwargs.get("dim")
    x = args[0] if dim is not None else args[0].reshape(-1)
    dim = 0 if dim is None else dim
    try:
        counts = values.to_cpu(repeats).expand(x.shape[dim])
        positions = values.to_card(torch.repeat_interleave(counts), x.device)
    except Exception:
        values.note(func)
        return func(*args, **kwargs)
    return ordinary(values, torch.index_select, (x, dim, positions), {})


def sized(values, func, args, kwargs):
    """Factories: a size or bound that lies on the card is read first."""
    args = tuple(_number(values, value) for value in args)
    kwargs = {name: _number(values, value) for name, value in kwargs.items()}
    return ordinary(values, func, args, kwargs)


def where(values, func, args, kwargs):
    """With a condition alone it asks for positions."""
    return first(values, func, args, kwargs) if len(args) == 1 and not kwargs else ordinary(values, func, args, kwargs)


def one_hot(values, func, args, kwargs):
    """Without a number of classes it is the largest value plus one."""
    classes = args[1] if len(args) > 1 else kwargs.get("num_classes", -1)
    if classes == -1:
        try:
            classes = values.memory.alias(args[0]).max().item() + 1
        except Exception:
            values.note(func)
    return ordinary(values, func, (args[0], classes), {})


def ordinary(values, func, args, kwargs):
    return values.complete(func, args, kwargs, func(*args, **kwargs))


def _number(values, value):
    if isinstance(value, torch.Tensor) and value.is_cuda and value.dim() == 0:
        try:
            return values.memory.alias(value).item()
        except Exception:
            return value
    return value


def _cuda(args, kwargs):
    from .values import tensors

    return (t for t in tensors((*args, *kwargs.values())) if t.is_cuda)


def _table():
    table = {}

    def add(rule, *functions):
        table.update({function: rule for function in functions if function is not None})

    both = lambda name: [getattr(owner, name, None) for owner in (torch, T)]  # noqa: E731
    for name in ("item", "tolist", "__bool__", "__int__", "__float__", "__index__", "__complex__", "__contains__"):
        add(scalar, getattr(T, name, None))
    for name in ("equal", "allclose", "is_nonzero"):
        add(scalar, *both(name))
    for name in ("nonzero", "unique", "unique_consecutive", "bincount", "argwhere", "histc", "combinations", "to_sparse",
                 "to_sparse_csr", "coalesce", "_coalesced_"):  # fmt: skip
        add(first, *both(name))
    for name in ("_unique2", "unique_dim", "unique_consecutive", "_unique"):
        add(first, getattr(torch, name, None), getattr(torch._VF, name, None))
    add(indexed, T.__getitem__, T.__setitem__)
    add(masked_select, *both("masked_select"))
    add(where, torch.where)
    add(one_hot, torch.nn.functional.one_hot)
    add(repeat_interleave, *both("repeat_interleave"))
    for name in ("arange", "linspace", "logspace", "full", "zeros", "ones", "empty", "randint", "randn", "rand",
                 "randperm", "eye", "range"):  # fmt: skip
        add(sized, getattr(torch, name, None))
    return table


SPECIAL = _table()
