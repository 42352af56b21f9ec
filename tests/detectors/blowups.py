"""Tensors that one operator blows up, and the same operator where it does not."""

import torch
import torch.nn.functional as F
from torch import nn

from case import fires, randn, spares, train


class Calls(nn.Module):
    """Some layers, and a function of them and the input."""

    def __init__(self, function, **layers):
        super().__init__()
        self.function = function
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, *args):
        return self.function(self, *args)


# -- windows ------------------------------------------------------------------------------------------


@fires("unfold", "kernel height × width", {"tiles": "numerically equal", "depthwise-gate": "changes the function"})
def windows():
    def forward(self, x):
        columns = F.unfold(self.conv(x), 7, padding=3)  # HERE
        return columns * self.gate

    train(Calls(forward, conv=nn.Conv2d(3, 32, 1), gate=nn.Parameter(torch.ones(32 * 49, 1))).cuda(), randn(2, 3, 128, 128))
    return 3 * 2 * 32 * 49 * 128 * 128 * 4  # the windows, and two gradients of that size


@spares("unfold")
def few_windows():
    def forward(self, x):
        y = self.conv(x)
        return y.sum() + F.unfold(y[:, :1, ::8, ::8], 3).sum()

    train(Calls(forward, conv=nn.Conv2d(3, 32, 3)).cuda(), randn(8, 3, 256, 256))


@spares("unfold")
def patches_side_by_side():
    """Windows that do not overlap: as many numbers as before."""

    def forward(self, x):
        return self.fc(F.unfold(self.conv(x), 16, stride=16).transpose(1, 2))

    train(Calls(forward, conv=nn.Conv2d(3, 16, 1), fc=nn.Linear(16 * 256, 64)).cuda(), randn(8, 3, 256, 256))


# -- one-hot vectors, pairs ---------------------------------------------------------------------------


@fires("one-hot", "one index becomes 5000 numbers", {"indices": "exact"})
def one_hot():
    def forward(self, indices):
        vectors = F.one_hot(indices, 5000).float()  # HERE
        return self.fc(vectors)

    train(Calls(forward, fc=nn.Linear(5000, 64)).cuda(), torch.zeros(8, 1024, dtype=torch.int64, device="cuda"))
    return 8 * 1024 * 5000 * (8 + 4)  # of int64 and of float32


@fires("one-hot", "one index becomes 512 numbers", {"indices": "exact"})
def one_hot_without_its_integers():
    """By the backward pass only the copy in float32 is left."""

    def forward(self, indices):
        return self.fc(F.one_hot(indices, 512).float()).tanh()  # HERE

    train(Calls(forward, fc=nn.Linear(512, 2048)).cuda(), torch.zeros(8, 1024, dtype=torch.int64, device="cuda"))
    return 8 * 1024 * 512 * 4


@spares("one-hot", "pairwise")
def arguments_that_are_refused():
    """Whoever calls a function wrongly hears it from torch."""
    x = randn(8, 8)
    for function in (F.one_hot, torch.cdist):
        try:
            function(x, None)
        except TypeError as error:
            assert "must be" in str(error) and "NoneType" in str(error)
        else:
            raise AssertionError(function)
    train(nn.Linear(8, 8).cuda(), x)


@spares("one-hot")
def embedding():
    train(nn.Embedding(5000, 64).cuda(), torch.zeros(64, 1024, dtype=torch.int64, device="cuda"))


@fires("pairwise", "is larger than both", {"tiles": "numerically equal"})
def differences_of_points():
    def forward(self, points):
        x = self.fc(points)
        return (x[:, :, None] - x[:, None]).square()  # HERE

    train(Calls(forward, fc=nn.Linear(3, 16)).cuda(), randn(4, 1024, 3))
    return 4 * 4 * 1024 * 1024 * 16 * 4  # the differences, and three gradients on the way to them


@fires("pairwise", "", {"tiles": "numerically equal"})
def distances_of_points():
    def forward(self, points):
        x = self.fc(points)
        return torch.cdist(x, x).exp()  # HERE

    train(Calls(forward, fc=nn.Linear(3, 16)).cuda(), randn(4, 4096, 3))


@fires("pairwise", "is larger than both", {"nearest": "numerically equal", "tiles": "numerically equal"})
@spares("feature-maps")
def nearest_points_by_hand():
    """As PointNet++ interpolates: distances by a product, and a sort of which three columns are used."""

    def forward(self, points):
        few = points[:, ::4]
        pairs = -2 * torch.matmul(points, few.transpose(1, 2))
        pairs += (points**2).sum(-1, keepdim=True)
        distances, order = pairs.sort(dim=-1)  # HERE
        near = order[:, :, :3].flatten(1)[:, :1024, None].expand(-1, -1, 3)
        return self.conv(points.gather(1, near).transpose(1, 2)) * distances[:, :1, :1024]

    train(Calls(forward, conv=nn.Conv1d(3, 8, 1)).cuda(), randn(8, 4096, 3).requires_grad_())


