"""Stable Diffusion 1.5's UNet, denoising 64 x 64 latents: AdamW, fp32, batch 2."""

import torch
from diffusers import DDPMScheduler, UNet2DConditionModel

BATCH = 2
STEPS = 50

device = "cuda"
with torch.device(device):
    unet = UNet2DConditionModel(
        sample_size=64,
        in_channels=4,
        out_channels=4,
        center_input_sample=False,
        flip_sin_to_cos=True,
        freq_shift=0,
        down_block_types=("CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "CrossAttnDownBlock2D", "DownBlock2D"),
        up_block_types=("UpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D", "CrossAttnUpBlock2D"),
        block_out_channels=(320, 640, 1280, 1280),
        layers_per_block=2,
        downsample_padding=1,
        mid_block_scale_factor=1,
        act_fn="silu",
        norm_num_groups=32,
        norm_eps=1e-5,
        cross_attention_dim=768,
        attention_head_dim=8,
    )
scheduler = DDPMScheduler(
    num_train_timesteps=1000, beta_start=0.00085, beta_end=0.012, beta_schedule="scaled_linear", clip_sample=False
)
optimizer = torch.optim.AdamW(unet.parameters(), lr=1e-5, weight_decay=1e-2)

unet.train()
for step in range(STEPS):
    latents = torch.randn(BATCH, 4, 64, 64).to(device)
    text = torch.randn(BATCH, 77, 768).to(device)
    noise = torch.randn_like(latents)
    timesteps = torch.randint(0, scheduler.config.num_train_timesteps, (BATCH,), device=device)
    noisy = scheduler.add_noise(latents, noise, timesteps)
    predicted = unet(noisy, timesteps, encoder_hidden_states=text).sample
    loss = torch.nn.functional.mse_loss(predicted, noise)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.4f}")
