"""Layers whose kernels come from NVIDIA's libraries run forward and backward, and give their shapes."""

import pytest
import torch
from torch import nn
from torch.nn import functional as F

DEVICE = "cuda"


def train(module, *inputs):
    """Forward and backward; every parameter and input gets a gradient of its own shape."""
    module = module.to(DEVICE)
    inputs = [tensor.to(DEVICE) for tensor in inputs]
    inputs = [tensor.requires_grad_() if tensor.is_floating_point() else tensor for tensor in inputs]
    out = module(*inputs)
    first = out
    while not isinstance(first, torch.Tensor):
        first = first[0]
    first.float().sum().backward()
    for tensor in [*module.parameters(), *(tensor for tensor in inputs if tensor.requires_grad)]:
        assert tensor.grad.shape == tensor.shape
    return first


CONVOLUTIONS = {
    "1d": (lambda: nn.Conv1d(8, 16, 5, padding=2), (4, 8, 64), (4, 16, 64)),
    "2d": (lambda: nn.Conv2d(8, 16, 3, padding=1), (4, 8, 32, 32), (4, 16, 32, 32)),
    "3d": (lambda: nn.Conv3d(4, 8, 3), (2, 4, 8, 16, 16), (2, 8, 6, 14, 14)),
    "strided": (lambda: nn.Conv2d(8, 16, 7, stride=2, padding=3), (4, 8, 32, 32), (4, 16, 16, 16)),
    "dilated": (lambda: nn.Conv2d(8, 16, 3, padding=2, dilation=2), (4, 8, 32, 32), (4, 16, 32, 32)),
    "grouped": (lambda: nn.Conv2d(8, 16, 3, padding=1, groups=4), (4, 8, 32, 32), (4, 16, 32, 32)),
    "depthwise": (lambda: nn.Conv2d(8, 8, 5, padding=2, groups=8), (4, 8, 32, 32), (4, 8, 32, 32)),
    "pointwise_without_bias": (lambda: nn.Conv2d(8, 16, 1, bias=False), (4, 8, 32, 32), (4, 16, 32, 32)),
    "circular": (lambda: nn.Conv2d(8, 16, 3, padding=1, padding_mode="circular"), (4, 8, 32, 32), (4, 16, 32, 32)),
    "transposed_1d": (lambda: nn.ConvTranspose1d(8, 16, 4, stride=2, padding=1), (4, 8, 64), (4, 16, 128)),
    "transposed_2d": (lambda: nn.ConvTranspose2d(8, 16, 4, stride=2, padding=1), (4, 8, 32, 32), (4, 16, 64, 64)),
    "transposed_3d": (lambda: nn.ConvTranspose3d(4, 8, 2, stride=2), (2, 4, 4, 8, 8), (2, 8, 8, 16, 16)),
    "transposed_grouped": (lambda: nn.ConvTranspose2d(8, 16, 4, stride=2, groups=4), (4, 8, 32, 32), (4, 16, 66, 66)),
    "without_a_batch": (lambda: nn.Conv2d(8, 16, 3), (8, 32, 32), (16, 30, 30)),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("benchmark", [False, True], ids=["heuristics", "benchmark"])
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_convolution(kind, benchmark, dtype, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "benchmark", benchmark)
    make, shape, expected = CONVOLUTIONS[kind]
    assert train(make().to(dtype), torch.randn(*shape, dtype=dtype)).shape == expected


@pytest.mark.parametrize("deterministic", [False, True], ids=["any", "deterministic"])
@pytest.mark.parametrize("tf32", [False, True], ids=["fp32", "tf32"])
def test_convolution_in_channels_last(deterministic, tf32, monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "deterministic", deterministic)
    monkeypatch.setattr(torch.backends.cudnn, "allow_tf32", tf32)
    module = nn.Conv2d(8, 16, 3, padding=1).to(DEVICE, memory_format=torch.channels_last)
    out = train(module, torch.randn(4, 8, 32, 32).contiguous(memory_format=torch.channels_last))
    assert out.is_contiguous(memory_format=torch.channels_last)


def test_convolution_without_cudnn(monkeypatch):
    monkeypatch.setattr(torch.backends.cudnn, "enabled", False)
    assert train(nn.Conv2d(8, 16, 3), torch.randn(4, 8, 32, 32)).shape == (4, 16, 30, 30)


@pytest.mark.parametrize("options", [{}, {"bidirectional": True}, {"num_layers": 2, "dropout": 0.5}, {"batch_first": True}], ids=str)
@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN], ids=lambda kind: kind.__name__)
def test_recurrent(kind, options):
    out = train(kind(32, 64, **options), torch.randn(20, 8, 32))
    assert out.shape == (20, 8, 128 if "bidirectional" in options else 64)


def test_recurrent_with_projection_and_half_precision():
    assert train(nn.LSTM(32, 64, proj_size=16), torch.randn(20, 8, 32)).shape == (20, 8, 16)
    assert train(nn.GRU(32, 64).half(), torch.randn(20, 8, 32).half()).shape == (20, 8, 64)


