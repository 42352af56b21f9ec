"""The trainings that every tool is compared on are what they say, and step; the arithmetic of the tables."""

import json
import sys

import pytest
from conftest import PYTHON, ROOT

sys.path.insert(0, str(ROOT / "bench"))

import peers
import scale
import tools

IS_WARM = True

# Parameters as torchvision, Stable Diffusion, OpenAI, Google and peft count them; the LSTM's by its shapes.
PARAMETERS = {
    "resnet50": 25_557_032,
    "vit": 86_567_656,
    "unet": 859_520_964,
    "gpt2": 124_439_808,
    "t5": 60_506_624,
    # torchvision's table counts it with frozen norms; without weights they are trained.
    "detection": 41_755_286 + 53_120,
    # 34,014,999 in torchvision's table, with frozen norms.
    "retinanet": 34_014_999 + 53_120,
    "checkpointed": 354_823_168,
    "bert": 335_174_458,
    "lstm": 2 * 4 * 650 * (650 + 650 + 2) + 10_000 * 650 + 650 * 10_000 + 10_000,
    "lora": 1_104_553_984,
}

# These import torchvision at most.
QUICK = ("resnet50", "vit", "lstm")
OTHERS = tuple(name for name in tools.NAMES if name not in QUICK)

# All in one interpreter. peft is only where the peers are, so one model may be missing.
CODE = """
import gc, importlib, sys, torch
sys.path.insert(0, sys.argv[1])
for name in sys.argv[2:]:
    try:
        training = importlib.import_module(name).build("cuda")
    except ModuleNotFoundError as error:
        print("SEEN", name, 0, str(error))
        continue
    weights = torch.cuda.memory_allocated()
    training.step()
    state = sum(tensor.nbytes for each in training.optimizer.state.values() for tensor in each.values())
    grown = torch.cuda.max_memory_allocated() > weights + state
    print("SEEN", name, sum(p.numel() for p in training.model.parameters()), int(grown))
    del training
    gc.collect()
    torch.cuda.reset_peak_memory_stats()
"""


@pytest.mark.parametrize("names", [QUICK, pytest.param(OTHERS, marks=pytest.mark.matrix)], ids=["quick", "others"])
def test_every_model_is_what_it_is_called_and_trains(fathom, names):
    models = str(ROOT / "bench" / "models")
    report, done = fathom(PYTHON, "-c", CODE, models, *names, flags=("--steps", "0", "--record", "off"), timeout=400)
    seen = {words[1]: words[2:] for words in map(str.split, done.stdout.splitlines()) if words[:1] == ["SEEN"]}
    assert list(seen) == list(names), done.stderr
    if "lora" in seen and seen["lora"][0] == "0":
        assert "peft" in " ".join(seen.pop("lora"))
    assert {name: int(count) for name, (count, _) in seen.items()} == {name: PARAMETERS[name] for name in seen}
    assert all(grown == "1" for _, grown in seen.values()), seen


def test_a_peer_that_fails_is_a_dash_and_a_note():
    right = {"bytes": 1000}
    answers = dict.fromkeys(["PyTorch", "fathom", *peers.PEERS], right)
    found = {"gpt2": answers | {"torchinfo": {"bytes": 500}}, "t5": answers | {"MemTracker": {"error": "it cannot"}}}
    errors, short = peers.tables(found)
    assert [row[:4] for row in errors.rows] == [["GPT-2", 1000, 0.0, 0.0], ["T5-small", 1000, 0.0, None]]
    assert "MemTracker on T5-small: it cannot" in errors.notes
    assert {row[0]: row[1:] for row in short.rows}["torchinfo"] == [2, 0.25, 0.5, 1]
    assert {row[0]: row[1] for row in short.rows}["MemTracker"] == 1


@pytest.mark.parametrize("power", [1.0, 2.0])
def test_the_exponent_is_the_slope_in_logarithms(power):
    rows = [[str(layers), 3 * layers**power] for layers in scale.LAYERS]
    assert scale.exponent(rows, 1) == pytest.approx(power)
    assert scale.exponent([*rows, ["64", None]], 1) is None


def test_an_answer_is_the_last_line_that_says_so():
    said = 'noise\nANSWER {"bytes": 7}\nmore\n'
    assert tools.answer(said, "", 0) == {"bytes": 7}
    assert "code 3" in tools.answer("", "", 3)["error"]
    # Half a recording would be fast.
    assert tools.answer(said, "fathom: recording ends here: …\n", 0)["error"].startswith("fathom: recording")
    assert json.dumps(tools.words("lstm"))
