"""Linear layers of 16 × 16 with ReLU, SGD with momentum, 8 rows: many small functions and parameters"""

import sys

import torch
from training import Training, run


def build(device, layers="3200"):
    parts = [part for _ in range(int(layers)) for part in (torch.nn.Linear(16, 16, device=device), torch.nn.ReLU())]
    model = torch.nn.Sequential(*parts)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3, momentum=0.9)
    return Training(model, optimizer, (torch.randn(8, 16, device=device),), lambda output: output.square().mean())


if __name__ == "__main__":
    run(build, *sys.argv[1:])
