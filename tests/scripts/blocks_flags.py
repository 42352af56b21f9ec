"""A transformer of equal blocks with a batch from a DataLoader; written as a module so that `python -m` works too."""

import argparse

import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        q, k, v = self.qkv(self.norms[0](x)).unflatten(2, (3, 4, -1)).permute(2, 0, 3, 1, 4)
        x = x + self.out(nn.functional.scaled_dot_product_attention(q, k, v).transpose(1, 2).flatten(2))
        return x + self.narrow(nn.functional.gelu(self.wide(self.norms[1](x))))


class Model(nn.Module):
    def __init__(self, depth, width):
        super().__init__()
        self.embed = nn.Embedding(1000, width)
        self.blocks = nn.ModuleList(Block(width) for _ in range(depth))
        self.head = nn.Linear(width, 1000)

    def forward(self, tokens):
        x = self.embed(tokens)
        for block in self.blocks:
            x = block(x)
        return self.head(x)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--batch-size", type=int, default=8)
    parser.add_argument("--depth", type=int, default=6)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--length", type=int, default=256)
    options = parser.parse_args()
    model = Model(options.depth, options.width).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    tokens = torch.randint(1000, (8 * options.batch_size, options.length))
    while True:
        for (batch,) in DataLoader(TensorDataset(tokens), options.batch_size):
            batch = batch.cuda()
            loss = nn.functional.cross_entropy(model(batch).flatten(0, 1), batch.flatten())
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
