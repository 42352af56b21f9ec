"""The camera branch: a ResNet on six images, a depth distribution for each pixel, lifted and splatted onto the map."""

import torch
from pillars import conv_bn_relu
from torch import nn
from torch.nn import functional as F

BLOCKS = {"resnet10": (1, 1, 1, 1), "resnet18": (2, 2, 2, 2), "resnet34": (3, 4, 6, 3)}


class BasicBlock(nn.Module):
    """The residual block of the ResNets up to 34 layers."""

    def __init__(self, channels_in, channels, stride):
        super().__init__()
        self.first = conv_bn_relu(channels_in, channels, stride=stride)
        self.second = nn.Sequential(nn.Conv2d(channels, channels, 3, padding=1, bias=False), nn.BatchNorm2d(channels))
        self.shortcut = nn.Identity()
        if stride != 1 or channels_in != channels:
            shrink = nn.Conv2d(channels_in, channels, 1, stride=stride, bias=False)
            self.shortcut = nn.Sequential(shrink, nn.BatchNorm2d(channels))

    def forward(self, x):
        return F.relu(self.second(self.first(x)) + self.shortcut(x), inplace=True)


class ResNet(nn.Module):
    """A ResNet of basic blocks without its classifier: 512 channels at a 32nd of the image."""

    def __init__(self, name):
        super().__init__()
        stem = nn.Conv2d(3, 64, 7, stride=2, padding=3, bias=False)
        self.stem = nn.Sequential(stem, nn.BatchNorm2d(64), nn.ReLU(inplace=True), nn.MaxPool2d(3, 2, padding=1))
        stages, before = [], 64
        for number, channels in zip(BLOCKS[name], (64, 128, 256, 512), strict=True):
            for block in range(number):
                stride = 2 if block == 0 and channels > 64 else 1
                stages.append(BasicBlock(before, channels, stride))
                before = channels
        self.stages = nn.Sequential(*stages)

    def forward(self, images):
        return self.stages(self.stem(images))


class DepthNet(nn.Module):
    """For each pixel of the feature map a distribution over depths, and a feature to place there."""

    def __init__(self, settings):
        super().__init__()
        self.reduce = conv_bn_relu(512, 256, kernel=1)
        hidden, bins = settings.depth_channels, settings.depth_bins
        self.depth = nn.Sequential(conv_bn_relu(256, hidden), nn.Conv2d(hidden, bins, 1))
        self.feature = conv_bn_relu(256, settings.feat_channels)

    def forward(self, x):
        x = self.reduce(x)
        return self.depth(x).softmax(dim=1), self.feature(x)


class LiftSplat(nn.Module):
    """Features placed along their rays by depth, then added up in the cells of the bird's-eye view, in fp32."""

    def __init__(self, settings, x_bound, y_bound, z_bound):
        super().__init__()
        self.downsample, self.x_bound, self.y_bound, self.z_bound = settings.downsample, x_bound, y_bound, z_bound
        self.columns = round((x_bound[1] - x_bound[0]) / x_bound[2])
        self.rows = round((y_bound[1] - y_bound[0]) / y_bound[2])
        depths = torch.linspace(settings.depth_min, settings.depth_max, settings.depth_bins)
        self.register_buffer("depths", depths, persistent=False)

    def forward(self, depth, feature, intrinsics, extrinsics):
        """(batch, cameras, bins | channels, height, width) to (batch, channels, rows, columns)."""
        batch, _, channels, height, width = feature.shape
        cells = self.rows * self.columns
        lifted = (depth.unsqueeze(2) * feature.unsqueeze(3)).float()  # batch, camera, channel, bin, height, width
        lifted = lifted.transpose(1, 2).reshape(batch, channels, -1)
        cell = self.cells_of(self.rays(intrinsics, extrinsics, height, width)).reshape(batch, -1)

        total = lifted.new_zeros(batch, channels, cells + 1)
        total = total.scatter_add(2, cell[:, None].expand(-1, channels, -1), lifted)[..., :cells]
        count = lifted.new_zeros(batch, cells + 1).scatter_add(1, cell, torch.ones_like(cell, dtype=torch.float32))
        mean = total / (count[:, None, :cells] + 1e-5)
        return mean.view(batch, channels, self.rows, self.columns)

    def rays(self, intrinsics, extrinsics, height, width):
        """Where each (camera, bin, pixel) lies, in the car's coordinates: (batch, cameras, bins, height, width, 3)."""
        with torch.autocast(intrinsics.device.type, enabled=False):
            device = intrinsics.device
            v = (torch.arange(height, device=device) + 0.5) * self.downsample
            u = (torch.arange(width, device=device) + 0.5) * self.downsample
            v, u = torch.meshgrid(v, u, indexing="ij")
            pixels = torch.stack([u, v, torch.ones_like(u)], dim=-1)
            points = pixels * self.depths[:, None, None, None]  # bins, height, width, 3
            to_car = extrinsics[..., :3, :3] @ torch.linalg.inv(intrinsics)
            points = torch.einsum("bcij,dhwj->bcdhwi", to_car, points)
            return points + extrinsics[:, :, None, None, None, :3, 3]

    def cells_of(self, points):
        """The cell of each point; what lies outside goes to one cell more."""
        column = ((points[..., 0] - self.x_bound[0]) / self.x_bound[2]).floor().long()
        row = ((points[..., 1] - self.y_bound[0]) / self.y_bound[2]).floor().long()
        inside = (column >= 0) & (column < self.columns) & (row >= 0) & (row < self.rows)
        inside &= (points[..., 2] >= self.z_bound[0]) & (points[..., 2] <= self.z_bound[1])
        return torch.where(inside, row * self.columns + column, self.rows * self.columns)


class CameraBackbone(nn.Module):
    """Six images to a map of `bev_out_channels` at the resolution of `bev_x_bound`, not of the LiDAR's voxels."""

    def __init__(self, settings, x_bound, y_bound, z_bound):
        super().__init__()
        self.encoder = ResNet(settings.backbone)
        self.depth_net = DepthNet(settings)
        self.lift_splat = LiftSplat(settings, x_bound, y_bound, z_bound)
        out = settings.bev_out_channels
        self.bev_encoder = nn.Sequential(conv_bn_relu(settings.feat_channels, 128), conv_bn_relu(128, out))

    def forward(self, images, intrinsics, extrinsics):
        batch, cameras = images.shape[:2]
        depth, feature = self.depth_net(self.encoder(images.flatten(0, 1)))
        depth, feature = (x.unflatten(0, (batch, cameras)) for x in (depth, feature))
        return self.bev_encoder(self.lift_splat(depth, feature, intrinsics, extrinsics))
