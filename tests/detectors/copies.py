"""Copies of models, weights and activations; and what only looks like a copy."""

import copy

import torch
import torch.nn.functional as F
from torch import nn

from blowups import Calls
from case import fires, randn, spares, train

MIB = 1 << 20


def wide(width=1024, layers=4):
    return nn.Sequential(*(nn.Linear(width, width, bias=False) for _ in range(layers)))


# -- models -------------------------------------------------------------------------------------------


@fires("model-copies", "1.0 × the weights", {"ema-cpu": "exact"})
def an_average():
    model = wide().cuda()
    average = copy.deepcopy(model).requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(3):
        model(randn(64, 1024)).sum().backward()
        optimizer.step()
        optimizer.zero_grad()
        with torch.no_grad():
            for own, other in zip(average.parameters(), model.parameters()):
                own.lerp_(other, 0.1)
    return 4 * 4 * MIB


@fires("model-copies", "called in the steps", without=("ema-cpu",))
def a_target_network():
    """It runs in every step: it cannot wait on the host."""
    model = wide().cuda()
    target = copy.deepcopy(model).requires_grad_(False)
    train(model, randn(64, 1024), loss=lambda y: F.mse_loss(y, target(y.detach())))
    return 4 * 4 * MIB


class Contrast(nn.Module):
    """A model with its momentum encoder inside, which its optimizer has too."""

    def __init__(self):
        super().__init__()
        self.encoder_q, self.encoder_k = wide(), wide().requires_grad_(False)

    def forward(self, x):
        with torch.no_grad():
            keys = self.encoder_k(x)
        return self.encoder_q(x) * keys


@fires("model-copies", "called in the steps", without=("ema-cpu",))
def a_momentum_encoder():
    train(Contrast().cuda(), randn(64, 1024))
    return 4 * 4 * MIB


@spares("model-copies")
def frozen_keys():
    """Alike, named so and frozen; but single layers beside each other, not a model that follows another."""

    def forward(self, x):
        return self.query(x) * self.key(x) + self.teacher_head(self.head(x))

    layers = {name: nn.Linear(1024, 1024) for name in ("query", "key", "head", "teacher_head")}
    model = Calls(forward, **layers).cuda()
    model.key.requires_grad_(False)
    model.teacher_head.requires_grad_(False)
    train(model, randn(64, 1024))


@spares("model-copies")
def two_towers():
    """A frozen tower beside a trained one, and no name says that it follows it."""

    def forward(self, x):
        return self.image(x) * self.text(x)

    model = Calls(forward, image=wide(), text=wide()).cuda()
    model.text.requires_grad_(False)
    train(model, randn(64, 1024))


@spares("model-copies")
def two_critics():
    """Alike in every shape, and both are trained."""
    one, other = wide().cuda(), wide().cuda()
    optimizers = [torch.optim.SGD(model.parameters(), lr=0.1) for model in (one, other)]
    for _ in range(3):
        (one(randn(64, 1024)).sum() + other(randn(64, 1024)).sum()).backward()
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()


@spares("model-copies")
def one_model_twice():
    model = wide().cuda()
    train(model, randn(64, 1024), loss=lambda y: model(y).sum())


# -- autocast -----------------------------------------------------------------------------------------


def in_bfloat16(function):
    with torch.autocast("cuda", torch.bfloat16):
        function()


@fires("autocast-casts", "in bfloat16")
def casts_of_weights():
    def loss(y):
        return y.float().sum()

    in_bfloat16(lambda: train(wide().cuda(), randn(64, 1024), loss=loss))
    return 4 * 1024 * 1024 * 2


@spares("autocast-casts")
def a_model_in_bfloat16():
    train(wide().cuda().bfloat16(), randn(64, 1024, dtype=torch.bfloat16))


ROWS = (16, 1024, 512)
SIZE = 16 * 1024 * 512 * 4


@fires("norms-in-float32", "although autocast is bfloat16")
def layer_norms_under_autocast():
    layers = [layer for _ in range(3) for layer in (nn.Linear(512, 512), nn.LayerNorm(512))]
    in_bfloat16(lambda: train(nn.Sequential(*layers).cuda(), randn(*ROWS)))
    return 3 * SIZE


@spares("norms-in-float32")
def layer_norms_without_autocast():
    layers = [layer for _ in range(3) for layer in (nn.Linear(512, 512), nn.LayerNorm(512))]
    train(nn.Sequential(*layers).cuda(), randn(*ROWS))


