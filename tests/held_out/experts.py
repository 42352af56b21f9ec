"""A mixture of experts with checkpointed blocks, half precision, scaled losses and accumulated gradients."""

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint


class Expert(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.w1, self.w2, self.w3 = (nn.Linear(*sides, bias=False) for sides in ((width, 512), (512, width), (width, 512)))

    def forward(self, x):
        return self.w2(F.silu(self.w1(x)) * self.w3(x))


class Sparse(nn.Module):
    def __init__(self, width, experts=8, chosen=2):
        super().__init__()
        self.chosen, self.gate = chosen, nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(Expert(width) for _ in range(experts))

    def forward(self, x):
        flat = x.reshape(-1, x.shape[-1])
        weights, choice = self.gate(flat).softmax(-1).topk(self.chosen, -1)
        out = torch.zeros_like(flat)
        rows = torch.arange(len(flat), device=x.device).view(len(self.experts), -1)
        for index, expert in enumerate(self.experts):
            mine = rows[index]
            out = out.index_add(0, mine, (expert(flat[mine]) * weights[mine, :1]).to(out.dtype))
        return out.view_as(x) + 0 * choice.sum()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.attention = nn.MultiheadAttention(width, 8, batch_first=True)
        self.experts = Sparse(width)

    def forward(self, x):
        h = self.norm1(x)
        x = x + self.attention(h, h, h, need_weights=False)[0]
        return x + self.experts(self.norm2(x))


class Mixture(nn.Module):
    def __init__(self, words=16000, width=256, layers=4):
        super().__init__()
        self.words, self.places = nn.Embedding(words, width), nn.Embedding(256, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = nn.RMSNorm(width), nn.Linear(width, words, bias=False)

    def forward(self, tokens):
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1], device=tokens.device))
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False)
        return self.head(self.norm(x))


model = Mixture().cuda()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, foreach=False)
scaler = torch.amp.GradScaler("cuda")
for step in range(4):
    tokens = torch.randint(0, 16000, (8, 129), device="cuda")
    with torch.autocast("cuda", dtype=torch.float16):
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.flatten(0, 1), tokens[:, 1:].flatten()) / 2
    scaler.scale(loss).backward()
    if step % 2:
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        optimizer.zero_grad()
