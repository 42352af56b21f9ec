"""The LiDAR branch: points are gathered into pillars, the pillars are drawn as a bird's-eye-view map.

Which point belongs to which pillar is found while a batch is loaded, on the CPU (`number_pillars`). Every shape depends
on the configuration alone, never on how many points fall where: points beyond `max_voxels` pillars go to a cell that is
thrown away. The map has one cell for each voxel of the range, so `voxel_size` alone decides how large everything after
it is.
"""

import torch
from torch import nn


def conv_bn_relu(channels_in, channels_out, kernel=3, stride=1):
    """Convolution without bias, batch norm, ReLU in place: two saved maps, the convolution's output and the ReLU's."""
    return nn.Sequential(
        nn.Conv2d(channels_in, channels_out, kernel, stride=stride, padding=kernel // 2, bias=False),
        nn.BatchNorm2d(channels_out),
        nn.ReLU(inplace=True),
    )


class Grid:
    """The cells of the map."""

    def __init__(self, settings):
        x_low, y_low, _, x_high, y_high, _ = settings.point_cloud_range
        self.low, self.voxel = (x_low, y_low), settings.voxel_size[:2]
        self.columns = round((x_high - x_low) / self.voxel[0])
        self.rows = round((y_high - y_low) / self.voxel[1])
        self.cells = self.rows * self.columns

    def number_pillars(self, points, limit):
        """The pillar of each point and the cell of each pillar; pillar `limit` and cell `cells` are nowhere."""
        column = ((points[:, 0] - self.low[0]) / self.voxel[0]).long().clamp(0, self.columns - 1)
        row = ((points[:, 1] - self.low[1]) / self.voxel[1]).long().clamp(0, self.rows - 1)
        cells, pillar = (row * self.columns + column).unique(return_inverse=True)
        cell_of_pillar = torch.full((limit + 1,), self.cells)
        cell_of_pillar[: min(limit, len(cells))] = cells[:limit]
        return pillar.clamp(max=limit), cell_of_pillar


class PillarEncoder(nn.Module):
    """Points (batch, number, 5) to a map (batch, channels, rows, columns)."""

    def __init__(self, settings, channels):
        super().__init__()
        self.grid, self.channels = Grid(settings), channels
        # Each point also carries its offset from its pillar's centre, the mean height and its pillar's corner.
        self.point_net = nn.Sequential(
            nn.Linear(settings.in_channels + 5, channels, bias=False), nn.BatchNorm1d(channels), nn.ReLU(inplace=True),
            nn.Linear(channels, channels, bias=False), nn.BatchNorm1d(channels), nn.ReLU(inplace=True),
        )  # fmt: skip

    def forward(self, points, pillar, cell_of_pillar):
        return torch.stack([self.draw(*cloud) for cloud in zip(points, pillar, cell_of_pillar, strict=True)])

    def draw(self, points, pillar, cell_of_pillar):
        """One cloud as a map (channels, rows, columns)."""
        features = self.point_net(self.augment(points, cell_of_pillar[pillar]))
        pillars = features.new_zeros(len(cell_of_pillar), self.channels).scatter_reduce(
            0, pillar[:, None].expand(-1, self.channels), features, "amax", include_self=False
        )
        bev = features.new_zeros(self.channels, self.grid.cells + 1).index_copy(1, cell_of_pillar, pillars.T)
        return bev[:, :-1].view(self.channels, self.grid.rows, self.grid.columns)

    def augment(self, points, cell):
        grid = self.grid
        corner_x = (cell % grid.columns) * grid.voxel[0] + grid.low[0]
        corner_y = (cell // grid.columns) * grid.voxel[1] + grid.low[1]
        x, y, z = points[:, 0], points[:, 1], points[:, 2]
        centre_x, centre_y = corner_x + grid.voxel[0] / 2, corner_y + grid.voxel[1] / 2
        offsets = torch.stack([x - centre_x, y - centre_y, z - z.mean(), x - corner_x, y - corner_y], dim=1)
        return torch.cat([points, offsets], dim=1)


class LidarBackbone(nn.Module):
    """Pillars, an encoder that halves the map at each stage but the first, and a decoder back to full size."""

    def __init__(self, settings):
        super().__init__()
        channels = settings.encoder_channels
        self.pillars = PillarEncoder(settings, channels[0])
        self.stages, self.upward, self.lateral = nn.ModuleList(), nn.ModuleList(), nn.ModuleList()
        for before, after in zip([channels[0], *channels], channels, strict=False):
            stride = 1 if not self.stages else 2
            self.stages.append(nn.Sequential(conv_bn_relu(before, after, stride=stride), conv_bn_relu(after, after)))
        for before, after in zip(channels[:0:-1], channels[-2::-1], strict=True):
            up = nn.ConvTranspose2d(before, after, 2, stride=2, bias=False)
            self.upward.append(nn.Sequential(up, nn.BatchNorm2d(after), nn.ReLU(inplace=True)))
            self.lateral.append(conv_bn_relu(after, after, kernel=1))
        self.out = conv_bn_relu(channels[0], settings.bev_out_channels)

    def forward(self, points, pillar, cell_of_pillar):
        x = self.pillars(points, pillar, cell_of_pillar)
        levels = []
        for stage in self.stages:
            x = stage(x)
            levels.append(x)
        for up, lateral, level in zip(self.upward, self.lateral, levels[-2::-1], strict=True):
            x = up(x) + lateral(level)
        return self.out(x)
