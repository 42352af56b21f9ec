"""A small training for faults: `python trains.py [--width W] [--steps N] [--hang-from K] [--hang-if FILE]`.

Of several runs in one folder the K-th and all later ones hang after their first step; widths from 256 on do, too, and all runs
that begin when there is such a file.
"""

import argparse
import os
import time

import torch
from torch import nn

parser = argparse.ArgumentParser()
parser.add_argument("--width", type=int, default=64)
parser.add_argument("--steps", type=int, default=50)
parser.add_argument("--hang-from", type=int, default=0)
parser.add_argument("--hang-if", default="")
parser.add_argument("--pause", type=float, default=0.0)
args = parser.parse_args()

number = 0
while args.hang_from:
    number += 1
    try:
        os.close(os.open(f"run-{number}", os.O_CREAT | os.O_EXCL))
        break
    except FileExistsError:
        pass
hangs = args.width >= 256 or 0 < args.hang_from <= number or os.path.exists(args.hang_if)

model = nn.Sequential(*(layer for _ in range(8) for layer in (nn.Linear(args.width, args.width), nn.ReLU()))).cuda()
optimizer = torch.optim.Adam(model.parameters())
print("ready", flush=True)
for step in range(args.steps):
    loss = model(torch.randn(1 << 16, args.width, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print("step", step, flush=True)
    time.sleep(args.pause)
    while hangs:
        time.sleep(1)
