"""Two networks against each other, with a penalty on the critic's gradient, which needs a second backward pass."""

import torch
from torch import nn


def up(inputs, outputs):
    return nn.Sequential(nn.ConvTranspose2d(inputs, outputs, 4, 2, 1), nn.BatchNorm2d(outputs), nn.ReLU(True))


def down(inputs, outputs):
    return nn.Sequential(nn.Conv2d(inputs, outputs, 4, 2, 1), nn.InstanceNorm2d(outputs, affine=True), nn.LeakyReLU(0.2))


generator = nn.Sequential(
    nn.ConvTranspose2d(128, 512, 4), nn.ReLU(True), up(512, 256), up(256, 128), up(128, 64),
    nn.ConvTranspose2d(64, 3, 4, 2, 1), nn.Tanh(),
).cuda()  # fmt: skip
critic = nn.Sequential(down(3, 64), down(64, 128), down(128, 256), down(256, 512), nn.Conv2d(512, 1, 4)).cuda()
for_generator = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
for_critic = torch.optim.RMSprop(critic.parameters(), lr=5e-5)


def penalty(real, fake):
    mix = torch.rand(len(real), 1, 1, 1, device=real.device)
    between = (mix * real + (1 - mix) * fake).requires_grad_(True)
    scores = critic(between)
    (slope,) = torch.autograd.grad(scores, between, torch.ones_like(scores), create_graph=True, retain_graph=True)
    return ((slope.flatten(1).norm(2, dim=1) - 1) ** 2).mean()


for _ in range(2):
    for _ in range(2):
        real = torch.randn(32, 3, 64, 64, device="cuda")
        fake = generator(torch.randn(32, 128, 1, 1, device="cuda")).detach()
        for_critic.zero_grad()
        loss = critic(fake).mean() - critic(real).mean() + 10 * penalty(real, fake)
        loss.backward()
        for_critic.step()
    for_generator.zero_grad()
    (-critic(generator(torch.randn(32, 128, 1, 1, device="cuda"))).mean()).backward()
    for_generator.step()
