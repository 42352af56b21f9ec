"""LitGPT's table of what fine-tuning takes, with its own models: `bench/data/published/README.md` says how that is known.

    python litgpt.py ROWS.json PEAKS.json CLONE [TOKENS]

CLONE is Lit-GPT as it was at the table's commit. Of its scripts what decides the peak is here: the model, built on the card
by Fabric, the longest text first, the loss in parts, an optimizer step, all by the functions of that commit. Sharded, the
weights are loaded as there, since the whole model is on each card then; else they stay as they were made: reading them is the
host's work. The first batch has the longest text, later ones are drawn: all have the longest here, or TOKENS. Writes the
allocated peak of the one row, or none if memory ran out.
"""

import importlib
import json
import sys
import tempfile
from pathlib import Path

import lightning
import torch
from lightning.fabric.strategies import FSDPStrategy

# Tokens of the longest text, by the document that has the table.
LONGEST = {"phi-1_5": 1044, "stablelm-base-alpha-3b": 1034, "Llama-2-7b-hf": 1304, "Llama-2-13b-hf": 1304}
# What `finetune/lora.py` of that commit sets.
LORA = {"r": 8, "alpha": 16, "dropout": 0.05, "to_query": True, "to_value": True}
# "Hello, my name is", and so many new tokens.
PROMPT, NEW = 6, 50


def fabric_of(row, block):
    sharded = {"auto_wrap_policy": {block}, "activation_checkpointing_policy": {block}, "limit_all_gathers": True}
    devices = int(row["devices"])
    strategy = FSDPStrategy(state_dict_type="full", **sharded) if devices > 1 else "auto"
    fabric = lightning.Fabric(accelerator="cuda", devices=devices, strategy=strategy, precision="bf16-true")
    fabric.launch()
    return fabric


def load(fabric, model, config):
    """A checkpoint of the base model, every tensor of which is one number in its file."""
    with torch.device("meta"):
        base = importlib.import_module("lit_gpt.model").GPT(config)
    weights = {name: torch.zeros(1, dtype=torch.bfloat16).expand(each.shape) for name, each in base.state_dict().items()}
    with tempfile.NamedTemporaryFile() as file:
        torch.save(weights, file.name)
        fabric.load_raw(file.name, model, strict=False)


def fine_tune(row, later):
    method, longest = row["method"], LONGEST[row["model"]]
    package = importlib.import_module(f"lit_gpt.{method}")
    only = {"lora": "only_lora", "adapter": "only_adapter", "adapter_v2": "only_adapter_v2"}[method]
    fabric = fabric_of(row, package.Block)
    config = package.Config.from_name(row["model"], **(LORA if method == "lora" else {}))
    with fabric.init_module(empty_init=int(row["devices"]) > 1):
        model = package.GPT(config)
    getattr(package, f"mark_{only}_as_trainable")(model)
    model = fabric.setup_module(model)
    trained = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = fabric.setup_optimizers(torch.optim.AdamW(trained, lr=3e-4, weight_decay=0.01))
    if int(row["devices"]) > 1:
        load(fabric, model, config)
    model.max_seq_length = longest
    loss_of = importlib.import_module("lit_gpt.utils").chunked_cross_entropy
    model.train()
    for tokens, is_accumulating in [(longest, True), (later or longest, True), (later or longest, False)]:
        forget_prompts(model)
        ids = torch.zeros(int(row["micro_batch"]), tokens, dtype=torch.int64).to(fabric.device)
        targets = ids.clone()
        with fabric.no_backward_sync(model, enabled=is_accumulating):
            logits = model(ids, lm_head_chunk_size=128)
            logits[-1] = logits[-1][..., :-1, :]
            fabric.backward(loss_of(logits, targets[..., 1:]) / 32)
    optimizer.step()
    optimizer.zero_grad()


def forget_prompts(model):
    """That commit keeps the keys of an adapter's prompt, with the graph that made them, from one step to the next."""
    for module in model.modules():
        if hasattr(module, "adapter_kv_cache"):
            module.adapter_kv_cache = None


def generate(row):
    package = importlib.import_module("lit_gpt.model")
    fabric = fabric_of(row, package.Block)
    config = importlib.import_module("lit_gpt.config").Config.from_name(row["model"])
    with fabric.init_module(empty_init=True):
        model = package.GPT(config)
    with fabric.init_tensor():
        model.max_seq_length = PROMPT + NEW
        model.set_kv_cache(batch_size=1)
    model.eval()
    model = fabric.setup_module(model)
    prompt = torch.zeros(PROMPT, dtype=torch.int64).to(fabric.device)
    sample = importlib.import_module("generate.base").generate
    sample(model, prompt, PROMPT + NEW, temperature=0.8, top_k=200)


def main():
    rows, peaks, clone, *later = sys.argv[1:]
    sys.path.insert(0, clone)
    torch.set_float32_matmul_precision("high")
    (row,) = json.loads(Path(rows).read_text())
    try:
        generate(row) if row["method"] == "generate" else fine_tune(row, int(later[0]) if later else None)
        peak = torch.cuda.max_memory_allocated()
    except torch.cuda.OutOfMemoryError:
        peak = None
    Path(peaks).write_text(json.dumps([peak]))


if __name__ == "__main__":
    main()
