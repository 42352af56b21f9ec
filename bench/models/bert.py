"""transformers, weights in fp32, AdamW, 4 × 512 tokens"""

import functools

import torch
from training import learn, run
from transformers.models.bert.modeling_bert import BertConfig, BertForMaskedLM

LARGE = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}


def build(device):
    with torch.device(device):
        model = BertForMaskedLM(BertConfig(**LARGE))
    training = learn(model, 4, 512, device)
    training.around = functools.partial(torch.autocast, "cuda", torch.bfloat16)
    return training


if __name__ == "__main__":
    run(build)
