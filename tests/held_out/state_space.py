"""A language model in the manner of Mamba: gated short convolutions and a scan over time, written out."""

import torch
from torch import nn
from torch.nn import functional as F


class Norm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + 1e-5) * self.weight


class Mixer(nn.Module):
    def __init__(self, width, state=16, kernel=4):
        super().__init__()
        inner = 2 * width
        self.state, self.rank = state, max(width // 16, 1)
        self.in_proj = nn.Linear(width, 2 * inner, bias=False)
        self.conv = nn.Conv1d(inner, inner, kernel, groups=inner, padding=kernel - 1)
        self.x_proj = nn.Linear(inner, self.rank + 2 * state, bias=False)
        self.dt_proj = nn.Linear(self.rank, inner)
        self.log_a = nn.Parameter(torch.log(torch.arange(1, state + 1).float().repeat(inner, 1)))
        self.d = nn.Parameter(torch.ones(inner))
        self.out_proj = nn.Linear(inner, width, bias=False)

    def scan(self, x, dt, b, c):
        decay = torch.exp(dt.unsqueeze(-1) * -torch.exp(self.log_a))
        inputs = dt.unsqueeze(-1) * b.unsqueeze(2) * x.unsqueeze(-1)
        state, outputs = torch.zeros_like(inputs[:, 0]), []
        for time in range(x.shape[1]):
            state = decay[:, time] * state + inputs[:, time]
            outputs.append((state * c[:, time].unsqueeze(1)).sum(-1))
        return torch.stack(outputs, 1) + x * self.d

    def forward(self, x):
        length = x.shape[1]
        x, gate = self.in_proj(x).chunk(2, -1)
        x = F.silu(self.conv(x.transpose(1, 2))[..., :length].transpose(1, 2))
        dt, b, c = self.x_proj(x).split([self.rank, self.state, self.state], -1)
        return self.out_proj(self.scan(x, F.softplus(self.dt_proj(dt)), b, c) * F.silu(gate))


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm, self.mixer = Norm(width), Mixer(width)

    def forward(self, x):
        return x + self.mixer(self.norm(x))


class Model(nn.Module):
    def __init__(self, words=8000, width=256, layers=3):
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.layers = nn.ModuleList(Block(width) for _ in range(layers))
        self.norm, self.head = Norm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.embedding.weight

    def forward(self, tokens):
        x = self.embedding(tokens)
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


device = torch.device("cuda")
model = Model().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-4, betas=(0.9, 0.95))
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, 100)
for _ in range(3):
    tokens = torch.randint(0, 8000, (8, 65)).to(device)
    optimizer.zero_grad()
    logits = model(tokens[:, :-1])
    loss = F.cross_entropy(logits.reshape(-1, 8000), tokens[:, 1:].reshape(-1))
    loss.backward()
    optimizer.step()
    schedule.step()
