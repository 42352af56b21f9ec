"""What every training has: maps, rows, state, inputs; and memory that is no tensor's."""

import torch
from torch import nn

from blowups import Calls
from case import fires, randn, spares, train
from copies import wide
from training import mlp

MIB = 1 << 20


def convolutions(layers=4):
    parts = [part for _ in range(layers) for part in (nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())]
    return nn.Sequential(*parts)


@fires("feature-maps", "at 128 × 128", {"amp-bf16": "changes precision", "batch": "changes statistics"})
@spares("activations")
def maps():
    train(convolutions().cuda(), randn(16, 32, 128, 128))


@fires("activations", "of 16384 rows", {"amp-bf16": "changes precision"})
@spares("feature-maps", "model-state")
def rows():
    train(mlp().cuda(), randn(16384, 512))


@fires("model-state", "parameters", {"freeze": "changes the function"})
@spares("activations", "feature-maps", "inputs")
def state():
    train(wide().cuda(), randn(8, 1024), optimizer=None)


@fires("inputs", "", {"inputs": "changes the function"})
@spares("buffers")
def large_inputs():
    train(nn.Linear(512, 4).cuda(), randn(16384, 512))
    return 16384 * 512 * 4


@fires("buffers")
def a_table_of_positions():
    class Positions(nn.Module):
        def __init__(self):
            super().__init__()
            self.fc = nn.Linear(512, 512)
            self.register_buffer("table", torch.zeros(4096, 512))

        def forward(self, x):
            return self.fc(x + self.table[: x.shape[0]])

    train(Positions().cuda(), randn(256, 512))
    return 4096 * 512 * 4


@fires("workspace", "cuDNN", {"channels-last": "numerically equal"})
def scratch_of_a_convolution():
    train(convolutions(1).cuda(), randn(16, 32, 128, 128))


@fires("workspace", "cudnn.benchmark is on", {"cudnn-benchmark": "numerically equal"})
def scratch_of_the_fastest_convolution():
    torch.backends.cudnn.benchmark = True
    train(convolutions(1).cuda(), randn(16, 32, 128, 128))


@spares("workspace")
def no_scratch():
    train(mlp().cuda(), randn(65536, 512))


@fires("fragmentation", "in holes between blocks", {"allocator": "exact"})
def batches_that_grow():
    """Each is a little larger than the hole that the last one left."""
    model = Calls(lambda self, x: self.fc(x).tanh().exp(), fc=nn.Linear(512, 512)).cuda()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    kept = []
    for step in range(6):
        kept.append(randn(1024, 512))
        model(randn(16384 + 4096 * step, 512)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()


@spares("fragmentation")
def batches_of_one_size():
    train(mlp().cuda(), randn(16384, 512))
