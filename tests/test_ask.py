"""`--ask`: questions as users type them, on one language model. What is said is compared with the changed script's own peak.

The recorded run answers all of them; `make test` tries a sample of the changed scripts, `make test-matrix` the others.
"""

import json

import pytest
from conftest import PYTHON, SCRIPTS

IS_WARM = True

MODEL = SCRIPTS / "language_model.py"
MIB = 2**20

# What is asked, the effect that is right, and the flags that make the change, if the script has them. Effects: none, worse,
# at_most, fact, unknown. `None` for flags: the script cannot make the change, or it is no change.
QUESTIONS = {
    "what if I use batch 16?": ("worse", ["--batch-size", "16"]),
    "batch_size=4": ("at_most", ["--batch-size", "4"]),
    "does halving the batch help?": ("at_most", ["--batch-size", "4"]),
    "would a bigger batch use more memory": ("worse", ["--batch-size", "12"]),
    "batch size from 8 to 2": ("at_most", ["--batch-size", "2"]),
    "reduce the sequence length to 256": ("at_most", ["--tokens", "256"]),
    "context of 1k tokens": ("worse", ["--tokens", "1024"]),
    "a vocabulary of 32000 instead of 16000": ("worse", ["--vocabulary", "32000"]),
    "would a smaller vocab help?": ("at_most", ["--vocabulary", "8000"]),
    "use 3 layers": ("at_most", ["--layers", "3"]),
    "12 layers instead of 6": ("worse", ["--layers", "12"]),
    "make the model wider": ("worse", ["--width", "768"]),
    "hidden size 256": ("at_most", ["--width", "256"]),
    "use 16 attention heads": ("worse", ["--heads", "16"]),
    "head_dim 128": ("at_most", ["--heads", "4"]),
    "head_dim=32": ("worse", ["--heads", "16"]),
    "is mixed precision worth it?": ("at_most", ["--amp"]),
    "don't use amp": ("none", []),
    "convert the model to bfloat16, pure bf16": ("at_most", ["--half"]),
    "would TF32 save memory?": ("none", ["--tf32"]),
    "gradient checkpointing": ("at_most", ["--checkpoint"]),
    "what happens if I turn off gradient checkpointing": ("none", []),
    "offload activations to the cpu": ("at_most", ["--save"]),
    "flash attention": ("at_most", ["--attention", "fused"]),
    "liger fused linear cross entropy": ("at_most", ["--chunks", "8"]),
    "gradient accumulation over 2 micro batches of 4": ("at_most", ["--batch-size", "4", "--passes", "2"]),
    "SGD instead of AdamW": ("at_most", ["--optimizer", "momentum"]),
    "Adafactor": ("at_most", ["--optimizer", "adafactor"]),
    "8-bit AdamW from bitsandbytes": ("at_most", None),
    "foreach=False": ("none", ["--foreach"]),
    "fused AdamW": ("none", ["--fused"]),
    "offload the optimizer state to CPU": ("at_most", None),
    "LoRA": ("at_most", ["--train", "adapters"]),
    "QLoRA in 4 bit": ("at_most", None),
    "freeze everything but the head": ("at_most", ["--train", "head"]),
    "torch.cuda.empty_cache() after each step": ("none", ["--empty"]),
    "call gc.collect()": ("none", ["--collect"]),
    "optimizer.zero_grad(set_to_none=True)": ("none", []),
    "zero_grad(set_to_none=False)": ("worse", ["--grad", "kept"]),
    "clip gradients to norm 1": ("none", ["--clip"]),
    "is model.eval() enough to save memory?": ("none", ["--grad", "eval"]),
    "add an EMA of the weights": ("worse", ["--ema"]),
    "get rid of the EMA": ("none", []),
    "FSDP on 4 GPUs": ("at_most", None),
    "FSDP on a single GPU": ("none", None),
    "ZeRO stage 2": ("at_most", None),
    "would DDP on 2 GPUs lower the memory per GPU?": ("worse", None),
    "pin_memory=False and fewer workers": ("none", []),
    "would a lower learning rate help": ("none", []),
    "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True": ("none", []),
    "torch.compile the model": ("at_most", None),
    "channels_last": ("none", None),
    "use_cache=False": ("none", []),
    "where does the memory go?": ("fact", None),
    "why so much?": ("fact", None),
    "which layer takes the most": ("fact", None),
    "which line of my code is it": ("fact", None),
    "is it a leak": ("fact", None),
    "is it fragmentation?": ("fact", None),
    "how much do the gradients take": ("fact", None),
    "what can I do about it": ("fact", None),
    "add a semantic loss": ("unknown", None),
    "rotate the tokenizer by three": ("unknown", None),
    "what is the largest batch on an RTX 3090?": ("unknown", None),
    "checkpoint encoder.layers": ("unknown", None),
}  # fmt: skip

