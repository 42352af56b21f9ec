"""A frozen bfloat16 model of transformers with small trained matrices beside its projections."""

import torch
from torch import nn
from transformers import LlamaConfig, LlamaForCausalLM


class Lora(nn.Module):
    def __init__(self, base, rank=16):
        super().__init__()
        self.base = base
        self.a = nn.Linear(base.in_features, rank, bias=False, dtype=torch.float32)
        self.b = nn.Linear(rank, base.out_features, bias=False, dtype=torch.float32)
        self.drop = nn.Dropout(0.05)

    def forward(self, x):
        return self.base(x) + self.b(self.a(self.drop(x.float()))).to(x.dtype)


config = LlamaConfig(
    vocab_size=8000, hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=4
)
model = LlamaForCausalLM(config).to(torch.bfloat16).requires_grad_(False)
for layer in model.model.layers:
    for name in ("q_proj", "v_proj"):
        setattr(layer.self_attn, name, Lora(getattr(layer.self_attn, name)))
model.to("cuda").train()
trained = [p for p in model.parameters() if p.requires_grad]
optimizer = torch.optim.AdamW(trained, lr=2e-4)
for _ in range(3):
    tokens = torch.randint(0, 8000, (4, 256)).cuda()
    loss = model(input_ids=tokens, labels=tokens).loss
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
