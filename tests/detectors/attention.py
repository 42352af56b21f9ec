"""Attention that writes out its matrices, and attention that does not."""

import torch
import torch.nn.functional as F
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from case import fires, randn, spares, train

BATCH, HEADS, TOKENS, HEAD = 4, 8, 1024, 64
WIDTH = HEADS * HEAD
MATRIX = BATCH * HEADS * TOKENS * TOKENS * 4
# At the peak, which is in the backward pass of the softmax: the probabilities and their gradient, that of the scores, and
# the product of the first two.
AT_ONCE = 4
FUSED = {"fused-attention": "numerically equal", "checkpoint": "exact"}


class Heads(nn.Module):
    """Queries, keys and values from tokens; what is done with them is given."""

    def __init__(self, attend, heads=HEADS):
        super().__init__()
        self.heads, self.attend = heads, attend
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, width // self.heads).permute(2, 0, 3, 1, 4)
        return self.out(self.attend(q, k, v).transpose(1, 2).reshape(batch, tokens, width))


class Whole(nn.Module):
    def __init__(self, need_weights):
        super().__init__()
        self.attn = nn.MultiheadAttention(WIDTH, HEADS, batch_first=True)
        self.options = {} if need_weights else {"need_weights": False}

    def forward(self, x):
        return self.attn(x, x, x, **self.options)[0]


def tokens(**options):
    return randn(BATCH, TOKENS, WIDTH, **options)


@fires("attention-matrices", "need_weights=True is its default", FUSED)
def weights_are_wanted():
    train(Whole(need_weights=True).cuda(), tokens())
    return AT_ONCE * MATRIX


@spares("attention-matrices")
def weights_are_not_wanted():
    train(Whole(need_weights=False).cuda(), tokens())


@fires("attention-matrices", "The code multiplies, takes the softmax and multiplies by itself", FUSED)
def softmax_by_hand():
    def attend(q, k, v):
        scores = q @ k.transpose(-2, -1) * HEAD**-0.5
        return scores.softmax(-1) @ v  # HERE

    train(Heads(attend).cuda(), tokens())
    return AT_ONCE * MATRIX


@fires("attention-matrices", "The code multiplies, takes the softmax and multiplies by itself", FUSED)
def scores_before_the_softmax():
    class Attention(Heads):
        pass

    def attend(q, k, v):
        ballast = torch.empty(4, MATRIX, dtype=torch.uint8, device="cuda")
        scores = q @ k.transpose(-2, -1)  # HERE
        del ballast
        return scores.softmax(-1) @ v

    train(Attention(attend).cuda(), tokens())
    return MATRIX


@spares("attention-matrices")
def a_linear_layer_as_wide_as_there_are_tokens():
    class Attention(nn.Module):
        def __init__(self):
            super().__init__()
            self.value = nn.Linear(TOKENS, TOKENS)

        def forward(self, x):
            return self.value(x)

    train(Attention().cuda(), randn(BATCH, TOKENS, TOKENS))


@spares("attention-matrices")
def fused():
    train(Heads(F.scaled_dot_product_attention).cuda(), tokens())


@spares("attention-matrices")
def fused_with_a_mask():
    mask = torch.ones(TOKENS, TOKENS, dtype=torch.bool, device="cuda").tril()
    train(Heads(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, mask)).cuda(), tokens())


@spares("attention-matrices")
def fused_with_a_learned_mask():
    """The memory-efficient backend gives a mask its gradient."""

    class Biased(nn.Module):
        def __init__(self):
            super().__init__()
            self.bias = nn.Parameter(torch.zeros(HEADS, TOKENS, TOKENS))
            self.heads = Heads(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, self.bias))

        def forward(self, x):
            return self.heads(x)

    train(Biased().cuda(), tokens())


@spares("attention-matrices")
def fused_with_a_wide_head():
    train(Heads(F.scaled_dot_product_attention, heads=1).cuda(), randn(BATCH, 4 * TOKENS, WIDTH))


