"""Kinds of tensors and ways to run them: traces, complex and short types, scalers, sparse layouts, graphs of the card."""

import copy
import warnings

import pytest
import torch
from fathom._doorway import border
from test_torch_features import check, known, model, numbers

# -- traces ------------------------------------------------------------------------------------------------------


class Small(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(3, 4, 3)
        self.last = torch.nn.Linear(4, 2)

    def forward(self, x):
        x = torch.relu(self.first(x))
        return self.last(x.mean((2, 3)))


@pytest.mark.parametrize("how", ["trace", "script", "freeze"])
def test_traces_say_nothing_of_ours(how, fresh):
    net, x = Small().cuda().eval(), numbers(2, 3, 8, 8).cuda()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = torch.jit.script(net) if how == "script" else torch.jit.trace(net, x)
        made = torch.jit.freeze(made) if how == "freeze" else made
        result = made(x)
        result.sum().backward() if how != "freeze" else None
    assert result.shape == (2, 2)
    assert not [str(each.message) for each in said if is_of_ours(each)]


def test_a_warning_names_the_line_of_the_script(fresh, request):
    """Which warnings a version of torch gives there, the CPU says."""
    said = {}
    torch.set_warn_always(True)
    request.addfinalizer(lambda: torch.set_warn_always(False))
    for device in ("cpu", "cuda"):
        weight = torch.nn.Parameter(numbers(4).to(device))
        with warnings.catch_warnings(record=True) as said[device]:
            warnings.simplefilter("always")
            float(weight.sum())
            warnings.warn("of my own", stacklevel=1)
    texts = [[str(each.message).splitlines()[0] for each in list] for list in said.values()]
    assert texts[0] == texts[1]
    assert all(each.filename == __file__ for each in said["cuda"]), [str(each) for each in said["cuda"]]


def picked(x):
    return x[x > 0.2], torch.nonzero(x > 0.5)


def test_a_trace_holds_nothing_of_ours(fresh):
    """What is computed on the CPU, to know how many a mask keeps, is no part of it."""
    x = numbers(1000)
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        made = torch.jit.trace(picked, x.cuda())
    assert not [str(each.message) for each in said if is_of_ours(each)]
    expected = torch.jit.trace(picked, x)
    names = [[node.kind() for node in trace.graph.nodes()] for trace in (made, expected)]
    assert names[0] == names[1] and "aten::index" in names[0]


def is_of_ours(warning):
    folder = "/python/fathom/"
    return folder in warning.filename or folder in str(warning.message) or issubclass(warning.category, torch.jit.TracerWarning)


def test_what_is_traced_gives_what_the_cpu_gives(fresh):
    net, x = Small().eval(), numbers(2, 3, 8, 8)
    traced = torch.jit.trace(copy.deepcopy(net).cuda(), x.cuda())
    value = known(traced(x.cuda()))
    assert value is None or torch.allclose(value, net(x), atol=1e-4)


# -- types ---------------------------------------------------------------------------------------------------------

COMPLEX = {
    "fft": lambda to: torch.fft.fft(to(numbers(8))),
    "rfft and back": lambda to: torch.fft.irfft(torch.fft.rfft2(to(numbers(4, 6))), 24),
    "abs and angle": lambda to: [function(complex_numbers(to)) for function in (torch.abs, torch.angle)],
    "conj": lambda to: [complex_numbers(to).conj(), complex_numbers(to).conj() * 2, complex_numbers(to).conj().resolve_conj()],
    "parts": lambda to: [complex_numbers(to).conj().imag, torch.view_as_real(complex_numbers(to))],
    "write through a conj": lambda to: written_through(complex_numbers(to)),
    "matmul": lambda to: complex_numbers(to).view(2, 3) @ complex_numbers(to).view(2, 3).mH,
    "inverse": lambda to: torch.linalg.pinv(complex_numbers(to).view(2, 3)),
    "gradient": lambda to: gradient(lambda x: (x * x.conj()).abs().sum(), complex_numbers(to)),
    "gradient of fft": lambda to: gradient(lambda x: torch.fft.fft(x).abs().sum(), to(numbers(8))),
}


def complex_numbers(to):
    return to(torch.complex(numbers(6), numbers(6, seed=1)))


def written_through(x):
    x.conj().mul_(2j)
    return x


def gradient(function, x):
    x.requires_grad_()
    function(x).backward()
    return x.grad


@pytest.mark.parametrize("name", COMPLEX)
def test_complex_numbers(name, fresh):
    check(COMPLEX[name])


def test_a_mode_of_ours_changes_no_gradient_of_the_cpu(fresh):
    """PyTorch's `pinv` of complex numbers is another one while a dispatch mode is on: none of ours may be, there."""
    x = torch.complex(numbers(3, 3), numbers(3, 3, seed=1)).requires_grad_()
    torch.ones(1, device="cuda")
    torch.linalg.lstsq(x, torch.eye(3, dtype=x.dtype), driver="gels").solution.abs().sum().backward()
    wide = x.detach().to(torch.complex128).requires_grad_()
    inverse = torch.linalg.inv(wide)
    inverse.abs().sum().backward()
    torch.testing.assert_close(x.grad, wide.grad.to(x.dtype), rtol=1e-2, atol=1e-2)


EIGHT = [getattr(torch, name) for name in ("float8_e4m3fn", "float8_e5m2") if hasattr(torch, name)]
SHORT = {
    "cast": lambda to, kind: to(numbers(9)).to(kind),
    "and back": lambda to, kind: to(numbers(9)).to(kind).float() * 2,
    "bytes": lambda to, kind: to(numbers(8)).to(kind).view(torch.uint8),
    "view": lambda to, kind: to(numbers(8)).to(kind).view(2, 4).t().contiguous(),
    "from bytes": lambda to, kind: to(torch.arange(8, dtype=torch.uint8)).view(kind).to(torch.bfloat16),
    "moved": lambda to, kind: to(numbers(8).to(kind)),
}


@pytest.mark.parametrize("kind", EIGHT, ids=str)
@pytest.mark.parametrize("name", SHORT)
def test_floats_of_eight_bits(name, kind, fresh):
    check(lambda to: SHORT[name](to, kind))


# -- scalers ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("width", [8, 1500])
def test_scalers(width, fresh):
    """Of a model whose gradients are known, and of one whose are not."""
    net = model(lambda x: x.cuda(), width)
    optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0, growth_interval=2)
    scales = []
    for _ in range(4):
        with torch.autocast("cuda", torch.float16):
            loss = net(numbers(4, width).cuda()).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        norm = torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
        scales.append(scaler.get_scale())
    assert torch.isfinite(norm) and scales == [1024.0, 2048.0, 2048.0, 4096.0]


