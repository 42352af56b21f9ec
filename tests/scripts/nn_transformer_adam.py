"""nn.Transformer, two encoder and two decoder layers of width 512, Adam, five iterations.

The shape (1, 1024, 512) is read as one position and a batch of 1,024: nn.Transformer is sequence-first by default.
"""

import torch
from torch import nn

device = "cuda"
model = nn.Transformer(d_model=512, nhead=2, num_encoder_layers=2, num_decoder_layers=2).to(device)
src = torch.ones((1, 1024, 512), device=device)
tgt = torch.ones((1, 1024, 512), device=device)
labels = torch.ones((1, 1024, 512), device=device)
criterion = nn.MSELoss()
optimizer = torch.optim.Adam(model.parameters())

model.train()
for step in range(5):
    optimizer.zero_grad()
    loss = criterion(model(src, tgt), labels)
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
print(f"reserved {torch.cuda.max_memory_reserved() // 2**20} MiB")
