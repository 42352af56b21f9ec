"""Scripts whose shapes depend on data: experts, voxels, curves through space, ragged batches. `sparse.py DEVICE`."""

import sys

import torch
from torch import nn
from torch.nn import functional as F

DEVICE = sys.argv[1]


def say(name, *numbers):
    print("SIZES", name, *numbers)


class Experts(nn.Module):
    """As in Mixtral: each token goes to the two experts that its router likes best."""

    def __init__(self, width=64, experts=8):
        super().__init__()
        self.router = nn.Linear(width, experts, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(width, 128), nn.SiLU(), nn.Linear(128, width)) for _ in range(experts))

    def forward(self, x):
        weights, chosen = self.router(x).softmax(-1).topk(2, dim=-1)
        result = torch.zeros_like(x)
        for number, expert in enumerate(self.experts):
            rows, places = torch.where(chosen == number)
            say("expert", number, rows.numel())
            result.index_add_(0, rows, expert(x[rows]) * weights[rows, places, None])
        return result


class Voxels(nn.Module):
    """As in PointPillars: points of one cell are put together, and cells become an image."""

    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(4, 32)
        self.head = nn.Conv2d(32, 8, 3, padding=1)

    def forward(self, points):
        cells = ((points[:, :2] + 50) / 1.0).long().clamp(0, 99)
        inside = (points[:, 2] > -1.5) & (points[:, 2] < 1.5)
        points, cells = points[inside], cells[inside]
        unique, inverse, counts = torch.unique(cells, dim=0, return_inverse=True, return_counts=True)
        say("voxels", len(points), len(unique), int(counts.max()))
        pooled = torch.zeros(len(unique), 32, device=points.device).index_reduce(0, inverse, self.layer(points), "amax")
        image = torch.zeros(32, 100, 100, device=points.device)
        image[:, unique[:, 0], unique[:, 1]] = pooled.t()
        return self.head(image[None])


class Curve(nn.Module):
    """As in PointTransformer V3: points in the order of a curve, attention in pieces, then a coarser grid."""

    def __init__(self, width=32):
        super().__init__()
        self.stem = nn.Linear(3, width)
        self.qkv = nn.Linear(width, 3 * width)
        self.down = nn.Linear(width, width)

    def code(self, grid):
        spread = torch.zeros(len(grid), dtype=torch.long, device=grid.device)
        for bit in range(10):
            for axis in range(3):
                spread |= ((grid[:, axis] >> bit) & 1) << (3 * bit + axis)
        return spread

    def forward(self, points):
        grid = ((points - points.min(0).values) / 0.2).long()
        code = self.code(grid)
        order = code.argsort(stable=True)
        x = self.stem(points)[order]
        x = x[: len(x) // 1024 * 1024].view(-1, 1024, x.shape[-1])
        q, k, v = self.qkv(x)[:, None].chunk(3, -1)
        x = F.scaled_dot_product_attention(q, k, v).flatten(0, 2)
        coarse, cluster, counts = torch.unique_consecutive(code[order][: len(x)] >> 6, return_inverse=True, return_counts=True)
        say("curve", len(coarse), int(counts.max()), int(code.max()))
        return torch.zeros(len(coarse), x.shape[-1], device=x.device).scatter_reduce(
            0, cluster[:, None].expand_as(x), self.down(x), "mean"
        )


class Ragged(nn.Module):
    """Sequences of different lengths, packed without their padding."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(1000, 48, padding_idx=0)
        self.layer = nn.Linear(48, 48)

    def forward(self, ids):
        keep = ids != 0
        packed = self.layer(self.embedding(ids)[keep])
        lengths = keep.sum(1)
        say("ragged", len(packed), int(lengths.max()), lengths.tolist()[:4])
        owner = torch.repeat_interleave(torch.arange(len(ids), device=ids.device), lengths)
        return torch.zeros(len(ids), 48, device=ids.device).index_add(0, owner, packed)


def inputs(step):
    generator = torch.Generator().manual_seed(step)
    draw = lambda *shape: torch.randn(*shape, generator=generator)  # noqa: E731
    ids = torch.randint(1, 1000, (64, 200), generator=generator)
    ids[torch.arange(200)[None] >= torch.randint(1, 200, (64, 1), generator=generator)] = 0
    return {"experts": draw(16384, 64), "voxels": draw(100_000, 4) * 15, "curve": draw(100_000, 3) * 5, "ragged": ids}


torch.manual_seed(0)
models = {"experts": Experts(), "voxels": Voxels(), "curve": Curve(), "ragged": Ragged()}
models = {name: model.to(DEVICE) for name, model in models.items()}
optimizer = torch.optim.AdamW([p for model in models.values() for p in model.parameters()], lr=0.0, weight_decay=0.0)
for step in range(3):
    given = inputs(step)
    loss = sum(model(given[name].to(DEVICE)).float().square().mean() for name, model in models.items())
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
