"""BERT-large, masked language modelling: AdamW, fp32, batch 4 of 512 tokens."""

import torch
from transformers import BertConfig, BertForMaskedLM

BATCH = 4
TOKENS = 512
STEPS = 50

device = "cuda"
config = BertConfig(hidden_size=1024, num_hidden_layers=24, num_attention_heads=16, intermediate_size=4096)
model = BertForMaskedLM(config).to(device)
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-4, weight_decay=0.01)

model.train()
for step in range(STEPS):
    input_ids = torch.randint(1000, config.vocab_size, (BATCH, TOKENS))
    masked = torch.rand(BATCH, TOKENS) < 0.15
    labels = input_ids.masked_fill(~masked, -100)
    batch = {
        "input_ids": input_ids.masked_fill(masked, 103),
        "attention_mask": torch.ones_like(input_ids),
        "labels": labels,
    }
    batch = {name: tensor.to(device) for name, tensor in batch.items()}
    loss = model(**batch).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    print(f"step {step} loss {loss.item():.4f}")
