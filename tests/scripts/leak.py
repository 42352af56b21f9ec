"""Sums up losses of a second pass that nobody runs backward: each step keeps one more graph."""

import torch
from torch import nn
from torch.nn import functional as F


def main():
    model = nn.Sequential(nn.Linear(512, 2048), nn.ReLU(), nn.Linear(2048, 10)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    total_loss = 0
    for _ in range(6):
        x, y = torch.randn(256, 512, device="cuda"), torch.randint(10, (256,), device="cuda")
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        total_loss = total_loss + F.cross_entropy(model(x), y)  # the leak
    print(float(total_loss))


if __name__ == "__main__":
    main()