def test_recurrent_in_evaluation():
    module = nn.LSTM(32, 64, num_layers=2).to(DEVICE).eval()
    with torch.no_grad():
        out, (hidden, cell) = module(torch.randn(20, 8, 32, device=DEVICE))
    assert (out.shape, hidden.shape, cell.shape) == ((20, 8, 64), (2, 8, 64), (2, 8, 64))


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU], ids=lambda kind: kind.__name__)
def test_recurrent_on_packed_sequences(kind):
    module = kind(32, 64, bidirectional=True).to(DEVICE)
    x = torch.randn(20, 3, 32, device=DEVICE, requires_grad=True)
    packed = nn.utils.rnn.pack_padded_sequence(x, torch.tensor([20, 11, 4]))
    assert packed.data.shape == (35, 32)
    out, lengths = nn.utils.rnn.pad_packed_sequence(module(packed)[0])
    out.sum().backward()
    assert out.shape == (20, 3, 128) and lengths.tolist() == [20, 11, 4] and x.grad.shape == x.shape


NORMS = {
    "batch_1d": (lambda: nn.BatchNorm1d(8), (16, 8)),
    "batch_2d": (lambda: nn.BatchNorm2d(8), (4, 8, 16, 16)),
    "batch_3d": (lambda: nn.BatchNorm3d(8), (4, 8, 4, 8, 8)),
    "group": (lambda: nn.GroupNorm(2, 8), (4, 8, 16, 16)),
    "instance": (lambda: nn.InstanceNorm2d(8, affine=True), (4, 8, 16, 16)),
    "layer": (lambda: nn.LayerNorm(32), (4, 8, 32)),
    "rms": (lambda: nn.RMSNorm(32), (4, 8, 32)),
    "local_response": (lambda: nn.LocalResponseNorm(2), (4, 8, 16, 16)),
}


@pytest.mark.parametrize("large", [False, True], ids=["small", "large"])
@pytest.mark.parametrize("kind", NORMS)
def test_normalisation(kind, large):
    make, shape = NORMS[kind]
    module = make()
    shape = (256 * shape[0], *shape[1:]) if large else shape
    assert train(module.train(), torch.randn(*shape)).shape == shape
    assert module.eval()(torch.randn(*shape, device=DEVICE)).shape == shape


def test_batch_norm_of_half_precision_in_channels_last():
    module = nn.BatchNorm2d(64).to(DEVICE)
    x = torch.randn(32, 64, 32, 32, device=DEVICE).half().to(memory_format=torch.channels_last)
    with torch.autocast(DEVICE):
        assert train(module, x).dtype == torch.float16


def attention_backends():
    from torch.nn.attention import SDPBackend

    return [SDPBackend.FLASH_ATTENTION, SDPBackend.EFFICIENT_ATTENTION, SDPBackend.MATH, SDPBackend.CUDNN_ATTENTION]


@pytest.mark.parametrize("causal", [False, True], ids=["full", "causal"])
@pytest.mark.parametrize("backend", attention_backends(), ids=lambda backend: backend.name.lower())
def test_attention(backend, causal):
    from torch.nn.attention import sdpa_kernel

    q, k, v = (torch.randn(2, 8, 256, 64, device=DEVICE, dtype=torch.float16, requires_grad=True) for _ in range(3))
    with sdpa_kernel(backend):
        out = F.scaled_dot_product_attention(q, k, v, is_causal=causal)
    out.sum().backward()
    assert out.shape == q.shape and q.grad.shape == k.grad.shape == v.grad.shape == q.shape


def test_attention_with_mask_and_dropout():
    q, k, v = (torch.randn(2, 8, 256, 64, device=DEVICE, requires_grad=True) for _ in range(3))
    mask = torch.ones(256, 256, device=DEVICE, dtype=torch.bool).tril()
    F.scaled_dot_product_attention(q, k, v, attn_mask=mask, dropout_p=0.1).sum().backward()
    assert v.grad.shape == v.shape


def test_multihead_attention():
    module = nn.MultiheadAttention(64, 4, batch_first=True).to(DEVICE)
    x = torch.randn(2, 128, 64, device=DEVICE)
    assert module(x, x, x)[0].shape == x.shape
    assert module.eval()(x, x, x, need_weights=False)[0].shape == x.shape


@pytest.mark.parametrize("blank", [0, 19], ids=["cudnn", "native"])
def test_ctc_loss(blank):
    logits = torch.randn(50, 4, 20, device=DEVICE, requires_grad=True)
    targets = torch.randint(1, 19, (4 * 10,), dtype=torch.int32)
    loss = F.ctc_loss(logits.log_softmax(2), targets, (50,) * 4, (10,) * 4, blank=blank)
    loss.backward()
    assert loss.shape == () and logits.grad.shape == logits.shape


