"""transformers, 124 M parameters, AdamW, 4 × 512 tokens"""

import sys

import torch
from training import learn, run
from transformers.models.gpt2.modeling_gpt2 import GPT2Config, GPT2LMHeadModel


def build(device, sequences="4"):
    with torch.device(device):
        model = GPT2LMHeadModel(GPT2Config(use_cache=False))
    return learn(model, int(sequences), 512, device)


if __name__ == "__main__":
    run(build, *sys.argv[1:])
