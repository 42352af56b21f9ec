"""Each lever: its effect on the phantom, its refusal where it has nothing to act on, and, if it is exact, equal
gradients in a run of the same training on the CPU, where values are real."""

import gc
import re
import weakref
from pathlib import Path

import pytest
import torch
from fathom._doorway import levers
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from torch.utils.flop_counter import FlopCounterMode

MIB = 1 << 20

# Of this page a test of Rust says that it is what the table of levers says.
PAGE = Path(__file__).parents[2] / "docs" / "reference" / "fit.md"
RESULTS = dict(re.findall(r"^\| `([a-z0-9-]+)` .* \| ([a-zA-Z; ]+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE))


@pytest.fixture(autouse=True)
def alone():
    """A model of another test would be a second root, and paths would begin with the names of both."""
    gc.collect()


class Block(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.attention = nn.MultiheadAttention(width, 4, batch_first=True)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y)[0]
        return x + self.narrow(nn.functional.gelu(self.wide(x)))


class Model(nn.Module):
    def __init__(self, width=64, classes=50):
        super().__init__()
        self.stem = nn.Conv2d(3, width, 4, 4)
        self.blocks = nn.ModuleList(Block(width) for _ in range(3))
        self.head = nn.Linear(width, classes)

    def forward(self, images):
        x = self.stem(images).flatten(2).transpose(1, 2)
        for block in self.blocks:
            x = block(x)
        return self.head(x).flatten(0, 1)


def norm_statistics(requests):
    """Running statistics of a BatchNorm after two steps on the CPU."""
    undo = levers.install(requests)
    torch.manual_seed(0)
    model = nn.Sequential(nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU()), nn.Linear(8, 1))
    for _ in range(2):
        model(torch.randn(16, 4)).sum().backward()
    facts = undo()
    return model[0][1], facts


def train(device, requests=(), steps=2, batch=8, width=64, size=16, kind=torch.optim.AdamW, early=False):
    """Gradients of the last step, the peak in bytes, and what the levers say."""
    gc.collect()
    undo = levers.install(list(requests))
    try:
        torch.manual_seed(0)
        model = Model(width).to(device)
        optimizer = kind(model.parameters(), lr=1e-3)
        images = torch.randn(batch, 3, size, size)
        labels = torch.arange(batch).repeat_interleave((size // 4) ** 2).view(batch, -1) % 50
        if device == "cuda":
            torch.cuda.empty_cache()
            torch.cuda.reset_peak_memory_stats()
        gradients = None
        for _ in range(steps):
            for image, label in DataLoader(TensorDataset(images, labels), batch_size=batch):
                logits = model(image.to(device))
                loss = nn.functional.cross_entropy(logits, label.to(device).flatten())
                if not early:
                    optimizer.zero_grad()
                loss.backward()
                gradients = [p.grad.clone() if device == "cpu" else None for p in model.parameters()]
                optimizer.step()
                if early:
                    optimizer.zero_grad()
        peak = torch.cuda.max_memory_allocated() if device == "cuda" else 0
    finally:
        facts = undo()
    return gradients, peak, facts


BLOCKS = [f"blocks.{index}" for index in range(3)]
LARGE = {"batch": 16, "width": 256, "size": 64}

SMALLER = {
    "checkpoint": {"lever": "checkpoint", "modules": BLOCKS},
    "selective-checkpoint": {"lever": "selective-checkpoint", "modules": BLOCKS},
    "offload": {"lever": "offload"},
    "amp-bf16": {"lever": "amp-bf16"},
    "amp-fp16": {"lever": "amp-fp16"},
    "accumulate": {"lever": "accumulate", "parts": 4},
    "fused-attention": {"lever": "fused-attention"},
}


@pytest.fixture(scope="module")
def plain():
    return train("cuda", **LARGE)[1]


@pytest.mark.parametrize("name", SMALLER)
def test_activations_shrink(name, plain):
    _, peak, (facts,) = train("cuda", [SMALLER[name]], **LARGE)
    assert facts["applied"], facts
    assert peak < 0.95 * plain, (peak / MIB, plain / MIB)


@pytest.fixture(scope="module")
def plain_step():
    return train("cuda", width=512, batch=1)[1]


@pytest.mark.parametrize(
    "name, share", [("fused-optimizer", 0.9), ("no-foreach", 0.9), ("sgd", 0.95), ("adafactor", 0.95),
                    ("8bit-optimizer", 0.9), ("offload-optimizer", 0.8), ("lora", 0.8)],
)
def test_the_step_shrinks(name, share, plain_step):
    plain = plain_step
    _, peak, (facts,) = train("cuda", [{"lever": name}], width=512, batch=1)
    assert facts["applied"], facts
    assert peak < share * plain, (peak / MIB, plain / MIB)


@pytest.mark.parametrize("name", ["8bit-optimizer", "offload-optimizer", "lora"])
def test_what_cannot_be_applied_says_what_its_peak_is_of(name):
    """Where no package is installed that has it, and for LoRA, which is written by hand."""
    _, _, (facts,) = train("cuda", [{"lever": name}], width=64, batch=1)
    assert facts["applied"] and facts["edits"] == [] and "the peak is that of a stand-in" in facts["in_the_way"][0], facts


def test_eight_bits_are_two_bytes_a_parameter():
    undo = levers.install([{"lever": "8bit-optimizer"}])
    weight = nn.Parameter(torch.zeros(1024, 1024, device="cuda"))
    optimizer = torch.optim.AdamW([weight], lr=1e-3)
    weight.grad = torch.zeros_like(weight)
    before = torch.cuda.memory_allocated()
    optimizer.step()
    kept = torch.cuda.memory_allocated() - before
    undo()
    assert kept == 2 * weight.numel() + 2 * 4 * weight.numel() // 256


def test_gradients_are_given_back_early():
    _, plain, _ = train("cuda", width=512, batch=8, size=64)
    _, peak, (facts,) = train("cuda", [{"lever": "zero-grad"}], width=512, batch=8, size=64)
    assert facts["applied"] and peak <= plain, facts
    _, _, (facts,) = train("cuda", [{"lever": "zero-grad"}], early=True)
    assert not facts["applied"] and "already" in facts["reason"]


def test_frozen_modules_have_no_gradients():
    undo = levers.install([{"lever": "freeze", "modules": ["blocks.0"]}])
    model = Model()
    model(torch.randn(1, 3, 16, 16)).sum().backward()
    gradients = [name for name, p in model.named_parameters() if p.grad is None]
    assert undo()[0]["applied"] and all(p.requires_grad for p in model.parameters())
    assert gradients and all(name.startswith("blocks.0.") for name in gradients)


def test_one_step_at_a_time_gives_the_same_bits():
    """`foreach=False` is called exact: as the optimizers that the lever acts on compute, on the CPU."""
    for kind in (torch.optim.Adam, torch.optim.AdamW, torch.optim.SGD, torch.optim.Adagrad):
        found = []
        for foreach in (True, False):
            generator = torch.Generator().manual_seed(0)
            weights = [nn.Parameter(torch.randn(37, 5, generator=generator)) for _ in range(3)]
            optimizer = kind(weights, lr=0.1, weight_decay=0.1, foreach=foreach)
            for _ in range(5):
                for weight in weights:
                    weight.grad = torch.randn(weight.shape, generator=generator)
                optimizer.step()
            found.append(weights)
        assert all(torch.equal(a, b) for a, b in zip(*found, strict=True)), kind


def test_a_frozen_model_takes_half():
    frozen = nn.Sequential(nn.Linear(8, 8), nn.Linear(8, 8)).requires_grad_(False)
    undo = levers.install([{"lever": "half-frozen"}])
    assert frozen(torch.randn(2, 8)).dtype is torch.float32
    assert frozen[0].weight.dtype is torch.bfloat16
    assert undo()[0]["applied"] and frozen[0].weight.dtype is torch.float32


def test_cross_entropy_in_parts():
    def peak(requests):
        undo = levers.install(requests)
        logits = torch.randn(4096, 8192, device="cuda", requires_grad=True)
        target = torch.zeros(4096, dtype=torch.long, device="cuda")
        torch.cuda.reset_peak_memory_stats()
        nn.functional.cross_entropy(logits, target).backward()
        return torch.cuda.max_memory_allocated() - logits.nbytes, undo()

    whole, _ = peak([])
    parts, (facts,) = peak([{"lever": "chunked-cross-entropy"}])
    assert facts["applied"] and parts < 0.7 * whole, (parts / MIB, whole / MIB)


def test_batch_norm_inside_a_checkpoint_keeps_its_statistics():
    expected, _ = norm_statistics([])
    found, (facts,) = norm_statistics([{"lever": "checkpoint", "modules": ["0"]}])
    assert facts["applied"] and facts["meets_batch_norm"]
    assert RESULTS["checkpoint"] == "exact; numerically equal with BatchNorm"
    torch.testing.assert_close(found.running_mean, expected.running_mean)
    torch.testing.assert_close(found.running_var, expected.running_var)
    assert found.momentum == expected.momentum == 0.1


def test_an_average_on_the_host():
    undo = levers.install([{"lever": "ema-cpu"}])
    model = nn.Linear(4, 4).cuda()
    average = torch.optim.swa_utils.AveragedModel(model)
    average.update_parameters(model)
    assert undo()[0]["applied"] and not next(average.parameters()).is_cuda


EXACT = [
    {"lever": "checkpoint", "modules": BLOCKS},
    {"lever": "selective-checkpoint", "modules": BLOCKS},
    {"lever": "offload", "least": 0},
    {"lever": "no-foreach"},
    {"lever": "zero-grad"},
]
EQUAL = [
    {"lever": "accumulate", "parts": 4},
    {"lever": "fused-attention"},
    {"lever": "fused-optimizer"},
    {"lever": "channels-last"},
    {"lever": "chunked-cross-entropy", "large": 64},
]


@pytest.fixture(scope="module")
def expected():
    return train("cpu")[0]


@pytest.mark.parametrize("request_", EXACT, ids=lambda request: request["lever"])
def test_exact_levers_leave_every_bit_of_the_gradients(request_, expected):
    found, _, (facts,) = train("cpu", [request_])
    assert facts["applied"] and not facts["meets_batch_norm"], facts
    assert RESULTS[request_["lever"]].split(";")[0] == "exact"
    assert all(torch.equal(a, b) for a, b in zip(expected, found, strict=True))


def test_a_selective_checkpoint_makes_no_product_twice():
    """Of three blocks each has four matrix products; a whole checkpoint makes them all again."""

    def products(lever):
        with FlopCounterMode(display=False) as counter:
            train("cpu", [{"lever": lever, "modules": BLOCKS}] if lever else [], steps=1)
        return counter.get_total_flops()

    plain, whole, kept = products(None), products("checkpoint"), products("selective-checkpoint")
    assert kept == plain < whole, (plain, kept, whole)


@pytest.mark.parametrize("request_", EQUAL, ids=lambda request: request["lever"])
def test_numerically_equal_levers_differ_by_rounding(request_):
    expected, _, _ = train("cpu", steps=1)
    found, _, (facts,) = train("cpu", [request_], steps=1)
    assert facts["applied"] and not facts["meets_batch_norm"], facts
    assert RESULTS[request_["lever"]].split(";")[0] == "numerically equal"
    for a, b in zip(expected, found, strict=True):
        torch.testing.assert_close(a, b, rtol=1e-3, atol=1e-6)


@pytest.mark.parametrize(
    "request_, reason",
    [
        ({"lever": "bucket-view"}, "DistributedDataParallel"),
        ({"lever": "own-setting"}, "no flag"),
        ({"lever": "chunked-cross-entropy"}, "16 million"),
        ({"lever": "ema-cpu"}, "AveragedModel"),
        ({"lever": "half-frozen"}, "frozen"),
        ({"lever": "checkpoint", "modules": ["nowhere"]}, "nowhere"),
        ({"lever": "accumulate", "parts": 3}, "cannot be divided"),
    ],
    ids=lambda value: value["lever"] if isinstance(value, dict) else "",
)
def test_what_has_nothing_to_act_on_is_not_applicable(request_, reason):
    _, _, (facts,) = train("cpu", [request_], steps=1)
    assert not facts["applied"] and reason in facts["reason"], facts


def test_what_is_there_already_is_not_applicable():
    requests = [{"lever": "amp-bf16"}, {"lever": "fused-optimizer"}, {"lever": "allocator", "settings": "x:1"}]
    undo = levers.install(requests)
    model = nn.Linear(4, 4).cuda()
    torch.optim.AdamW(model.parameters(), fused=True)
    with torch.autocast("cuda", torch.bfloat16):
        model(torch.zeros(1, 4, device="cuda"))
    reasons = [facts["reason"] for facts in undo()]
    assert "already" in reasons[0] and "already" in reasons[1] and "in use" in reasons[2]


@pytest.mark.parametrize("name", ["checkpoint", "fused-attention", "channels-last", "freeze", "half-frozen", "accumulate", "zero-grad"])
def test_a_model_that_the_script_drops_is_gone(name):
    """Else its weights would stay on the card, in trials of scripts that make a second model."""
    undo = levers.install([{"lever": name, "modules": BLOCKS, "parts": 1}])
    model, frozen = Model().cuda(), nn.Linear(64, 50).cuda().requires_grad_(False)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    (model(torch.randn(2, 3, 16, 16, device="cuda")).sum() + frozen(torch.randn(2, 64, device="cuda")).sum()).backward()
    optimizer.step()
    seen = [weakref.ref(each) for root in (model, frozen) for each in (*root.modules(), *root.parameters())]
    del model, frozen, optimizer
    gc.collect()
    held = [each() for each in seen if each() is not None]
    (facts,) = undo()
    assert held == [] and (facts["applied"] or name in ("accumulate", "zero-grad")), facts


def test_every_lever_has_its_words_and_its_inverse():
    call, make = nn.Module.__call__, torch.optim.Optimizer.__init__
    assert len(RESULTS) > 15
    for name in RESULTS:
        module = levers.load(name)
        assert module.CHANGE and module.__doc__, name
        undo = levers.install([{"lever": name, "modules": [], "settings": "x:1"}])
        undo()
        assert nn.Module.__call__ is call and torch.optim.Optimizer.__init__ is make, name


@pytest.mark.parametrize("device", ["cpu", "cuda"])
@pytest.mark.parametrize("classes, is_other", [(8, True), (9, False)])
def test_a_loss_that_compares_samples_is_not_divided(classes, is_other, device):
    """As CLIP's: each of eight images is to find its text among eight."""
    undo = levers.install([{"lever": "accumulate", "parts": 2}])
    layer = nn.Linear(4, classes).to(device)
    for (x,) in DataLoader(TensorDataset(torch.randn(32, 4)), batch_size=16):
        nn.functional.cross_entropy(layer(x.to(device)), torch.arange(8, device=device)).backward()
    (facts,) = undo()
    assert ("with each other" in (facts["reason"] or "")) is is_other, facts


@pytest.mark.parametrize("ignored, is_other", [((0, 1), True), ((3, 3), False)])
@pytest.mark.parametrize("device", ["cpu", "cuda"])
def test_a_mean_over_targets_that_are_not_ignored(ignored, is_other, device):
    """Of two parts it is the mean of the whole only where both ignore as many; the real gradients say the same."""
    x, target = torch.randn(2, 8, 4), torch.zeros(2, 8, dtype=torch.long)
    for part, count in zip(target, ignored):
        part[:count] = -100

    def gradient(parts):
        weight = torch.ones(4, 5, requires_grad=True)
        for rows, targets in parts:
            (nn.functional.cross_entropy(rows @ weight, targets) / len(parts)).backward()
        return weight.grad

    whole, divided = gradient([(x.flatten(0, 1), target.flatten())]), gradient(list(zip(x, target)))
    assert torch.allclose(whole, divided, atol=1e-6) != is_other
    undo = levers.install([{"lever": "accumulate", "parts": 2}])
    layer = nn.Linear(4, 5).to(device)
    for rows, targets in zip(x, target):
        nn.functional.cross_entropy(layer(rows.to(device)), targets.to(device)).backward()
    (facts,) = undo()
    assert facts["means_of_means"] is is_other
