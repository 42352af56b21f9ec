"""The MLPs of which GPUMemNet published peaks, written anew: `bench/data/published/README.md` says how that is known.

    python mlps.py ROWS.json PEAKS.json

Writes the parameters and the reserved peak of each row, as a process of its own has it: in between everything is
given back, cuBLAS's workspaces too.
"""

import gc
import json
import sys
from pathlib import Path

import torch
from torch import nn

SAMPLES = 4096
EPOCHS = 2


def widths(inputs, outputs, depth, arch):
    """Features of each layer in turn, from the input to the last hidden one."""
    found = [inputs]
    step = (inputs - outputs) // depth
    for _ in range(depth + (arch == "bottleneck")):
        wide = found[-1]
        narrower = {"uniform": wide, "gradual": wide - step}.get(arch, wide // 2)
        found.append(narrower if arch == "uniform" else max(narrower, outputs))
    return found


def model(row):
    features = widths(int(row["input"]), int(row["output"]), int(row["depth"]), row["arch"])
    hidden = [[nn.Linear(wide, next_wide), nn.ReLU()] for wide, next_wide in zip(features, features[1:], strict=False)]
    return nn.Sequential(*(layer for pair in hidden for layer in pair), nn.Linear(features[-1], int(row["output"])))


def train(row):
    """As their loop does: a name holds its tensor until it is bound again."""
    net, batch = model(row).to("cuda"), int(row["batch"])
    # torchsummary's pass, whose input and result live until the end of its function.
    net(torch.rand(2, 1, int(row["input"])).type(torch.cuda.FloatTensor))
    criterion, optimizer = nn.CrossEntropyLoss(), torch.optim.Adam(net.parameters())
    sizes = [batch] * (SAMPLES // batch) + [SAMPLES % batch] * (SAMPLES % batch > 0)
    for size in sizes * EPOCHS:
        inputs, labels = torch.empty(size, int(row["input"])), torch.zeros(size, dtype=torch.long)
        inputs, labels = inputs.to("cuda"), labels.to("cuda")
        optimizer.zero_grad()
        outputs = net(inputs)
        loss = criterion(outputs, labels)
        loss.backward()
        optimizer.step()
        loss.item()
    return sum(parameter.numel() for parameter in net.parameters())


def measured(row):
    torch._C._cuda_clearCublasWorkspaces()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.memory_reserved() == 0, "what the row before left behind"
    return {"parameters": train(row), "reserved": torch.cuda.max_memory_reserved()}


def main(rows, peaks):
    torch.cuda.init()
    Path(peaks).write_text(json.dumps([measured(row) for row in json.loads(Path(rows).read_text())]))


if __name__ == "__main__":
    main(*sys.argv[1:])
