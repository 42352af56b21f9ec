"""What architectures of one field blow up: gates, experts, correlations, grids, groups of points, masks."""

import torch
import torch.nn.functional as F
from torch import nn

from attention import BATCH, HEADS, TOKENS, Heads, tokens
from blowups import Calls
from case import fires, randn, spares, train


def masked(mask):
    """Layers of fused attention that are given one mask, which nobody but autograd keeps."""
    given = []

    def attend(q, k, v):
        return F.scaled_dot_product_attention(q, k, v, given[0])

    def forward(self, x):
        given.append(mask(x))
        for layer in self.layers:
            x = x + layer(x)
        given.clear()
        return x

    train(Calls(forward, layers=nn.ModuleList(Heads(attend) for _ in range(2))).cuda(), tokens())


@fires("attention-masks", f"{BATCH} sequences × {HEADS} heads", {"small-mask": "numerically equal"})
@spares("attention-matrices")
def a_mask_for_every_head():
    def mask(x):
        causal = torch.full((TOKENS, TOKENS), float("-inf"), device="cuda").triu(1)
        return causal.expand(BATCH, HEADS, -1, -1).contiguous()  # HERE

    masked(mask)
    return BATCH * HEADS * TOKENS**2 * 4


@spares("attention-masks")
def a_mask_that_is_a_view():
    masked(lambda x: torch.zeros(BATCH, 1, 1, TOKENS, device="cuda").expand(-1, HEADS, TOKENS, -1))


# -- gates, experts -----------------------------------------------------------------------------------


def gate(function):
    def forward(self, x):
        return self.down(function(self.gate(x)) * self.up(x))

    layers = {"gate": nn.Linear(512, 2048), "up": nn.Linear(512, 2048), "down": nn.Linear(2048, 512)}
    return Calls(forward, **layers)


@fires("gated-layers", "4 gates", {"fused-function": "numerically equal", "checkpoint": "exact"})
def swiglu():
    train(nn.Sequential(*(gate(F.silu) for _ in range(4))).cuda(), randn(8192, 512), loss=torch.mean)
    return (4 * 4 - 1) * 8192 * 2048 * 4  # the last product is gone by then


@spares("gated-layers")
def a_scale_by_what_is_learned():
    """A product with a parameter is no gate."""

    def forward(self, x):
        return self.down(F.silu(self.up(x)) * self.scale)

    def layer():
        return Calls(forward, up=nn.Linear(512, 2048), down=nn.Linear(2048, 512), scale=nn.Parameter(torch.ones(2048)))

    train(nn.Sequential(*(layer() for _ in range(4))).cuda(), randn(8192, 512))


def experts(capacity, count=8):
    """A router, a place for each token that an expert may get, and back."""

    def forward(self, x):
        chances = self.router(x).softmax(-1)
        chance, expert = chances.max(-1)
        places = int(capacity * len(x) / count)
        place = torch.arange(len(x), device="cuda") % places
        rows = expert * places + place
        given = x.new_zeros(count * places, 512).index_add(0, rows, x)
        made = F.gelu(given.view(count, places, 512) @ self.up) @ self.down
        return made.reshape(-1, 512)[rows] * chance[:, None]

    weights = {"up": nn.Parameter(randn(count, 512, 1024)), "down": nn.Parameter(randn(count, 1024, 512))}
    return Calls(forward, router=nn.Linear(512, count), **weights)


@fires("expert-padding", "2.00 for each token", {"capacity": "changes the function", "grouped-experts": "numerically equal"})
def places_for_twice_the_tokens():
    train(nn.Sequential(*(experts(2) for _ in range(3))).cuda(), randn(8192, 512))


@spares("expert-padding")
def as_many_places_as_tokens():
    train(nn.Sequential(*(experts(1) for _ in range(3))).cuda(), randn(8192, 512))


@spares("expert-padding")
def an_ensemble_without_a_router():
    def forward(self, x):
        return (F.gelu(x.expand(8, -1, -1) @ self.up) @ self.down).mean(0)

    train(Calls(forward, up=nn.Parameter(randn(8, 512, 1024)), down=nn.Parameter(randn(8, 1024, 512))).cuda(), randn(4096, 512))


# -- maps ---------------------------------------------------------------------------------------------


