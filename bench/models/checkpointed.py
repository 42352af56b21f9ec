"""transformers, 355 M parameters, every block checkpointed, AdamW, 4 × 1024 tokens"""

import torch
from training import learn, run
from transformers.models.gpt2.modeling_gpt2 import GPT2Config, GPT2LMHeadModel


def build(device):
    with torch.device(device):
        model = GPT2LMHeadModel(GPT2Config(n_embd=1024, n_layer=24, n_head=16, use_cache=False))
    model.gradient_checkpointing_enable({"use_reentrant": False})
    return learn(model, 4, 1024, device)


if __name__ == "__main__":
    run(build)
