"""Inference with a cache of keys and values that is grown by hand, token by token."""

import torch
from torch import nn
from torch.nn import functional as F


class Attention(nn.Module):
    def __init__(self, width, heads=8):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(width, width, bias=False) for _ in range(4))

    def forward(self, x, past):
        q, k, v = (layer(x).view(len(x), -1, self.heads, x.shape[-1] // self.heads).transpose(1, 2) for layer in (self.q, self.k, self.v))
        if past is not None:
            k, v = torch.cat([past[0], k], 2), torch.cat([past[1], v], 2)
        out = F.scaled_dot_product_attention(q, k, v, is_causal=past is None)
        return self.o(out.transpose(1, 2).reshape(x.shape)), (k, v)


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x, past):
        out, past = self.attention(self.norm1(x), past)
        x = x + out
        return x + self.mlp(self.norm2(x)), past


class Chat(nn.Module):
    def __init__(self, words=16000, width=512, layers=6):
        super().__init__()
        self.words, self.norm = nn.Embedding(words, width), nn.LayerNorm(width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.head = nn.Linear(width, words, bias=False)

    def forward(self, tokens, cache):
        x = self.words(tokens)
        for index, block in enumerate(self.blocks):
            x, cache[index] = block(x, cache[index])
        return self.head(self.norm(x[:, -1:])), cache


model = Chat().half().cuda().eval()
prompt, cache = torch.randint(0, 16000, (16, 512), device="cuda"), [None] * 6
with torch.inference_mode():
    logits, cache = model(prompt, cache)
    for _ in range(24):
        logits, cache = model(logits.argmax(-1), cache)