SAMPLE = ["flash attention", "freeze everything but the head", "LoRA", "zero_grad(set_to_none=False)", "liger fused linear cross entropy"]


def base():
    return ["--batch-size", "8"]


@pytest.fixture(scope="module")
def answers(request):
    fathom = request.getfixturevalue("warm")
    flags = ["--gpu", "a100-80g"]
    flags += [word for question in QUESTIONS for word in ("--ask", question)]
    report, done = fathom(PYTHON, MODEL, *base(), flags=flags)
    assert report, done.stderr
    return report["peak"]["allocated_bytes"], {row["question"]: row for row in report["answers"]}


@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_has_the_right_effect(question, answers):
    _, rows = answers
    effect, _ = QUESTIONS[question]
    row = rows[question]
    assert row["effect"] == effect, row["why"]
    assert row["known"] == {"fact": "measured", "unknown": "unknown"}.get(effect, "derived")
    assert row["why"] and (effect != "unknown" or "`" in row["why"]), "it says which command tells"


CHANGED = [question for question, (_, flags) in QUESTIONS.items() if flags is not None]


@pytest.mark.parametrize("question", [pytest.param(it, marks=[] if it in SAMPLE else pytest.mark.matrix) for it in CHANGED])
def test_the_changed_script_agrees(question, answers, fathom):
    peak, rows = answers
    effect, change = QUESTIONS[question]
    flags = ("--gpu", "a100-80g", "--record", "off")
    report, done = fathom(PYTHON, MODEL, *base(), *change, flags=flags)
    assert report and report["peak"], done.stderr
    changed = report["peak"]["allocated_bytes"]
    if effect == "none":
        assert peak - changed < peak // 100, f"it lowers the peak by {(peak - changed) / MIB:.0f} MiB"
    elif effect == "worse":
        assert peak < changed, f"it lowers the peak by {(peak - changed) / MIB:.0f} MiB"
    else:
        assert changed < peak, "at most so much, and nothing at all"
        assert peak - changed <= rows[question]["at_most_bytes"] + 2 * MIB, f"it lowers it by {(peak - changed) / MIB:.0f} MiB"


def test_trials_measure_what_levers_and_flags_can_change(cold):
    """To the byte what the changed script does; a fork of a fork has other workspaces."""
    asked = ["batch 4", "flash attention", "checkpoint blocks", "freeze the first 2 blocks", "will it fit in 2 GiB?"]
    flags = ["--verify", "confined", *(word for question in asked for word in ("--ask", question))]
    report, done = cold(PYTHON, MODEL, *base(), flags=flags)
    rows = {row["question"]: row for row in report["answers"]}
    batch, attention, blocks, some, fits = (rows[question] for question in asked)
    plain = ("--record", "off")
    smaller, _ = cold(PYTHON, MODEL, "--batch-size", "4", flags=plain)
    assert batch["effect"] == "lowers" and batch["known"] == "measured", batch
    assert batch["tried"]["before_allocated_bytes"] == report["peak"]["allocated_bytes"]
    assert batch["tried"]["after_allocated_bytes"] == smaller["peak"]["allocated_bytes"]
    checkpointed, _ = cold(PYTHON, MODEL, *base(), "--checkpoint", flags=plain)
    assert blocks["effect"] == "lowers", blocks
    assert abs(blocks["tried"]["after_allocated_bytes"] - checkpointed["peak"]["allocated_bytes"]) < 8 * MIB
    # The script writes its attention by hand: the lever has no switch to turn, and the bound stays.
    assert attention["effect"] == "at_most" and "not tried" in attention["why"]
    assert some["effect"] == "at_most" and some["tried"] is None, "which blocks, the question leaves open"
    assert fits["effect"] == "fact" and "no: it ran out of memory" in fits["why"], fits
    assert "asked" in done.stdout and "lowers the peak by" in done.stdout


def test_a_question_without_a_gpu_or_a_recording_is_no_error(fathom, tmp_path):
    out = tmp_path / "run"
    report, _ = fathom(PYTHON, MODEL, *base(), "--layers", "2", flags=("--out", out))
    (recording,) = out.glob("recording.*.fathom")
    answer = tmp_path / "answer.json"
    done = fathom.command("explain", recording, "--json", answer, "--ask", "batch 16", "--ask", "will it fit on a T4")
    assert done.returncode == 0, done.stderr
    batch, fits = json.loads(answer.read_text())["answers"]
    assert batch["effect"] == "worse" and fits["effect"] == "unknown"
    report, done = fathom(PYTHON, "-c", "print(1)", flags=("--ask", "batch 16"))
    assert "Traceback" not in done.stderr and not report["answers"]
