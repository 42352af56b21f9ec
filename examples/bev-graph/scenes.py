"""Synthetic driving scenes with the shapes of the real ones: a point cloud, six images, their cameras, boxes.

A box is a clump of points in the cloud, so there is something to learn.
"""

import math
from dataclasses import dataclass

import torch
from pillars import Grid

CAMERAS = 6
# A camera looks along z with y down; the car drives along x with z up.
CAMERA_TO_CAR = torch.tensor([[0.0, 0.0, 1.0], [-1.0, 0.0, 0.0], [0.0, -1.0, 0.0]])


@dataclass(frozen=True)
class Box:
    """An object: its class, centre, size, heading and velocity, in metres."""

    label: int
    x: float
    y: float
    z: float
    size: tuple
    heading: float
    velocity: tuple

    def parameters(self, corner_x, corner_y):
        """What the head has to say of it, in the order of `head.BOX`."""
        turn = math.sin(self.heading), math.cos(self.heading)
        return (self.x - corner_x, self.y - corner_y, self.z, *self.size, *turn, *self.velocity)


class Scenes:
    """Batches without end; `data.scenes` different samples, then the same again."""

    def __init__(self, config):
        self.model, self.data = config.model, config.data
        self.grid = Grid(config.model.lidar)
        self.classes = sum(task["num_class"] for task in config.model.head.tasks)

    def batch(self, number, size, device):
        """What the model sees, and the boxes of each sample."""
        samples = [self.sample((number * size + place) % self.data.scenes) for place in range(size)]
        points, boxes = zip(*samples, strict=True)
        pillars = zip(*(self.grid.number_pillars(cloud, self.model.lidar.max_voxels) for cloud in points), strict=True)
        points, pillar, cell_of_pillar = (torch.stack(x).to(device) for x in (points, *pillars))
        height, width = self.model.camera.img_size
        images = torch.randn(size, CAMERAS, 3, height, width, device=device) if self.data.use_camera else None
        intrinsics, extrinsics = (x.expand(size, *x.shape).to(device) for x in self.cameras(height, width))
        return (points, pillar, cell_of_pillar, images, intrinsics, extrinsics), boxes

    def sample(self, seed):
        random = torch.Generator().manual_seed(seed)
        x_low, y_low, z_low, x_high, y_high, z_high = self.model.lidar.point_cloud_range
        low, high = torch.tensor([x_low, y_low, z_low, 0, 0]), torch.tensor([x_high, y_high, z_high, 1, 1])
        points = low + (high - low) * torch.rand(self.data.max_points, self.model.lidar.in_channels, generator=random)
        boxes, clump = [], max(1, self.data.max_points // 64)
        for place in range(self.data.objects):
            x, y, z, label, heading, *velocity = torch.rand(7, generator=random).tolist()
            box = Box(
                int(label * self.classes), (x - 0.5) * 0.9 * (x_high - x_low), (y - 0.5) * 0.9 * (y_high - y_low),
                z - 2, (1.9, 4.5, 1.6), heading * math.tau, tuple(velocity),
            )  # fmt: skip
            boxes.append(box)
            around = torch.randn(clump, 3, generator=random) * 0.5 + torch.tensor([box.x, box.y, box.z])
            points[place * clump : (place + 1) * clump, :3] = around
        return points, boxes

    @staticmethod
    def cameras(height, width):
        """Six cameras around the car, 60 degrees apart: (6, 3, 3) and (6, 4, 4)."""
        focal = 0.8 * width
        intrinsics = torch.tensor([[focal, 0, width / 2], [0, focal, height / 2], [0, 0, 1]]).expand(CAMERAS, 3, 3)
        extrinsics = torch.eye(4).repeat(CAMERAS, 1, 1)
        for camera in range(CAMERAS):
            angle = camera * math.tau / CAMERAS
            sin, cos = math.sin(angle), math.cos(angle)
            turn = torch.tensor([[cos, -sin, 0], [sin, cos, 0], [0, 0, 1]])
            extrinsics[camera, :3, :3] = turn @ CAMERA_TO_CAR
        return intrinsics, extrinsics