@fires("correlation-volume", "every position by every other", {"correlate-on-demand": "numerically equal"})
def a_pyramid_of_correlations():
    def forward(self, one, other):
        a, b = self.net(one).flatten(2), self.net(other).flatten(2)
        volume = (a.transpose(1, 2) @ b / 8).view(-1, 32, 40, 1, 32, 40).reshape(-1, 1, 32, 40)
        levels = [volume, F.avg_pool2d(volume, 2)]
        grid = one.new_zeros(len(volume), 3, 3, 2)
        return sum(F.grid_sample(level, grid, align_corners=True).sum() for level in levels)

    train(Calls(forward, net=nn.Conv2d(3, 64, 8, stride=8)).cuda(), randn(2, 3, 256, 320), randn(2, 3, 256, 320))


@spares("correlation-volume")
def a_cube_of_equal_sizes():
    """Maps of 32 × 32 × 32 with 32 channels, and a residual sum."""

    def forward(self, x):
        y = F.avg_pool3d(self.first(x).relu() + x, 1)
        return self.second(y)

    train(Calls(forward, first=nn.Conv3d(32, 32, 1), second=nn.Conv3d(32, 4, 1)).cuda(), randn(4, 32, 32, 32, 32))


def written(points, size):
    """Features of points in a grid of zeros, and a convolution over it."""

    def forward(self, features, places):
        grid = features.new_zeros(64, size * size)
        grid[:, places] = self.net(features).t()
        return self.conv(torch.stack([grid]).view(1, 64, size, size))

    net, conv = nn.Linear(16, 64), nn.Conv2d(64, 8, 3, stride=2)
    places = torch.arange(points, device="cuda") % (size * size)
    train(Calls(forward, net=net, conv=conv).cuda(), randn(points, 16), places, loss=torch.mean)


@fires("scattered-grid", "1,048,576 places for 20,000 points", {"sparse-grid": "changes the function"})
def few_points_in_a_grid():
    written(20000, 1024)


@spares("scattered-grid")
def a_grid_that_is_full():
    written(256 * 256, 256)


@spares("scattered-grid")
def maps_of_regions():
    """Of 1,024 regions each has a map of its own: 7 × 7 places for one index, and all are filled."""

    def forward(self, maps, regions):
        pooled = maps.new_zeros(1024, 64, 7, 7)
        pooled[regions] = self.net(maps)
        return self.head(pooled.flatten(1))

    net, head = nn.Conv2d(64, 64, 1), nn.Linear(64 * 49, 64)
    regions = torch.arange(1024, device="cuda").flip(0)
    train(Calls(forward, net=net, head=head).cuda(), randn(1024, 64, 7, 7), regions)


def neighbours(gathered):
    def forward(self, points):
        nearest = torch.cdist(points[:, :, :3], points[:, :, :3]).topk(16)[1]
        x = self.first(points)
        return self.second(gathered(x, nearest)).amax(-1)

    train(Calls(forward, first=nn.Linear(6, 64), second=nn.Conv2d(64, 128, 1)).cuda(), randn(8, 1024, 6))


@fires("feature-maps", "1024 points × 16 neighbours", {"layer-before-groups": "numerically equal"})
def groups_of_points():
    batch = torch.arange(8, device="cuda")[:, None, None]
    neighbours(lambda x, nearest: x[batch, nearest].permute(0, 3, 1, 2).contiguous())


@fires("feature-maps", "feature maps at 1024 × 16", without=("layer-before-groups",))
def maps_of_the_same_size():
    neighbours(lambda x, nearest: x.transpose(1, 2)[..., None].repeat(1, 1, 1, 16))


class Groups(nn.Module):
    """Frames and groups of points are rows of one batch in here."""

    def __init__(self):
        super().__init__()
        self.num_group, self.net = 64, nn.Sequential(*(nn.Sequential(nn.Linear(64, 64), nn.Tanh()) for _ in range(4)))

    def forward(self, x, weights):
        rows = x.reshape(-1, 32, 64)
        return self.net(rows).mean((1, 2)) * weights.repeat_interleave(2 * self.num_group)


@fires("activations", "a guess: 1,024 = batch 8 × 2 × num_group 64")
def rows_that_settings_explain():
    train(Groups().cuda(), randn(8, 2, 64, 32, 64), randn(8))
