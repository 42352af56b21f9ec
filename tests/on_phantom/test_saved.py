"""What the recorder says autograd keeps, against autograd itself: its own hooks, and what freeing the graph gives back."""

import gc

import pytest
import torch
from fathom._doorway import border, graph
from fathom._doorway.modules import Modules
from fathom._doorway.recorder import event_serials
from fathom._doorway.recorder.recorder import make_note_taker
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.checkpoint import checkpoint

BATCH, TOKENS, WIDTH, HEADS = 4, 64, 128, 4


class Attention(nn.Module):
    def __init__(self, backend):
        super().__init__()
        self.backend = backend
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH)

    def forward(self, x):
        q, k, v = (part.view(BATCH, TOKENS, HEADS, -1).transpose(1, 2) for part in self.qkv(x).chunk(3, -1))
        with sdpa_kernel(self.backend):
            return F.scaled_dot_product_attention(q, k, v).transpose(1, 2).reshape(x.shape)


class Weighted(nn.Module):
    """Attention that also gives its weights: no fused kernel."""

    def __init__(self):
        super().__init__()
        self.attention = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)

    def forward(self, x):
        return self.attention(x, x, x)[0]


class Loss(nn.Module):
    def __init__(self):
        super().__init__()
        self.head = nn.Linear(WIDTH, 1000)

    def forward(self, x):
        return F.cross_entropy(self.head(x).flatten(0, 1), torch.zeros(BATCH * TOKENS, dtype=torch.long, device="cuda"))


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(1000, WIDTH)

    def forward(self, x):
        return self.table(torch.zeros(BATCH, TOKENS, dtype=torch.long, device="cuda")) * x


class Checkpointed(nn.Module):
    def __init__(self, is_reentrant):
        super().__init__()
        self.inner = block()
        self.is_reentrant = is_reentrant

    def forward(self, x):
        return checkpoint(self.inner, x * 2, use_reentrant=self.is_reentrant)


class Autocast(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = block()

    def forward(self, x):
        with torch.autocast("cuda", dtype=torch.bfloat16):
            return self.inner(x)


class Doubled(torch.autograd.Function):
    """Keeps one tensor as one should, and one as people do."""

    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x * 3)
        ctx.kept = x * 4
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2


class Custom(nn.Module):
    def forward(self, x):
        return Doubled.apply(x * 1)


def block():
    return nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, 4 * WIDTH), nn.GELU(), nn.Linear(4 * WIDTH, WIDTH))


def image(*layers):
    return nn.Sequential(nn.Unflatten(0, (BATCH, 1)), nn.Conv2d(1, 8, 3, padding=1), *layers)


MODELS = {
    "linear": lambda: nn.Linear(WIDTH, WIDTH),
    "convolution": lambda: image(nn.Conv2d(8, 16, 3, stride=2)),
    "math attention": lambda: Attention(SDPBackend.MATH),
    "efficient attention": lambda: Attention(SDPBackend.EFFICIENT_ATTENTION),
    "weighted attention": Weighted,
    "layer norm": lambda: nn.LayerNorm(WIDTH),
    "batch norm": lambda: image(nn.BatchNorm2d(8)),
    "group norm": lambda: image(nn.GroupNorm(2, 8)),
    "gelu": lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.GELU()),
    "silu": lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.SiLU()),
    "relu in place": lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.ReLU(inplace=True), nn.Linear(WIDTH, WIDTH)),
    # In place on a view, autograd hides the function in a node that shows nothing; so no view here.
    "silu in place": lambda: nn.Sequential(nn.Flatten(0, 1), nn.Linear(WIDTH, WIDTH), nn.SiLU(inplace=True)),
    "dropout": lambda: nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Dropout(0.1)),
    "cross entropy": Loss,
    "embedding": Words,
    "block": block,
    "autocast": Autocast,
    "custom function": Custom,
    "lstm": lambda: Lstm(),
}


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.LSTM(WIDTH, WIDTH, batch_first=True)

    def forward(self, x):
        return self.inner(x)[0]


def inputs(dtype=torch.float32):
    return torch.randn(BATCH, TOKENS, WIDTH, device="cuda", dtype=dtype, requires_grad=True)


