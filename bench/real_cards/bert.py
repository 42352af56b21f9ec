"""bert-large as Hugging Face's guide to training on one GPU has it: `bench/data/published/README.md` says how that is known.

    python bert.py ROWS.json PEAKS.json [--attention sdpa] [--gradients dropped] [--division new]

Writes the reserved peak of each row. The guide is older than torch 2: attention was spelled out, gradients were zeroed in
place, and a division kept its numerator for the backward pass even if nobody needs it. The flags have what came later, so
that one sees what the age of the guide amounts to.
"""

import argparse
import contextlib
import gc
import json
from pathlib import Path

import torch
from transformers import BertConfig, BertForSequenceClassification
from transformers.optimization import Adafactor

TOKENS, STEPS = 512, 3


class AdamW(torch.optim.Optimizer):
    """The library's own, which its Trainer had before torch's: one parameter after the other."""

    def __init__(self, parameters):
        super().__init__(parameters, {"lr": 5e-5})

    @torch.no_grad()
    def step(self, closure=None):
        for parameter in self.param_groups[0]["params"]:
            state, gradient = self.state[parameter], parameter.grad
            if not state:
                state["mean"], state["square"] = torch.zeros_like(parameter), torch.zeros_like(parameter)
            state["mean"].mul_(0.9).add_(gradient, alpha=0.1)
            state["square"].mul_(0.999).addcmul_(gradient, gradient, value=0.001)
            divisor = state["square"].sqrt().add_(1e-8)
            parameter.addcdiv_(state["mean"], divisor, value=-5e-5)


class OldDivision(torch.autograd.Function):
    """Before torch 1.11 or so, a division by a number kept what it divides."""

    @staticmethod
    def forward(context, numerator, divisor):
        context.save_for_backward(numerator)
        context.divisor = divisor
        return torch.div(numerator, divisor)

    @staticmethod
    def backward(context, gradient):
        _ = context.saved_tensors
        return gradient / context.divisor, None


def model(attention, is_checkpointed):
    """bert-large-uncased, whose weights reach the card one by one."""
    sizes = {"hidden_size": 1024, "num_hidden_layers": 24, "num_attention_heads": 16, "intermediate_size": 4096}
    with torch.device("meta"):
        net = BertForSequenceClassification(BertConfig(**sizes, attn_implementation=attention))
    net.to_empty(device="cuda").train()
    if is_checkpointed:
        net.gradient_checkpointing_enable()
    return net


def optimizer(name, parameters):
    if name == "adafactor":
        return Adafactor(parameters, lr=5e-5, scale_parameter=False, relative_step=False)
    return AdamW(parameters)


def train(row, attention, gradients):
    """As its Trainer does."""
    net = model(attention, row["checkpointing"] == "yes")
    is_half, accumulation = row["fp16"] == "yes", int(row["accumulation"])
    optimize, scaler = optimizer(row["optimizer"], net.parameters()), torch.amp.GradScaler(enabled=is_half)
    for number in range(STEPS * accumulation):
        ids = torch.zeros(int(row["batch"]), TOKENS, dtype=torch.long).to("cuda")
        labels = torch.zeros(int(row["batch"]), dtype=torch.long).to("cuda")
        with torch.autocast("cuda", torch.float16) if is_half else contextlib.nullcontext():
            loss = net(input_ids=ids, labels=labels).loss
        scaler.scale(loss / accumulation).backward()
        if (number + 1) % accumulation == 0:
            scaler.unscale_(optimize)
            torch.nn.utils.clip_grad_norm_(net.parameters(), 1.0, foreach=False)
            scaler.step(optimize)
            scaler.update()
            net.zero_grad(set_to_none=gradients == "dropped")


def measured(row, asked):
    torch._C._cuda_clearCublasWorkspaces()
    gc.collect()
    torch.cuda.empty_cache()
    torch.cuda.reset_peak_memory_stats()
    assert torch.cuda.memory_reserved() == 0, "what the row before left behind"
    train(row, asked.attention, asked.gradients)
    return {"reserved": torch.cuda.max_memory_reserved()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("rows", type=Path)
    parser.add_argument("peaks", type=Path)
    parser.add_argument("--attention", default="eager")
    parser.add_argument("--gradients", default="kept")
    parser.add_argument("--division", default="old")
    asked = parser.parse_args()
    if asked.division == "old":
        torch.Tensor.__truediv__ = lambda left, right: OldDivision.apply(left, right)
    torch.cuda.init()
    asked.peaks.write_text(json.dumps([measured(row, asked) for row in json.loads(asked.rows.read_text())]))


if __name__ == "__main__":
    main()
