"""diffusers, 860 M parameters, AdamW, 2 latents of 64 × 64"""

import torch
from diffusers.models.unets.unet_2d_condition import UNet2DConditionModel
from torch.nn.functional import mse_loss
from training import Training, run


def build(device):
    # Stable Diffusion 1.5 is the default configuration but for these numbers.
    with torch.device(device):
        model = UNet2DConditionModel(sample_size=64, cross_attention_dim=768, attention_head_dim=8)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-5)
    noise = torch.randn(2, 4, 64, 64, device=device)
    times = torch.full((2,), 500, device=device)
    batch = (torch.randn_like(noise), times, torch.randn(2, 77, 768, device=device))
    return Training(model.train(), optimizer, batch, lambda output: mse_loss(output.sample, noise))


if __name__ == "__main__":
    run(build)
