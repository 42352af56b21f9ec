"""peft, rank 16 on the attention of a frozen Llama in bf16, AdamW, 1 × 1024 tokens"""

import torch
from peft import LoraConfig, get_peft_model
from training import learn, run
from transformers.models.llama.modeling_llama import LlamaConfig, LlamaForCausalLM

# TinyLlama's sizes.
SIZES = {"hidden_size": 2048, "num_hidden_layers": 22, "num_attention_heads": 32, "num_key_value_heads": 4}
ADAPTED = ["q_proj", "k_proj", "v_proj", "o_proj"]


def build(device):
    with torch.device(device):
        config = LlamaConfig(**SIZES, intermediate_size=5632, use_cache=False)
        # Made in this precision: fake tensors cannot be turned into another.
        model = LlamaForCausalLM._from_config(config, dtype=torch.bfloat16)
        model = get_peft_model(model, LoraConfig(r=16, target_modules=ADAPTED))
    return learn(model, 1, 1024, device)


if __name__ == "__main__":
    run(build)
