"""Segmentation of volumes: three-dimensional convolutions, Nesterov's momentum, a teacher, channels last."""

import torch
from torch import nn
from torch.nn import functional as F


class Twice(nn.Module):
    def __init__(self, inputs, outputs):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv3d(inputs, outputs, 3, padding=1, bias=False), nn.InstanceNorm3d(outputs, affine=True), nn.LeakyReLU(inplace=True),
            nn.Conv3d(outputs, outputs, 3, padding=1, bias=False), nn.BatchNorm3d(outputs), nn.PReLU(),
        )  # fmt: skip

    def forward(self, x):
        return self.layers(x)


class Volumes(nn.Module):
    def __init__(self, width=16):
        super().__init__()
        self.one, self.two, self.three = Twice(1, width), Twice(width, 2 * width), Twice(2 * width, 4 * width)
        self.up2, self.up1 = nn.ConvTranspose3d(4 * width, 2 * width, 2, 2), nn.ConvTranspose3d(2 * width, width, 2, 2)
        self.back2, self.back1 = Twice(4 * width, 2 * width), Twice(2 * width, width)
        self.out = nn.Conv3d(width, 4, 1)

    def forward(self, x):
        one = self.one(x)
        two = self.two(F.max_pool3d(one, 2))
        three = self.three(F.max_pool3d(two, 2))
        two = self.back2(torch.cat((two, self.up2(three)), 1))
        return self.out(self.back1(torch.cat((one, self.up1(two)), 1)))


def dice(logits, labels):
    chances = logits.softmax(1)
    wanted = F.one_hot(labels, 4).permute(0, 4, 1, 2, 3).float()
    return 1 - (2 * (chances * wanted).sum((2, 3, 4)) / ((chances + wanted).sum((2, 3, 4)) + 1e-5)).mean()


student, teacher = Volumes().cuda(), Volumes().cuda()
teacher.load_state_dict(student.state_dict())
optimizer = torch.optim.SGD(student.parameters(), lr=0.01, momentum=0.99, nesterov=True)
for _ in range(3):
    volume = torch.randn(2, 1, 48, 48, 48).cuda(non_blocking=True)
    labels = torch.randint(0, 4, (2, 48, 48, 48)).cuda(non_blocking=True)
    with torch.no_grad():
        guide = teacher(volume)
    logits = student(volume)
    loss = F.cross_entropy(logits, labels) + dice(logits, labels) + F.mse_loss(logits, guide)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
