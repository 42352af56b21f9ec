"""The two encoders of point clouds: PointNet as in DP3, and Uni3D in its place. Both give 64 features a cloud.

Clouds are (clouds, points, 6): coordinates and colours. Uni3D cuts each cloud into `num_group` groups of
`group_size` neighbours and runs a small network on *every point of every group*: clouds x groups x neighbours
points pass layers of 128 to 512 channels, before there is a single token for the transformer.
"""

import math

import torch
from torch import nn
from torch.utils.checkpoint import checkpoint

from eva import SIZES, Eva


class PointNet(nn.Module):
    """Three linear layers on every point, the maximum over the points, a projection. Colours are not used."""

    def __init__(self, features):
        super().__init__()
        layers = []
        for inputs, outputs in ((3, 64), (64, 128), (128, 256)):
            layers += [nn.Linear(inputs, outputs), nn.LayerNorm(outputs), nn.ReLU()]
        self.per_point = nn.Sequential(*layers)
        self.projection = nn.Sequential(nn.Linear(256, features), nn.LayerNorm(features))

    def forward(self, clouds):
        return self.projection(self.per_point(clouds[..., :3]).amax(dim=1))


def gather_points(values, indices):
    """(clouds, points, c) at (clouds, …) -> (clouds, …, c)."""
    cloud = torch.arange(len(values), device=values.device).view(-1, *[1] * (indices.dim() - 1))
    return values[cloud, indices]


def farthest_points(positions, count):
    """Indices (clouds, count) of points that are far from each other, each the farthest from those before."""
    clouds, points, _ = positions.shape
    chosen = torch.zeros(clouds, count, dtype=torch.long, device=positions.device)
    distance = torch.full((clouds, points), math.inf, device=positions.device, dtype=positions.dtype)
    for index in range(1, count):
        latest = gather_points(positions, chosen[:, index - 1 : index])
        distance = torch.minimum(distance, (positions - latest).square().sum(dim=-1))
        chosen[:, index] = distance.argmax(dim=-1)
    return chosen


@torch.no_grad()
def group_points(clouds, groups, neighbours):
    """The centres (clouds, groups, 3) and the neighbours of each, relative to it: (clouds, groups, neighbours, 6)."""
    positions = clouds[..., :3].contiguous()
    centres = gather_points(positions, farthest_points(positions, groups))
    squares = centres.square().sum(dim=-1, keepdim=True) + positions.square().sum(dim=-1).unsqueeze(1)
    distances = torch.baddbmm(squares, centres, positions.transpose(1, 2), alpha=-2)
    nearest = distances.topk(neighbours, dim=-1, largest=False, sorted=False).indices
    members = gather_points(clouds, nearest)
    return centres, torch.cat((members[..., :3] - centres.unsqueeze(2), members[..., 3:]), dim=-1)


class GroupEncoder(nn.Module):
    """A small PointNet that turns the points of a group into one token of 512 features.

    In training, autograd keeps 6 + 128 + 128 + 512 + 512 + 512 numbers for every grouped point (7,192 bytes): the
    inputs of the four convolutions and of the two norms. The activations overwrite the norms' outputs.
    """

    WIDTH = 512

    def __init__(self):
        super().__init__()
        self.first = nn.Sequential(
            nn.Conv1d(6, 128, 1), nn.BatchNorm1d(128), nn.ReLU(inplace=True), nn.Conv1d(128, 256, 1)
        )
        self.second = nn.Sequential(
            nn.Conv1d(512, 512, 1), nn.BatchNorm1d(512), nn.ReLU(inplace=True), nn.Conv1d(512, self.WIDTH, 1)
        )

    def forward(self, members):
        clouds, groups, neighbours, channels = members.shape
        points = members.reshape(clouds * groups, neighbours, channels).transpose(1, 2)
        features = self.first(points)
        whole = features.max(dim=2, keepdim=True)[0].expand(-1, -1, neighbours)
        features = torch.cat((whole, features), dim=1)
        token = self.second(features).max(dim=2)[0]
        return token.reshape(clouds, groups, self.WIDTH)


def drop_patches(tokens, rate):
    """Keeps the class token and a random part of the others, in training and, as Uni3D does, also after it."""
    if rate == 0:
        return tokens
    clouds, count = len(tokens), tokens.shape[1] - 1
    kept = torch.rand(clouds, count).topk(max(1, int(count * (1 - rate))), dim=-1).indices
    return torch.cat((tokens[:, :1], gather_points(tokens[:, 1:], kept.to(tokens.device))), dim=1)


class PointTransformer(nn.Module):
    """Groups, the group encoder, and an EVA transformer over the groups' tokens: 1,024 features a cloud."""

    FEATURES = 1024

    def __init__(self, config):
        super().__init__()
        size = SIZES[config.uni3d_size]
        frozen = config.freeze_weights
        self.num_group, self.group_size = config.num_group, config.group_size
        self.patch_dropout = 0.0 if frozen else config.patch_dropout
        self.checkpoint_encoder = config.checkpoint_encoder
        self.group_encoder = GroupEncoder()
        self.to_token = nn.Linear(GroupEncoder.WIDTH, size.width)
        self.position = nn.Sequential(nn.Linear(3, 128), nn.GELU(), nn.Linear(128, size.width))
        self.class_token = nn.Parameter(torch.zeros(1, 1, size.width))
        self.class_position = nn.Parameter(torch.randn(1, 1, size.width))
        drop_path = 0.0 if frozen else config.drop_path_rate
        self.eva = Eva(size, drop_path, config.fused_attention, config.checkpoint_blocks, config.empty_cache)
        self.to_features = nn.Linear(size.width, self.FEATURES)

    def forward(self, clouds):
        centres, members = group_points(clouds, self.num_group, self.group_size)
        if self.checkpoint_encoder and torch.is_grad_enabled():
            groups = checkpoint(self.group_encoder, members, use_reentrant=False)
        else:
            groups = self.group_encoder(members)
        tokens = self.to_token(groups) + self.position(centres)
        first = (self.class_token + self.class_position).expand(len(clouds), -1, -1)
        tokens = drop_patches(torch.cat((first, tokens), dim=1), self.patch_dropout)
        return self.to_features(self.eva(tokens))


class Uni3d(nn.Module):
    """The point transformer and a projection to the features that the policy wants.

    `freeze_weights` keeps the transformer in half precision and evaluation mode, without gradients; the projection
    is trained.
    """

    def __init__(self, config, features):
        super().__init__()
        self.points = PointTransformer(config)
        self.projection = nn.Linear(PointTransformer.FEATURES, features)
        self.logit_scale = nn.Parameter(torch.tensor(math.log(1 / 0.07)))  # of the pretraining; nothing uses it
        self.frozen = config.freeze_weights
        if self.frozen:
            self.points.half().requires_grad_(False)
            self.logit_scale.requires_grad_(False)

    def train(self, mode=True):
        super().train(mode)
        if self.frozen:
            self.points.eval()
        return self

    def forward(self, clouds):
        if not self.frozen:
            return self.projection(self.points(clouds))
        with torch.no_grad():
            features = self.points(clouds.half())
        return self.projection(features.float())
