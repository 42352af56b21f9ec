"""Two blocks under DeepSpeed's ZeRO: ranks_deepspeed.py STAGE [offload]."""

import sys

import deepspeed
import torch
from ranks import BATCH, BLOCKS, WIDTH, Block

stage, is_offloaded = int(sys.argv[1]), sys.argv[2:] == ["offload"]
model = torch.nn.Sequential(*(Block() for _ in range(BLOCKS)))
zero = {"stage": stage}
if is_offloaded:
    zero["offload_optimizer"] = {"device": "cpu"}
config = {
    "train_micro_batch_size_per_gpu": BATCH,
    "bf16": {"enabled": True},
    "zero_optimization": zero,
    "zero_force_ds_cpu_optimizer": False,
    # Its own Adam is compiled with CUDA's compiler when it is first used.
    "optimizer": {"type": "AdamW", "params": {"lr": 1e-3, "torch_adam": True}},
}
engine, *_ = deepspeed.initialize(model=model, model_parameters=model.parameters(), config=config)
for _ in range(3):
    inputs = torch.randn(BATCH, WIDTH, device=engine.device, dtype=torch.bfloat16)
    engine.backward(engine(inputs).float().square().mean())
    engine.step()
