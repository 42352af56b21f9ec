"""Inference: what it keeps of earlier tokens, and models that join tensors without keeping any."""

import torch
from torch import nn

from case import fires, randn, spares

HEADS, WIDTH, BATCH, TOKENS = 8, 64, 2, 12


class Layer(nn.Module):
    """Gives what it was given, joined with something new."""

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(WIDTH, WIDTH)

    def forward(self, x, past):
        new = self.inner(x)
        return new if past is None else torch.cat((past, new), dim=2)  # HERE


@fires("kv-cache", "2,048 bytes for each token of each sequence", {"context": "changes the function", "fewer-sequences": "exact"})
def joined_with_every_token():
    layer, past = Layer().cuda(), None
    with torch.no_grad():
        for _ in range(TOKENS):
            past = layer(randn(BATCH, HEADS, 1, WIDTH), past)


@fires("kv-cache", "4,096 bytes for each token of each sequence", {"quantised-cache": "changes numerics"})
def at_its_full_length():
    model = nn.Module()
    for name in ("k_cache", "v_cache"):
        model.register_buffer(name, torch.zeros(BATCH, 1024, HEADS, WIDTH))
    model.cuda()
    model.inner = nn.Linear(WIDTH, WIDTH).cuda()
    with torch.no_grad():
        for token in range(TOKENS):
            model.k_cache[:, token] = model.inner(randn(BATCH, HEADS, WIDTH))
    return 2 * BATCH * 1024 * HEADS * WIDTH * 4


class WithClassToken(nn.Module):
    """Joins each input with something of its own: nothing becomes longer from call to call."""

    def __init__(self):
        super().__init__()
        self.first, self.inner = nn.Parameter(torch.zeros(1, 1, WIDTH)), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        return self.inner(torch.cat((self.first.expand(len(x), 1, WIDTH), x), dim=1))


@spares("kv-cache")
def a_class_token():
    model = WithClassToken().cuda().eval()
    with torch.no_grad():
        for _ in range(5):
            model(randn(BATCH, 196, WIDTH))


@spares("kv-cache")
def joined_in_a_training():
    """The same layer with a backward pass over all tokens: that is what autograd keeps."""
    layer = Layer().cuda()
    optimizer = torch.optim.SGD(layer.parameters(), lr=0.1)
    for _ in range(3):
        past = None
        for _ in range(TOKENS):
            past = layer(randn(BATCH, HEADS, 1, WIDTH), past)
        past.sum().backward()
        optimizer.step()
        optimizer.zero_grad()


class Weight(nn.Module):
    """A matrix of any kind, which is made wide for its product."""

    def __init__(self, dtype):
        super().__init__()
        self.weight = nn.Parameter(torch.zeros(2048, 2048, dtype=dtype), requires_grad=False)

    def forward(self, x):
        return x @ self.weight.to(x.dtype)


@torch.no_grad()
def calls(dtype):
    model = nn.Sequential(*(Weight(dtype) for _ in range(8))).cuda()
    for _ in range(4):
        model(randn(64, 2048, dtype=torch.bfloat16))


@fires("model-state", "the model's weights", {"quantise": "changes numerics", "model-offload": "exact"})
def weights_of_two_bytes():
    calls(torch.bfloat16)


@fires("model-state", "the model's weights", {"model-offload": "exact"}, without=("quantise", "half-weights"))
def weights_of_eight_bits():
    calls(torch.int8)
