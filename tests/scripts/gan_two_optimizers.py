"""A Wasserstein GAN: two optimizers, the critic stepped five times for each step of the generator."""

import torch
from torch import nn

BATCH = 64
NOISE = 100
STEPS = 50
CRITIC_STEPS = 5

device = "cuda"
generator = nn.Sequential(
    nn.ConvTranspose2d(NOISE, 256, 4), nn.BatchNorm2d(256), nn.ReLU(),
    nn.ConvTranspose2d(256, 128, 4, stride=2, padding=1), nn.BatchNorm2d(128), nn.ReLU(),
    nn.ConvTranspose2d(128, 64, 4, stride=2, padding=1), nn.BatchNorm2d(64), nn.ReLU(),
    nn.ConvTranspose2d(64, 3, 4, stride=2, padding=1), nn.Tanh(),
).to(device)  # fmt: skip
critic = nn.Sequential(
    nn.Conv2d(3, 64, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
    nn.Conv2d(64, 128, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
    nn.Conv2d(128, 256, 4, stride=2, padding=1), nn.LeakyReLU(0.2),
    nn.Conv2d(256, 1, 4), nn.Flatten(),
).to(device)  # fmt: skip
generator_optimizer = torch.optim.Adam(generator.parameters(), lr=1e-4, betas=(0.0, 0.9))
critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-4, betas=(0.0, 0.9))


def gradient_penalty(real, fake):
    mix = torch.rand(BATCH, 1, 1, 1, device=device)
    between = (mix * real + (1 - mix) * fake).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    return (slope.flatten(1).norm(dim=1) - 1).square().mean()


for step in range(STEPS):
    for _ in range(CRITIC_STEPS):
        real = torch.randn(BATCH, 3, 32, 32).to(device)
        fake = generator(torch.randn(BATCH, NOISE, 1, 1, device=device)).detach()
        critic_loss = critic(fake).mean() - critic(real).mean() + 10 * gradient_penalty(real, fake)
        critic_optimizer.zero_grad()
        critic_loss.backward()
        critic_optimizer.step()
    generator_loss = -critic(generator(torch.randn(BATCH, NOISE, 1, 1, device=device))).mean()
    generator_optimizer.zero_grad()
    generator_loss.backward()
    generator_optimizer.step()
    print(f"step {step} critic {critic_loss.item():.4f} generator {generator_loss.item():.4f}")