def test_a_scaler_that_finds_infinities(fresh):
    weight = torch.nn.Parameter(torch.ones(3, device="cuda"))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cuda", init_scale=1024.0)
    scaler.scale((weight * float("inf")).sum()).backward()
    scaler.step(optimizer)
    scaler.update()
    assert scaler.get_scale() == 512.0 and weight.tolist() == [1, 1, 1]


# -- sparse layouts -----------------------------------------------------------------------------------------------------


def few(*shape, seed=0):
    x = numbers(*shape, seed=seed)
    return torch.where(x > 0.3, x, torch.zeros(()))


LAYOUTS = {
    "coo": lambda x: x.to_sparse(),
    "csr": lambda x: x.to_sparse_csr(),
    "csc": lambda x: x.to_sparse_csc(),
    "bsr": lambda x: x.to_sparse_bsr((2, 2)),
    "bsc": lambda x: x.to_sparse_bsc((2, 2)),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_sparse_layouts(name, fresh):
    make = LAYOUTS[name]
    check(lambda to: make(to(few(4, 6))))
    check(lambda to: make(to(few(4, 6))).to_dense())
    check(lambda to: to(make(few(4, 6))).to_dense())
    if name in ("coo", "csr", "bsr"):
        check(lambda to: make(to(few(4, 6))) @ to(numbers(6, 3, seed=1)))


def coordinates(to):
    return to(torch.tensor([[0, 1, 1], [2, 0, 0]]))


SPARSE = {
    "made": lambda to: torch.sparse_coo_tensor(coordinates(to), to(numbers(3)), (2, 3)),
    "coalesced": lambda to: torch.sparse_coo_tensor(coordinates(to), to(numbers(3)), (2, 3)).coalesce(),
    "indices": lambda to: torch.sparse_coo_tensor(coordinates(to), to(numbers(3)), (2, 3)).coalesce().indices(),
    "dense": lambda to: torch.sparse_coo_tensor(coordinates(to), to(numbers(3)), (2, 3)).to_dense(),
    "made of rows": lambda to: torch.sparse_csr_tensor(
        to(torch.tensor([0, 1, 3])), to(torch.tensor([2, 0, 1])), to(numbers(3)), (2, 3)
    ),
    "sum of two": lambda to: (to(few(4, 6)).to_sparse() + to(few(4, 6, seed=1)).to_sparse()).to_dense(),
    "scaled": lambda to: (to(few(4, 6)).to_sparse() * 2).to_dense(),
    "transposed": lambda to: to(few(4, 6)).to_sparse().t().to_dense(),
    "sum": lambda to: torch.sparse.sum(to(few(4, 6)).to_sparse(), 0).to_dense(),
    "softmax": lambda to: torch.sparse.softmax(to(few(4, 6)).to_sparse(), 1).to_dense(),
    "mm": lambda to: torch.sparse.mm(to(few(4, 6)).to_sparse(), to(numbers(6, 3, seed=1))),
}


@pytest.mark.parametrize("name", SPARSE)
def test_sparse_tensors(name, fresh):
    check(SPARSE[name])


def test_gradients_of_sparse_products(fresh):
    def program(to):
        matrix, dense = to(few(4, 6)).to_sparse().requires_grad_(), to(numbers(6, 3, seed=1)).requires_grad_()
        torch.sparse.mm(matrix, dense).square().sum().backward()
        return [matrix.grad.to_dense(), dense.grad]

    check(program, may_be_unknown=True)


def test_gradients_through_to_sparse(fresh):
    def program(to):
        dense = to(few(4, 6)).requires_grad_()
        (dense.to_sparse() * 3).to_dense().sum().backward()
        return dense.grad

    check(program, may_be_unknown=True)


# -- graphs of the card -----------------------------------------------------------------------------------------------------


def test_a_graph_is_captured_and_launched(fresh):
    """What a launch writes is not known; before it, nothing is wrong either."""
    given, graph = numbers(8).cuda(), torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        result = given * 3
    given.copy_(numbers(8, seed=1))
    graph.replay()
    value = known(result)
    assert value is None or torch.allclose(value, numbers(8, seed=1) * 3)


@pytest.mark.skipif(torch.__version__ < "2.13", reason="this torch counts a failed capture as under way for ever")
@pytest.mark.parametrize("read", [torch.nonzero, torch.unique, torch.bincount])
def test_a_capture_in_which_something_is_read_fails_as_it_does_without_us(read, fresh):
    given, before = numbers(8).abs().long().cuda(), list(border.faults)
    with pytest.raises(RuntimeError, match="captur"), torch.cuda.graph(torch.cuda.CUDAGraph()):
        read(given)
    assert border.faults == before and read(given).is_cuda


def test_callables_made_graphs(fresh):
    net = model(lambda x: x.cuda())
    made = torch.cuda.make_graphed_callables(copy.deepcopy(net), (numbers(3, 6).cuda().requires_grad_(),))
    x = numbers(3, 6, seed=1).cuda().requires_grad_()
    result = made(x)
    result.sum().backward()
    assert x.grad.shape == x.shape and all(weight.grad is not None for weight in made.parameters())
    value = known(result)
    assert value is None or torch.allclose(value, net.cpu()(numbers(3, 6, seed=1)), atol=1e-4)


def test_padding_is_left_out_of_a_transformer(fresh):
    """Without gradients it makes a nested tensor of what is not padding: its sizes are those of the mask."""
    layer = torch.nn.TransformerEncoderLayer(16, 2, 32, batch_first=True)
    encoder = torch.nn.TransformerEncoder(layer, 1).cuda().eval()
    padding = torch.zeros(2, 10, dtype=torch.bool)
    padding[0, 5:] = True
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert encoder(numbers(2, 10, 16).cuda(), src_key_padding_mask=padding.cuda()).shape == (2, 10, 16)
        nested = torch._nested_tensor_from_mask(numbers(2, 10, 16).cuda(), ~padding.cuda(), mask_check=False)
    assert [tuple(part.shape) for part in nested.unbind()] == [(5, 16), (10, 16)]
