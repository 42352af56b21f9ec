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


def estimate(tool, model, steps=2):
    """The answer of a peer, or of PyTorch on the phantom without Fathom: `bytes`, `build`, `steps`, or `error`."""
    command = [str(python()), str(ROOT / "bench" / "estimate.py"), tool, model, str(steps)]
    return answered(command, bare())


def recorded(model, steps=2, flags=()):
    """The same with everything of Fathom on: the recorder with modules, operators and lines, and true small values."""
    script = [str(python()), str(ROOT / "bench" / "estimate.py"), "phantom", model, str(steps)]
    return answered([str(FATHOM), "run", "--quiet", "--gpu", CARD, "--steps", "0", *flags, "--", *script], None)


def answered(command, environment):
    try:
        done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        return {"error": f"it took more than {PATIENCE} s"}
    lines = [line for line in done.stdout.splitlines() if line.startswith("ANSWER ")]
    if not lines:
        return {"error": f"it ended with code {done.returncode} and no answer"}
    return json.loads(lines[-1].removeprefix("ANSWER "))


def report(model, flags=("--steps", "2")):
    """`fathom run` as a user would type it: its report."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        words = [str(FATHOM), "run", "--quiet", "--gpu", CARD, "--json", str(path), *flags, "--"]
        subprocess.run([*words, str(python()), str(MODELS / f"{model}.py")], capture_output=True, check=False)
        return json.loads(path.read_text())