@fires("attention-matrices", "its tensors are float64", FUSED)
def double_precision():
    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)  # HERE

    train(Heads(attend).cuda().double(), tokens(dtype=torch.float64))
    return AT_ONCE * 2 * MATRIX


@fires("attention-matrices", "a head of 2 is no multiple of 4", FUSED)
def narrow_heads():
    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v)  # HERE

    train(Heads(attend, heads=WIDTH // 2).cuda(), randn(1, TOKENS, WIDTH))
    return AT_ONCE * WIDTH // 2 * TOKENS**2 * 4


@fires("attention-matrices", "the fused backends are switched off", FUSED)
def switched_off():
    def attend(q, k, v):
        with sdpa_kernel(SDPBackend.MATH):
            return F.scaled_dot_product_attention(q, k, v)  # HERE

    train(Heads(attend).cuda(), tokens())
    return AT_ONCE * MATRIX


@fires("attention-matrices", "multiplies by itself", FUSED)
def as_many_tokens_as_features():
    """Features of 512 tokens are matrices of 512 x 512 too, but not of attention."""

    def attend(q, k, v):
        return (q @ k.transpose(-2, -1)).softmax(-1) @ v  # HERE

    train(Heads(attend).cuda(), randn(16, WIDTH, WIDTH))
    return AT_ONCE * 16 * HEADS * WIDTH**2 * 4


@spares("attention-matrices")
def deformable_attention():
    """A softmax over the points of each head: no pairs of tokens, whatever the class is called."""

    class DeformableAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.weights, self.value = nn.Linear(WIDTH, HEADS * 16), nn.Linear(WIDTH, HEADS * 16)

        def forward(self, x):
            weights = self.weights(x).unflatten(-1, (HEADS, 16)).softmax(-1)
            return weights * self.value(x).unflatten(-1, (HEADS, 16))

    train(DeformableAttention().cuda(), randn(16, TOKENS, WIDTH))


class LinearAttention(nn.Module):
    """Softmaxes of queries and keys alone, of a square image whose side is wider than a head."""

    def __init__(self, heads=4, width=32):
        super().__init__()
        self.heads = heads
        self.qkv, self.out = nn.Conv2d(16, 3 * heads * width, 1), nn.Conv2d(heads * width, 16, 1)

    def forward(self, x):
        batch, _, height, width = x.shape
        q, k, v = self.qkv(x).view(batch, 3, self.heads, -1, height * width).unbind(1)
        context = k.softmax(-1) @ v.transpose(2, 3)
        mixed = torch.einsum("bhde,bhdn->bhen", context, q.softmax(-2))
        return self.out(mixed.reshape(batch, -1, height, width))


@spares("attention-matrices")
def linear_attention_over_a_square_image():
    train(LinearAttention().cuda(), randn(4, 16, 128, 128))


@spares("attention-matrices")
def softmax_over_classes():
    class Classes(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(WIDTH, TOKENS)
            self.codes = nn.Parameter(torch.zeros(TOKENS, 64))

        def forward(self, x):
            return self.fc(x).softmax(-1) @ self.codes

    train(Classes().cuda(), tokens())


@spares("attention-matrices")
def gates_of_channels():
    """Attention by name: softmax over two branches, as in selective kernels; no tokens."""

    class ChannelAttention(nn.Module):
        def __init__(self):
            super().__init__()
            self.one, self.other = nn.Conv2d(32, 32, 3, padding=1), nn.Conv2d(32, 32, 1)
            self.fc = nn.Conv2d(32, 64, 1)

        def forward(self, x):
            both = torch.stack([self.one(x), self.other(x)], 1)
            gates = self.fc(both.sum(1).mean((2, 3), keepdim=True)).view(x.shape[0], 2, 32, 1, 1).softmax(1)
            return (both * gates).sum(1)

    train(ChannelAttention().cuda(), randn(8, 32, 128, 128))
