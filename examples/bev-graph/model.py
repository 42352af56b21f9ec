"""The detector: LiDAR map and camera map side by side, fused by convolutions, reasoned over, read off by the head."""

import torch
from camera import CameraBackbone
from graph import graph_module
from head import DetectionHead
from pillars import LidarBackbone, conv_bn_relu
from torch import nn
from torch.nn import functional as F


class BevDetector(nn.Module):
    """`settings` is the part `model` of the configuration."""

    def __init__(self, settings):
        super().__init__()
        self.lidar = LidarBackbone(settings.lidar)
        bounds = settings.bev_x_bound, settings.bev_y_bound, settings.bev_z_bound
        self.camera = CameraBackbone(settings.camera, *bounds) if settings.use_camera else None
        seen = settings.lidar.bev_out_channels + (settings.camera.bev_out_channels if settings.use_camera else 0)
        width = settings.bev_channels
        self.fusion = nn.Sequential(conv_bn_relu(seen, width), conv_bn_relu(width, width))
        self.graph = graph_module(settings.graph) if settings.use_graph else nn.Identity()
        self.head = DetectionHead(settings.head)

    def forward(self, *inputs):
        return self.head(self.graph(self.fused(*inputs)))

    def fused(self, points, pillar, cell_of_pillar, images, intrinsics, extrinsics):
        """What LiDAR and cameras see, on one map."""
        bev = self.lidar(points, pillar, cell_of_pillar)
        if self.camera is None:
            return self.fusion(bev)
        seen = self.camera(images, intrinsics, extrinsics)
        if seen.shape[-2:] != bev.shape[-2:]:
            # `bev_x_bound` is the camera's grid only: with finer voxels the map is as fine as the LiDAR's.
            seen = F.interpolate(seen, size=bev.shape[-2:], mode="bilinear", align_corners=False)
        return self.fusion(torch.cat([bev, seen], dim=1))
