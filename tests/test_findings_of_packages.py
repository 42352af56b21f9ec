"""Causes in code that packages run: weights of four bits with adapters, fused losses, products of eight bits.

They need an environment of their own: `make .venvs/packages/packages.stamp`, as CI does.
"""

import pytest
from conftest import missing, python_of

PYTHON = python_of("packages")
FLAGS = ("--gpu", "rtx3090", "--whole", "off", "--verify", "off")

LLAMA = """
import torch
from transformers import LlamaConfig, LlamaForCausalLM
config = LlamaConfig(hidden_size=512, intermediate_size=1408, num_hidden_layers=4, num_attention_heads=8, vocab_size=8192)
def train(model, optimizer):
    for _ in range(3):
        words = torch.randint(0, 8192, (4, 512)).cuda()
        model(input_ids=words, labels=words).loss.backward()
        optimizer.step()
        optimizer.zero_grad()
"""

QLORA = (
    LLAMA
    + """
import bitsandbytes
from peft import LoraConfig, get_peft_model
def pack(module):
    for name, child in list(module.named_children()):
        if not isinstance(child, torch.nn.Linear) or name == "lm_head":
            pack(child)
            continue
        packed = bitsandbytes.nn.Linear4bit(child.in_features, child.out_features, bias=False, quant_type="nf4")
        packed.weight = bitsandbytes.nn.Params4bit(child.weight.data, requires_grad=False, quant_type="nf4")
        setattr(module, name, packed)
model = LlamaForCausalLM(config).bfloat16()
whole = sum(parameter.numel() for parameter in model.parameters())
pack(model)
model = model.cuda()
model.gradient_checkpointing_enable()
model.enable_input_require_grads()
model = get_peft_model(model, LoraConfig(r=16, target_modules=["q_proj", "v_proj"]))
adapters = [parameter for parameter in model.parameters() if parameter.requires_grad]
print("parameters", whole + sum(parameter.numel() for parameter in adapters))
train(model, bitsandbytes.optim.AdamW8bit(adapters))
"""
)

LIGER = (
    LLAMA
    + """
from liger_kernel.transformers import apply_liger_kernel_to_llama
apply_liger_kernel_to_llama()
model = LlamaForCausalLM(config).bfloat16().cuda()
train(model, torch.optim.AdamW(model.parameters()))
"""
)

FLOAT8 = """
import torch
from torch import nn
from torchao.float8 import Float8LinearConfig, convert_to_float8_training
model = nn.Sequential(*(nn.Sequential(nn.Linear(1024, 1024), nn.GELU()) for _ in range(6))).bfloat16().cuda()
convert_to_float8_training(model, config=Float8LinearConfig(emulate=True))
optimizer = torch.optim.AdamW(model.parameters())
print("parameters", sum(parameter.numel() for parameter in model.parameters()))
for _ in range(3):
    model(torch.randn(8192, 1024, device="cuda", dtype=torch.bfloat16)).float().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture
def found(fathom):
    """The findings of a script by their ids, the first of each, and what it printed."""
    if not PYTHON.exists():
        missing(PYTHON, "run `make .venvs/packages/packages.stamp`")

    def run(code):
        report, done = fathom(PYTHON, "-c", code, flags=FLAGS, timeout=300)
        assert done.returncode == 0, done.stderr
        counted = sum(row["bytes"] for row in report["findings"] if row["counted"])
        assert 0.9 * report["peak"]["allocated_bytes"] <= counted <= report["peak"]["allocated_bytes"]
        return {row["id"]: row for row in reversed(report["findings"])}, done.stdout

    return run


def remedies(finding):
    return {remedy["id"] for remedy in finding["remedies"]}


def parameters(printed):
    return f"{int(printed.split('parameters ')[1].split()[0]):,} parameters"


def test_weights_of_four_bits_with_adapters(found):
    findings, printed = found(QLORA)
    state = findings["model-state"]
    assert parameters(printed) in state["explanation"] and "Of it adapters" in state["explanation"]
    assert not remedies(state) & {"freeze", "half-frozen", "8bit-optimizer"}
    assert not findings.keys() & {"model-copies", "checkpointing-misses", "unused-parameters", "untrained-graph"}


def test_a_fused_loss_keeps_no_logits(found):
    findings, _ = found(LIGER)
    assert "bfloat16[8192, 512]" in findings["loss-gradients"]["title"]
    assert not findings.keys() & {"loss-logits", "gradients-in-forward", "written-in-python", "gated-layers"}


def test_products_of_eight_bits(found):
    findings, printed = found(FLOAT8)
    assert parameters(printed) in findings["model-state"]["explanation"]
    assert not findings.keys() & {"duplicates", "model-copies"}
    assert not any("amp" in id for finding in findings.values() for id in remedies(finding))