def test_sparse_products():
    dense = torch.randn(64, 8, device=DEVICE, requires_grad=True)
    index = torch.stack([torch.arange(64), torch.arange(64)])
    coo = torch.sparse_coo_tensor(index, torch.ones(64), (64, 64), device=DEVICE)
    torch.sparse.mm(coo, dense).sum().backward()
    assert dense.grad.shape == dense.shape
    csr = torch.sparse_csr_tensor(torch.arange(65), torch.arange(64), torch.ones(64), (64, 64), device=DEVICE)
    assert (csr @ dense.detach()).shape == (64, 8) and csr.to_dense().shape == (64, 64)


def test_sparse_gradients_of_an_embedding():
    module = nn.Embedding(1000, 16, sparse=True).to(DEVICE)
    optimizer = torch.optim.SparseAdam(module.parameters())
    module(torch.randint(1000, (4, 8), device=DEVICE)).sum().backward()
    assert module.weight.grad.is_sparse
    optimizer.step()


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bag(mode):
    module = nn.EmbeddingBag(1000, 16, mode=mode).to(DEVICE)
    out = module(torch.randint(1000, (40,), device=DEVICE), torch.tensor([0, 10, 15, 30], device=DEVICE))
    out.sum().backward()
    assert out.shape == (4, 16) and module.weight.grad.shape == (1000, 16)


@pytest.mark.parametrize("size", [8, 512], ids=["small", "large"])
def test_linear_algebra(size):
    x = torch.eye(size, device=DEVICE).expand(2, size, size).clone()
    square = (2, size, size)
    assert torch.linalg.inv(x).shape == torch.linalg.cholesky(x).shape == torch.linalg.solve(x, x).shape == square
    assert torch.linalg.svd(x).U.shape == torch.linalg.eigh(x).eigenvectors.shape == torch.linalg.lu(x)[2].shape == square
    assert torch.linalg.det(x).shape == torch.linalg.matrix_rank(x).shape == (2,)
    assert torch.linalg.qr(x[0]).Q.shape == (size, size)


def test_factorisations_of_a_batch():
    x = torch.eye(8, device=DEVICE).expand(2, 8, 8).clone()
    assert torch.linalg.qr(x).Q.shape == (2, 8, 8)
    assert torch.linalg.lstsq(x, x).solution.shape == (2, 8, 8)
    lu, pivots = torch.linalg.lu_factor(x)
    assert torch.linalg.lu_solve(lu, pivots, x).shape == (2, 8, 8)


@pytest.mark.parametrize("size", [8, 512], ids=["small", "large"])
def test_eigenvalues(size):
    assert torch.linalg.eigvals(torch.eye(size, device=DEVICE)).shape == (size,)


def test_fourier_transforms_of_large_signals():
    x = torch.randn(8, 512, 512, device=DEVICE, requires_grad=True)
    torch.fft.irfft2(torch.fft.rfft2(x)).sum().backward()
    assert x.grad.shape == x.shape and torch.fft.fftn(x.detach().half(), dim=(-1,)).shape == x.shape
    assert torch.stft(x.detach()[0], 64, return_complex=True).shape[:2] == (512, 33)


def test_products_of_every_type():
    for dtype in (torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.complex64):
        x = torch.randn(512, 512, dtype=dtype, device=DEVICE)
        assert (x @ x).dtype == torch.addmm(x[0], x, x).dtype == torch.bmm(x[None], x[None]).dtype == dtype
    x = torch.ones(512, 512, dtype=torch.int8, device=DEVICE)
    assert torch._int_mm(x, x).dtype == torch.int32
    x = torch.randn(512, 512, device=DEVICE)
    F.gelu(F.linear(x.half(), x.half(), x[0].half())).sum()


@pytest.mark.parametrize("options", [{"foreach": True}, {"fused": True}, {"capturable": True}, {"amsgrad": True}], ids=str)
def test_adamw(options):
    module = nn.Sequential(nn.Linear(512, 512), nn.Linear(512, 4)).to(DEVICE)
    optimizer = torch.optim.AdamW(module.parameters(), **options)
    for _ in range(3):
        module(torch.randn(64, 512, device=DEVICE)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    state = optimizer.state[module[0].weight]
    assert state["exp_avg"].shape == (512, 512) and float(state["step"]) == 3


def test_checkpointing_and_saving(tmp_path):
    from torch.utils.checkpoint import checkpoint

    module = nn.Sequential(nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 512)).to(DEVICE)
    checkpoint(module, torch.randn(64, 512, device=DEVICE, requires_grad=True), use_reentrant=False).sum().backward()
    small = {"x": torch.arange(5, device=DEVICE)}
    torch.save(small, tmp_path / "small.pt")
    assert torch.load(tmp_path / "small.pt")["x"].tolist() == [0, 1, 2, 3, 4]
    torch.save(module.state_dict(), tmp_path / "large.pt")
    module.load_state_dict(torch.load(tmp_path / "large.pt", map_location="cuda"))
