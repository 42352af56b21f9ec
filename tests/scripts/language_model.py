"""A small language model whose every size and habit is a flag: what test_ask.py asks about, and what it changes to see."""

import argparse
import contextlib

import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.checkpoint import checkpoint

parser = argparse.ArgumentParser()
parser.add_argument("--batch-size", type=int, default=8)
parser.add_argument("--tokens", type=int, default=512)
parser.add_argument("--layers", type=int, default=6)
parser.add_argument("--width", type=int, default=512)
parser.add_argument("--heads", type=int, default=8)
parser.add_argument("--vocabulary", type=int, default=16000)
parser.add_argument("--optimizer", default="adamw", choices=["adamw", "sgd", "momentum", "adafactor", "none"])
parser.add_argument("--attention", default="naive", choices=["naive", "fused"])
parser.add_argument("--chunks", type=int, default=1, help="of the loss, each computed again")
parser.add_argument("--passes", type=int, default=1, help="batches whose gradients add up")
parser.add_argument("--train", default="all", choices=["all", "adapters", "head", "unfrozen"])
parser.add_argument("--grad", default="train", choices=["train", "no_grad", "kept", "eval"])
parser.add_argument("--dropout", type=float, default=0.0)
for name in "amp half checkpoint ema empty collect clip save tf32 fused foreach".split():
    parser.add_argument(f"--{name}", action="store_true")
wanted = parser.parse_args()


class Attention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads, self.qkv, self.proj = heads, nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, tokens, width = x.shape
        q, k, v = self.qkv(x).view(batch, tokens, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        if wanted.attention == "fused":
            y = F.scaled_dot_product_attention(q, k, v)
        else:
            y = (q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5).softmax(-1) @ v
        return self.proj(y.transpose(1, 2).reshape(batch, tokens, width))


class Block(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.norm1, self.norm2, self.attention = nn.LayerNorm(width), nn.LayerNorm(width), Attention(width, heads)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width), nn.Dropout(wanted.dropout))
        self.adapter = nn.Linear(width, 4, bias=False) if wanted.train == "adapters" else None
        self.back = nn.Linear(4, width, bias=False) if wanted.train == "adapters" else None

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        y = self.mlp(self.norm2(x))
        return x + y + self.back(self.adapter(x)) if self.adapter else x + y


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(wanted.vocabulary, wanted.width)
        self.blocks = nn.ModuleList(Block(wanted.width, wanted.heads) for _ in range(wanted.layers))
        self.head = nn.Linear(wanted.width, wanted.vocabulary, bias=False)

    def forward(self, ids):
        x = self.embedding(ids)
        for block in self.blocks:
            x = checkpoint(block, x, use_reentrant=False) if wanted.checkpoint else block(x)
        return x


def loss_of(model, ids):
    x = model(ids).flatten(0, 1)

    def part(rows, targets):
        return F.cross_entropy(model.head(rows), targets, reduction="sum")

    if wanted.chunks == 1:
        return part(x, ids.flatten()) / ids.numel()
    pairs = zip(x.chunk(wanted.chunks), ids.flatten().chunk(wanted.chunks))
    return sum(checkpoint(part, rows, targets, use_reentrant=False) for rows, targets in pairs) / ids.numel()


def optimizer_of(parameters):
    flags = {"fused": True} if wanted.fused else {"foreach": False} if wanted.foreach else {}
    match wanted.optimizer:
        case "adamw":
            return torch.optim.AdamW(parameters, lr=1e-4, **flags)
        case "adafactor":
            return torch.optim.Adafactor(parameters)
        case "momentum":
            return torch.optim.SGD(parameters, lr=1e-4, momentum=0.9, **flags)
    return torch.optim.SGD(parameters, lr=1e-4)


torch.set_float32_matmul_precision("high" if wanted.tf32 else "highest")
model = Model().to("cuda", torch.bfloat16 if wanted.half else torch.float32)
if wanted.train in ("adapters", "head"):
    model.requires_grad_(False)
    kept = [model.head] if wanted.train == "head" else [part for block in model.blocks for part in (block.adapter, block.back)]
    for part in kept:
        part.requires_grad_(True)
ema = torch.optim.swa_utils.AveragedModel(model) if wanted.ema else None
if wanted.grad == "eval":
    model.eval()
optimizer = optimizer_of([parameter for parameter in model.parameters() if parameter.requires_grad])
cast = torch.autocast("cuda", torch.bfloat16) if wanted.amp else contextlib.nullcontext()
saving = torch.autograd.graph.save_on_cpu() if wanted.save else contextlib.nullcontext()

for step in range(20):
    for _ in range(wanted.passes):
        ids = torch.randint(wanted.vocabulary, (wanted.batch_size, wanted.tokens)).to("cuda")
        with torch.set_grad_enabled(wanted.grad != "no_grad"), cast, saving:
            loss = loss_of(model, ids)
        if wanted.grad != "no_grad":
            loss.backward()
        if wanted.empty:
            torch.cuda.empty_cache()
    if wanted.collect:
        import gc

        gc.collect()
    if wanted.clip:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    if wanted.optimizer != "none" and wanted.grad != "no_grad":
        optimizer.step()
    optimizer.zero_grad(set_to_none=wanted.grad != "kept")
    if ema:
        ema.update_parameters(model)
    print(f"step {step} loss {loss.item():.4f}")