def storages(tensors, known):
    """start -> bytes of what lies on the card, each storage once, without what is known."""
    found = {t.untyped_storage().data_ptr(): t.untyped_storage().nbytes() for t in tensors if t.is_cuda and t.numel()}
    return {start: size for start, size in found.items() if start not in known}


def nodes_of(root):
    found = [root]
    for node in found:
        found += [following for following, _ in node.next_functions if following is not None and following not in found]
    return found


def walked(root, hooked=None):
    """What the recorder finds; `hooked` are sequence numbers between which hooks pack."""
    note_taker = make_note_taker(border.Party("nothing"), Modules(), event_serials.make(1))
    return [tensor for node in nodes_of(root) for tensor in note_taker.kept_by(node, hooked)]


def known_to(model, x):
    given = [x, *model.parameters(), *model.buffers()]
    return {t.untyped_storage().data_ptr() for t in given}


@pytest.fixture(autouse=True)
def _clean():
    """Garbage of earlier tests is not freed in the middle of one."""
    gc.collect()
    gc.disable()
    yield
    gc.enable()
    torch.cuda.empty_cache()


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_is_what_autograds_hooks_are_given(name):
    model, x = MODELS[name]().cuda(), inputs()
    model(x)  # workspaces that stay are there
    given = []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: given.append(t) or t, lambda t: t):  # noqa: F821  deleted below
        result = model(x).sum()
    expected = storages(given, known_to(model, x))
    kept = [value for node in nodes_of(result.grad_fn) for value in vars_of(node)]
    expected.update(storages(kept, known_to(model, x)))
    del given, kept, result
    result = model(x).sum()
    found = storages(walked(result.grad_fn), known_to(model, x))
    assert sorted(found.values()) == sorted(expected.values())
    assert found or name in ("linear", "layer norm")


def vars_of(node):
    """Tensors a Function keeps in its context: no hook is asked about those."""
    return [value for value in getattr(node, "__dict__", {}).values() if isinstance(value, torch.Tensor)]


def shared_by_graphs(model, x, node):
    """What two graphs alive at once both save: the library's own, as cuDNN's dropout state, and freed with neither."""
    other = model(x).sum().grad_fn
    return storages(walked(node), ()).keys() & storages(walked(other), ()).keys()


@pytest.mark.parametrize("name", MODELS)
def test_what_is_saved_is_what_freeing_the_graph_gives_back(name):
    model, x = MODELS[name]().cuda(), inputs()
    model(x)
    before = torch.cuda.memory_allocated()
    node = model(x).sum().grad_fn  # the graph alone
    held = torch.cuda.memory_allocated() - before
    found = storages(walked(node), known_to(model, x) | shared_by_graphs(model, x, node))
    assert sum(-(-size // 512) * 512 for size in found.values()) == held
    del node
    assert torch.cuda.memory_allocated() == before


@pytest.mark.skipif(not torch.backends.cuda.is_flash_attention_available(), reason="this torch has no flash attention")
def test_flash_attention_keeps_its_output_and_no_matrix():
    model, x = Attention(SDPBackend.FLASH_ATTENTION).half().cuda(), inputs(torch.float16)
    model(x)
    before = torch.cuda.memory_allocated()
    node = model(x).sum().grad_fn
    held = torch.cuda.memory_allocated() - before
    found = storages(walked(node), known_to(model, x))
    assert sum(-(-size // 512) * 512 for size in found.values()) == held
    assert max(found.values()) < BATCH * HEADS * TOKENS * TOKENS * 2 * 100


@pytest.mark.parametrize("is_reentrant", [False, True])
def test_a_checkpoint_is_not_computed_again_by_looking(is_reentrant):
    model, x = Checkpointed(is_reentrant).cuda(), inputs()
    calls = []
    model.inner.register_forward_hook(lambda *_: calls.append(1))
    node = model(x).sum().grad_fn
    found = storages(walked(node, hooked=None if is_reentrant or graph.HAS_RAW_DATA else [0]), known_to(model, x))
    assert len(calls) == 1
    # A reentrant one keeps its input in its node; the other in a place of its own.
    assert sum(found.values()) <= x.numel() * 4
