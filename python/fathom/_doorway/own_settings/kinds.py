"""What a setting's name and value say that it does, and which other value does it."""

import re

# Whole names, in small letters with low lines.
USE = r"(?:use_|enable_|do_|with_|set_|apply_)?"
RECOMPUTE = re.compile(
    USE + r"(?:(?:grad|gradient|gradients|act|activation|activations|torch|unet|backbone|encoder|model|block|blocks)_?)*"
    r"(?:ckpt|cp|checkpoint|checkpointing|remat|recompute|recomputation|rematerialization)"
    r"(?:_(?:grad|grads|gradients|act|acts|activations?|blocks?|layers?|attn|attention|unet|model|backbone|encoder))*"
    r"|(?:is_)?(?:memory|mem)_(?:efficient|saving)|(?:save|low)_(?:mem|memory|vram)"
)
PRECISION = re.compile(
    USE + r"(?:train(?:ing)?_|autocast_|amp_|torch_|model_|mixed_)*"
    r"(?:amp|autocast|fp16|bf16|half|half_precision|mixed|mixed_precision|bfloat16|float16|precision|dtype)"
    r"(?:_(?:amp|training|precision|dtype|enabled?|type))*"
)
ATTENTION = re.compile(
    USE + r"(?:memory_efficient_|efficient_|enable_)*"
    r"(?:flash|sdpa|sdp|xformers|flash_attn|flash_attention|fused_attn|fused_attention)"
    r"(?:_?[23])?(?:_(?:memory_efficient|attn|attention))*"
    r"|attn_(?:impl|implementation|type|mode|backend)|attention_(?:impl|implementation|type|mode|backend)"
)
OPTIMIZER = re.compile(r"(?:optim|optimizer|opt)(?:_(?:name|type|class|kind))?")
SMALL_OPTIMIZER = re.compile(USE + r"(?:8_?bit_?(?:adamw?|optim|optimizer)|adamw?_?8_?bit|adafactor)")
ACCUMULATE = re.compile(r"(?:.*accum.*|grad_acc(?:_steps)?|update_freq|update_frequency|iter_size|num_micro_?batches)")
NO_ACCUMULATE = re.compile(r"loss|metric|meter|stat|time|dtype|device|fp32|ema")

# Precisions as they are written, and what half of them is called.
FULL = {
    "no": ("bf16", "fp16"), "none": ("bf16", "fp16"), "fp32": ("bf16", "fp16"), "float32": ("bfloat16", "float16"),
    "float": ("bfloat16", "half"), "full": ("bf16", "fp16", "mixed", "half"), "tf32": ("bf16", "fp16"),
    "32": ("bf16-mixed", "bf16", "16-mixed", "16"), "32-true": ("bf16-mixed", "16-mixed"), "single": ("bf16", "half"),
    "torch.float32": ("torch.bfloat16", "torch.float16"), "off": ("bf16", "fp16"),
}  # fmt: skip
ATTENTIONS = ("sdpa", "flash", "flash_attention_2", "xformers", "fused", "math_efficient")
PLAIN_ATTENTIONS = ("eager", "math", "naive", "vanilla", "plain", "manual", "default", "torch")
OPTIMIZERS = {"8bit-optimizer": re.compile(r".*8_?bit.*"), "adafactor": re.compile(r"adafactor.*")}


def proposals(found):
    """(value, row of the remedies that it is like) that may need less memory than the value it has."""
    key, value = found.key, found.value
    if RECOMPUTE.fullmatch(key):
        yield from [(True, "gradient-checkpointing")] * is_off(value)
    elif PRECISION.fullmatch(key):
        yield from precisions(found)
    elif ATTENTION.fullmatch(key):
        if is_off(value):
            yield True, "fused-attention"
        elif isinstance(value, str) and value.lower() in PLAIN_ATTENTIONS:
            yield from ((text, "fused-attention") for text in allowed(found, ATTENTIONS)[:1])
    elif SMALL_OPTIMIZER.fullmatch(key):
        yield from [(True, "adafactor" if "adafactor" in key else "8bit-optimizer")] * is_off(value)
    elif OPTIMIZER.fullmatch(key):
        yield from optimizers(found)


def is_off(value):
    return value is False or isinstance(value, str) and value.lower() in ("false", "off", "no")


def precisions(found):
    key, value = found.key, found.value
    is_half = "bf16" in key or "bfloat16" in key
    if value is False:
        yield True, "amp-bf16" if is_half else "amp-fp16"
        return
    text = str(value).lower()
    if value is None and found.values:
        text = "no"
    if text in FULL and (isinstance(value, str) or value is None or type(value) is int):
        for other in allowed(found, FULL[text]):
            yield other, "amp-bf16" if "b" in other.lower().replace("bit", "") else "amp-fp16"


def optimizers(found):
    """Only where the script says which there are: a name that it does not know would be a guess."""
    if not isinstance(found.value, str) or not found.value.lower().startswith("adam"):
        return
    for like, pattern in OPTIMIZERS.items():
        yield from [(text, like) for text in found.values if pattern.fullmatch(str(text).lower())][:1]


def allowed(found, texts):
    """Those that it may have; where nothing is said of that, all."""
    if not found.values:
        return list(texts)
    by_text = {str(value).lower(): value for value in found.values}
    return [by_text[text.lower()] for text in texts if text.lower() in by_text]


def is_accumulation(found):
    is_number = type(found.value) is int and found.value >= 1
    return is_number and bool(ACCUMULATE.fullmatch(found.key)) and not NO_ACCUMULATE.search(found.key)
