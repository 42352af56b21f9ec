"""What every training has: maps, rows, state, inputs; and memory that is no tensor's."""

import torch
from torch import nn

from case import fires, randn, spares, train
from copies import wide
from training import mlp

MIB = 1 << 20


def convolutions(layers=4):
    parts = [part for _ in range(layers) for part in (nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())]
    return nn.Sequential(*parts)


@fires("feature-maps", "at 128 × 128", {"amp-bf16": "changes numerics", "batch": "changes batch statistics"})
@spares("activations")
def maps():
    train(convolutions().cuda(), randn(16, 32, 128, 128))
    return (4 + 3 + 2) * 16 * 32 * 128 * 128 * 4  # inputs of norms, of convolutions, and two gradients


@fires("activations", "of 65536 rows", {"amp-bf16": "changes numerics"})
@spares("feature-maps", "model-state")
def rows():
    train(mlp().cuda(), randn(65536, 512))


@fires("model-state", "parameters", {"freeze": "changes training"})
@spares("activations", "feature-maps", "inputs")
def state():
    train(wide().cuda(), randn(8, 1024))
    return 2 * 4 * 1024 * 1024 * 4


@fires("inputs", "", {"inputs": "changes the function"})
@spares("buffers")
def large_inputs():
    train(nn.Linear(512, 4).cuda(), randn(16384, 512))
    return 16384 * 512 * 4 + 512  # and the number that a backward pass begins with


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
    train(nn.Sequential(nn.Conv2d(3, 64, 1), nn.Conv2d(64, 8, 3, padding=1)).cuda(), randn(4, 3, 256, 256))


@fires("workspace", "cuDNN", without=("channels-last",))
def scratch_of_a_convolution_of_sound():
    train(nn.Sequential(nn.Conv1d(3, 64, 1), nn.Conv1d(64, 64, 3, padding=1)).cuda(), randn(16, 3, 65536))


@fires("workspace", "cuDNN", without=("channels-last",))
def scratch_with_channels_last():
    model = nn.Sequential(nn.Conv2d(3, 64, 1), nn.Conv2d(64, 8, 3, padding=1)).cuda().to(memory_format=torch.channels_last)
    train(model, randn(4, 3, 256, 256).to(memory_format=torch.channels_last))


@fires("activations", without=("batch", "accumulate"))
def one_sample():
    """No batch is smaller than one."""
    train(nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.ReLU()) for _ in range(4))).cuda(), randn(1, 65536, 512))


@fires("workspace", "cudnn.benchmark is on", {"cudnn-benchmark": "numerically equal"})
def scratch_of_the_fastest_convolution():
    torch.backends.cudnn.benchmark = True
    train(convolutions(1).cuda(), randn(16, 32, 128, 128))


@spares("workspace")
def no_scratch():
    train(mlp().cuda(), randn(65536, 512))


@fires("fragmentation", "in holes between blocks", {"allocator": "exact"})
def small_tensors_in_large_holes():
    """Each batch leaves a segment, and what is kept of it lies there: the next batch does not fit any more."""
    model = nn.Linear(512, 512).cuda()
    kept = []
    for _ in range(5):
        batch = randn(65536, 512)
        del batch
        kept.append(randn(1024, 512))
        train(model, kept[-1], steps=1)


@fires("fragmentation", "in segments that are wholly free")
def batches_that_grow():
    """What a batch leaves is too small for the next; but the cache gives it back when memory runs out."""
    model = nn.Linear(512, 512).cuda()
    for step in range(6):
        train(model, randn(16384 + 4096 * step, 512), steps=1)


@spares("fragmentation")
def batches_of_one_size():
    train(mlp().cuda(), randn(65536, 512))