@spares("pairwise")
def angles_of_positions():
    """As rotary embeddings make them: positions by frequencies are no points."""

    def forward(self, x):
        angles = torch.matmul(self.positions[:, None], self.frequencies[None])
        return self.fc(x) * angles.cos()

    frequencies = nn.Buffer(torch.ones(512)) if hasattr(nn, "Buffer") else torch.ones(512, device="cuda")
    train(Calls(forward, fc=nn.Linear(64, 512), positions=torch.ones(8192, device="cuda"), frequencies=frequencies).cuda(), randn(8192, 64))


@spares("pairwise")
def a_layer_of_coordinates():
    def forward(self, points):
        return (points @ self.weight.mT).tanh() @ self.weight

    train(Calls(forward, weight=nn.Parameter(torch.randn(256, 3))).cuda(), randn(8, 4096, 3))


@spares("pairwise")
def a_bias_for_every_row():
    def forward(self, x):
        y = self.fc(x)
        return (y - y.mean(-1, keepdim=True)) * self.scale + self.scale[:1]

    train(Calls(forward, fc=nn.Linear(64, 64), scale=nn.Parameter(torch.ones(512, 64))).cuda(), randn(256, 512, 64))


# -- enlarged maps ------------------------------------------------------------------------------------


@fires("upsampled-maps", "", {"conv-before-upsampling": "changes the function", "checkpoint": "exact"})
def enlarged_before_a_convolution():
    def forward(self, x):
        large = F.interpolate(self.one(x), scale_factor=8)  # HERE
        return self.two(large)

    train(Calls(forward, one=nn.Conv2d(3, 64, 1), two=nn.Conv2d(64, 8, 3, padding=1)).cuda(), randn(4, 3, 32, 32))
    return 4 * 64 * 256 * 256 * 4


@spares("upsampled-maps")
def enlarged_after_a_convolution():
    def forward(self, x):
        return F.interpolate(self.two(self.one(x)), scale_factor=8)

    train(Calls(forward, one=nn.Conv2d(3, 64, 1), two=nn.Conv2d(64, 8, 3, padding=1)).cuda(), randn(4, 3, 32, 32))


@spares("upsampled-maps")
def made_smaller_before_a_convolution():
    def forward(self, x):
        return self.two(F.interpolate(self.one(x), scale_factor=0.5))

    train(Calls(forward, one=nn.Conv2d(3, 16, 1), two=nn.Conv2d(16, 8, 3, padding=1)).cuda(), randn(4, 3, 256, 256))


@spares("upsampled-maps")
def channels_into_space_before_a_convolution():
    """A pixel shuffle moves numbers, it adds none."""

    def forward(self, x):
        return self.two(F.pixel_shuffle(self.one(x), 4))

    train(Calls(forward, one=nn.Conv2d(3, 256, 1), two=nn.Conv2d(16, 8, 3, padding=1)).cuda(), randn(4, 3, 64, 64))


# -- losses -------------------------------------------------------------------------------------------

VOCABULARY = 32000


def next_token(logits):
    targets = torch.zeros(logits.shape[0] * logits.shape[1], dtype=torch.int64, device="cuda")
    return F.cross_entropy(logits.flatten(0, 1), targets)


@fires("loss-logits", "logits over 32000 classes", {"chunked-cross-entropy": "numerically equal"})
def a_vocabulary():
    def loss(logits):
        targets = torch.zeros(4, 1024, dtype=torch.int64, device="cuda")
        return F.cross_entropy(logits.flatten(0, 1), targets.flatten())  # HERE

    train(nn.Linear(256, VOCABULARY).cuda(), randn(4, 1024, 256), loss=loss)
    return 3 * 4 * 1024 * VOCABULARY * 4  # log-softmax, its gradient, that of the logits


@spares("loss-logits")
def ten_classes():
    train(nn.Sequential(nn.Linear(256, 2048), nn.Linear(2048, 10)).cuda(), randn(8, 1024, 256), loss=next_token)


@spares("loss-logits")
def regression_of_many_features():
    """Wide, and with a loss, but no classes."""

    def loss(features):
        return F.mse_loss(features, torch.zeros_like(features))

    train(nn.Linear(256, 4096).cuda(), randn(8, 1024, 256), loss=loss)


@fires("loss-logits", "logits over 2048 classes", {"chunked-cross-entropy": "numerically equal"})
def features_as_wide_as_the_vocabulary():
    """Hidden layers of the same width are no logits."""
    layers = [layer for _ in range(4) for layer in (nn.Linear(2048, 2048), nn.LayerNorm(2048))]
    train(nn.Sequential(*layers, nn.Linear(2048, 2048)).cuda(), randn(4, 1024, 2048), loss=next_token)
    return 4 * 1024 * 2048 * 4  # the gradient of the logits


@spares("loss-logits")
def a_map_of_few_classes():
    def loss(logits):
        return F.cross_entropy(logits, torch.zeros(4, 1024, 1024, dtype=torch.int64, device="cuda"))

    train(nn.Conv2d(3, 21, 3, padding=1).cuda(), randn(4, 3, 1024, 1024), loss=loss)