@spares("norms-in-float32")
def batch_norms_under_autocast():
    """Autocast leaves batch norm the dtype that it is given."""
    layers = [layer for _ in range(3) for layer in (nn.Conv2d(32, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU())]
    in_bfloat16(lambda: train(nn.Sequential(*layers).cuda(), randn(8, 32, 128, 128)))


# -- activations --------------------------------------------------------------------------------------

@fires("duplicates", "clone", {"remove-copy": "exact"})
def a_clone():
    def forward(self, x):
        y = torch.tanh(self.fc(x)).clone()  # HERE
        return y.sin()

    train(Calls(forward, fc=nn.Linear(512, 512)).cuda(), randn(*ROWS))
    return SIZE


@fires("duplicates", "contiguous", {"remove-copy": "exact"})
def a_transposed_copy():
    def forward(self, x):
        y = torch.tanh(self.fc(x)).transpose(1, 2).contiguous()  # HERE
        return y.sin()

    train(Calls(forward, fc=nn.Linear(512, 512)).cuda(), randn(*ROWS))
    return SIZE


@fires("duplicates", "float", {"remove-copy": "exact"})
def both_dtypes():
    def forward(self, x):
        y = torch.tanh(self.fc(x))
        return y.float().sin()  # HERE

    train(Calls(forward, fc=nn.Linear(512, 512)).cuda().bfloat16(), randn(*ROWS, dtype=torch.bfloat16))
    return SIZE


@fires("duplicates", "cat", {"remove-copy": "exact"})
def parts_and_their_whole():
    def forward(self, x):
        one, other = torch.tanh(self.one(x)), torch.sigmoid(self.other(x))
        return torch.cat([one, other], -1).sin()  # HERE

    train(Calls(forward, one=nn.Linear(512, 512), other=nn.Linear(512, 512)).cuda(), randn(*ROWS))
    return 2 * SIZE


@spares("duplicates")
def views():
    def forward(self, x):
        y = torch.tanh(self.fc(x))
        return y.view(16, 1024, 8, 64).transpose(1, 2).sin() + y.detach().view(16, 8, 1024, 64)

    train(Calls(forward, fc=nn.Linear(512, 512)).cuda(), randn(*ROWS))


@spares("duplicates")
def contiguous_of_what_is_contiguous():
    def forward(self, x):
        return torch.tanh(self.fc(x)).contiguous().reshape(-1, 512).float().sin()

    train(Calls(forward, fc=nn.Linear(512, 512)).cuda(), randn(*ROWS))


@spares("duplicates")
def parts_that_are_gone():
    """Nothing keeps the sums that are joined."""

    def forward(self, x):
        y = self.fc(x)
        return torch.cat([y + 1, y + 2], -1).sin()

    train(Calls(forward, fc=nn.Linear(512, 512)).cuda(), randn(*ROWS))


@spares("duplicates")
def a_clone_whose_source_is_gone():
    def forward(self, x):
        return self.fc(x).clone().sin()

    train(Calls(forward, fc=nn.Linear(512, 512)).cuda(), randn(*ROWS))


@spares("duplicates")
def layers_of_one_size():
    """Many tensors of one shape, and none is a copy."""
    train(nn.Sequential(*(nn.Sequential(nn.Linear(512, 512), nn.Tanh()) for _ in range(4))).cuda(), randn(*ROWS))


class Rounded(torch.autograd.Function):
    """As layers of eight bits do: rounded for the product, and kept so."""

    @staticmethod
    def forward(ctx, x):
        y = torch.tanh(x)
        short = y.to(torch.float8_e4m3fn)
        ctx.save_for_backward(y, short)
        return y * 2

    @staticmethod
    def backward(ctx, gradient):
        y, _ = ctx.saved_tensors
        return gradient * y


@spares("duplicates")
def rounded_to_eight_bits():
    def forward(self, x):
        return Rounded.apply(self.fc(x))

    train(nn.Sequential(*(Calls(forward, fc=nn.Linear(512, 512)) for _ in range(3))).cuda(), randn(*ROWS))


@spares("duplicates")
def what_comes_later_with_the_same_sizes():
    """A convolution's result is as large as its input, whose own source is gone: the input is no copy of it."""

    def forward(self, x):
        joined = torch.cat([self.first(x), x], 1).transpose(2, 3).contiguous()
        return F.leaky_relu(self.norm(self.second(joined)))

    layers = {"first": nn.Conv2d(32, 32, 1), "second": nn.Conv2d(64, 64, 1), "norm": nn.BatchNorm2d(64)}
    train(Calls(forward, **layers).cuda(), randn(8, 32, 128, 128))
