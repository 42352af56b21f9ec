"""A 12-layer transformer encoder of width 768 under fp16 autocast with a GradScaler that must never skip a step."""

import torch
from torch import nn

VOCABULARY = 32000
WIDTH = 768
LAYERS = 12
BATCH = 8
TOKENS = 512
STEPS = 50


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens = nn.Embedding(VOCABULARY, WIDTH)
        self.positions = nn.Embedding(TOKENS, WIDTH)
        layer = nn.TransformerEncoderLayer(WIDTH, nhead=12, dim_feedforward=4 * WIDTH, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, LAYERS)
        self.head = nn.Linear(WIDTH, VOCABULARY)

    def forward(self, ids):
        places = torch.arange(ids.shape[1], device=ids.device)
        return self.head(self.layers(self.tokens(ids) + self.positions(places)))


device = "cuda"
model = Encoder().to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4)
scaler = torch.amp.GradScaler(device, init_scale=2.0**10)

steps_taken = 0


def count_step(*_):
    global steps_taken
    steps_taken += 1


optimizer.register_step_post_hook(count_step)

for step in range(STEPS):
    ids = torch.randint(VOCABULARY, (BATCH, TOKENS)).to(device)
    optimizer.zero_grad(set_to_none=True)
    with torch.autocast(device, dtype=torch.float16):
        logits = model(ids)
        loss = nn.functional.cross_entropy(logits.view(-1, VOCABULARY), ids.view(-1))
    scaler.scale(loss).backward()
    scaler.step(optimizer)
    scaler.update()
    assert steps_taken == step + 1, f"the scaler skipped step {step}"
    print(f"step {step} loss {loss.item():.4f}")
