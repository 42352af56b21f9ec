"""A text encoder with the shapes of DistilBERT: six layers, 66,362,880 parameters, never trained.

It stays on the card beside the model, and nobody counts it.
"""

import torch
import torch.nn.functional as F
from torch import nn


class EncoderLayer(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.output = nn.Linear(width, width)
        self.norm1, self.norm2 = nn.LayerNorm(width, eps=1e-12), nn.LayerNorm(width, eps=1e-12)
        self.feed_forward = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width))

    def forward(self, x):
        parts = self.query(x), self.key(x), self.value(x)
        heads = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        attended = F.scaled_dot_product_attention(*heads).transpose(1, 2).flatten(2)
        x = self.norm1(x + self.output(attended))
        return self.norm2(x + self.feed_forward(x))


class TextEncoder(nn.Module):
    """Token numbers (batch, length) -> the features (batch, 768) of the first token."""

    VOCABULARY, POSITIONS, WIDTH, HEADS, DEPTH = 30522, 512, 768, 12, 6

    def __init__(self):
        super().__init__()
        self.words = nn.Embedding(self.VOCABULARY, self.WIDTH)
        self.positions = nn.Embedding(self.POSITIONS, self.WIDTH)
        self.norm = nn.LayerNorm(self.WIDTH, eps=1e-12)
        self.layers = nn.Sequential(*(EncoderLayer(self.WIDTH, self.HEADS) for _ in range(self.DEPTH)))
        self.requires_grad_(False).eval()

    @torch.no_grad()
    def forward(self, tokens):
        places = torch.arange(tokens.shape[1], device=tokens.device)
        return self.layers(self.norm(self.words(tokens) + self.positions(places)))[:, 0]
