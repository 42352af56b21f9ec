"""transformers, a Llama in bf16, every block checkpointed, AdamW, 1 × 2048 tokens"""

import sys

import torch
from training import learn, run
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaForCausalLM

# (width, layers, heads, heads of keys and values, inner width): TinyLlama's, Llama 2's, Llama 2's.
SIZES = {
    "1B": (2048, 22, 32, 4, 5632),
    "7B": (4096, 32, 32, 32, 11008),
    "13B": (5120, 40, 40, 40, 13824),
}


def build(device, size="1B"):
    # A number is so many layers of TinyLlama's.
    width, layers, heads, key_heads, inner = SIZES.get(size) or (2048, int(size), 32, 4, 5632)
    config = LlamaConfig(
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_key_value_heads=key_heads,
        intermediate_size=inner,
        use_cache=False,
        dtype=torch.bfloat16,
    )
    was = torch.get_default_dtype()
    torch.set_default_dtype(torch.bfloat16)  # made as bf16, not converted: 13 B in fp32 would need twice the card
    try:
        with torch.device(device):
            model = LlamaForCausalLM(config)
    finally:
        torch.set_default_dtype(was)
    model.gradient_checkpointing_enable({"use_reentrant": False})
    return learn(model, 1, 2048, device)


if __name__ == "__main__":
    run(build, *sys.argv[1:])
