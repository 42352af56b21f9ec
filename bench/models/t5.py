"""transformers, AdamW, 8 × 128 tokens on either side"""

import torch
from training import learn, run
from transformers.models.t5.modeling_t5 import T5Config, T5ForConditionalGeneration


def build(device):
    # The defaults of the configuration are T5-small's.
    with torch.device(device):
        model = T5ForConditionalGeneration(T5Config(use_cache=False, decoder_start_token_id=0))
    return learn(model, 8, 128, device)


if __name__ == "__main__":
    run(build)
