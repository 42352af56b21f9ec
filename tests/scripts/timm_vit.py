"""timm's ViT-B/16 at 224 x 224: AdamW with a cosine schedule, batch 16."""

import timm
import torch

BATCH = 16
STEPS = 50

device = "cuda"
model = timm.create_model("vit_base_patch16_224", pretrained=False, num_classes=1000).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, weight_decay=0.05)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=STEPS)

model.train()
for step in range(STEPS):
    images = torch.randn(BATCH, 3, 224, 224).to(device)
    labels = torch.randint(1000, (BATCH,)).to(device)
    loss = torch.nn.functional.cross_entropy(model(images), labels, label_smoothing=0.1)
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
    optimizer.step()
    schedule.step()
    print(f"step {step} loss {loss.item():.4f}")
