"""Starts `bench/estimate.py` for one tool and one model, and the models themselves under `fathom run`.

Peers run without anything of Fathom's in their process but the libraries that torch's CUDA build cannot be imported
without; the doorway stays shut.
"""

import ast
import functools
import json
import os
import subprocess
import tempfile
from pathlib import Path

from result import FATHOM, ROOT

MODELS = ROOT / "bench" / "models"

# The order of every table of results.
NAMES = {
    "resnet50": "ResNet-50",
    "vit": "ViT-B/16",
    "unet": "U-Net of SD 1.5",
    "detection": "Faster R-CNN",
    "retinanet": "RetinaNet, matched before",
    "gpt2": "GPT-2",
    "t5": "T5-small",
    "lstm": "LSTM",
    "lora": "LoRA on 1.1 B",
    "bert": "BERT-large, bf16 autocast",
    "checkpointed": "GPT-2 medium, checkpointed",
}

# Where the peers are installed, beside the torch of .venv: `make .venvs/peers/peers.stamp`.
PEERS = Path(os.environ.get("BENCH_PYTHON", ROOT / ".venvs" / "peers" / "bin" / "python"))

# The card of every run.
CARD = "a100-80g"

# What a tool may take for one model.
PATIENCE = 900


def python():
    """The interpreter of the peers, or a word on how to get it."""
    if not PEERS.exists():
        raise SystemExit(f"error: {PEERS} is missing\nhint: make .venvs/peers/peers.stamp")
    return PEERS


def words(model):
    """What a model is trained with: the first line of its file."""
    return ast.get_docstring(ast.parse((MODELS / f"{model}.py").read_text()))


@functools.cache
def bare():
    """The environment in which torch can be imported, and nothing else happens."""
    code = "import json, os; print('ENVIRONMENT', json.dumps(dict(os.environ)))"
    done = subprocess.run(
        [str(FATHOM), "run", "--quiet", "--gpu", CARD, "--", str(python()), "-c", code], capture_output=True, text=True
    )
    line = next(line for line in done.stdout.splitlines() if line.startswith("ENVIRONMENT "))
    found = json.loads(line.removeprefix("ENVIRONMENT "))
    return {name: value for name, value in found.items() if name not in ("FATHOM_DOORWAY", "FATHOM_RUN", "FATHOM_STEPS")}


# Fathom as it is: the recorder with modules, operators and lines, and values. The same without values, without the recorder,
# and without both.
OURS = {
    "fathom": (),
    "recorder": ("--values", "off"),
    "values": ("--record", "off"),
    "neither": ("--record", "off", "--values", "off"),
}


def estimating(tool, model, steps, flags=()):
    """The command for an estimate, and its environment: of a peer, of PyTorch on the phantom without Fathom (`phantom`),
    or of Fathom (`OURS`)."""
    is_ours = tool in OURS
    script = [str(python()), str(ROOT / "bench" / "estimate.py"), "phantom" if is_ours else tool, model, str(steps)]
    if not is_ours:
        return script, bare()
    settings = ("--gpu", CARD, "--steps", "0", "--assume", "least", *OURS[tool], *flags)
    return [str(FATHOM), "run", "--quiet", *settings, "--", *script], None


def estimate(tool, model, steps=2, flags=()):
    """The answer: `bytes`, `build`, `steps`, or `error`."""
    command, environment = estimating(tool, model, steps, flags)
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"error": f"it took more than {PATIENCE} s"}
    return answer(done.stdout, done.stderr, done.returncode)


def answer(output, errors, code):
    lines = [line for line in output.splitlines() if line.startswith("ANSWER ")]
    if not lines:
        return {"error": f"it ended with code {code} and no answer"}
    if "fathom: " in errors:  # what is fast then is not all of it
        return {"error": errors.strip().splitlines()[0]}
    return json.loads(lines[-1].removeprefix("ANSWER "))


def report(model, flags=("--steps", "2")):
    """`fathom run` as a user would type it: its report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        words = [str(FATHOM), "run", "--quiet", "--gpu", CARD, "--json", str(path), *flags, "--"]
        subprocess.run([*words, str(python()), str(MODELS / f"{model}.py")], capture_output=True, check=False)
        return json.loads(path.read_text())
