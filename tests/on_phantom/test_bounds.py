"""Between which numbers whole numbers lie that are too dear to compute: what the CPU gives is never outside."""

import random
import time

import pytest
import torch
from fathom._doorway import functions

T = torch.Tensor


def bounds(tensor):
    return functions.install().ledger.bounds(tensor)


# Each makes whole numbers of whole numbers, or of scores.
STEPS = {
    "picked": lambda x, s, r: s.argmax(r.choice([0, 1])),
    "sampled": lambda x, s, r: torch.multinomial(s.abs() + 0.1, 3, generator=torch.Generator(s.device).manual_seed(1)),
    "best": lambda x, s, r: s.topk(2, dim=r.choice([0, 1])).indices,
    "sorted": lambda x, s, r: s.sort(dim=r.choice([0, 1])).indices,
    "order": lambda x, s, r: torch.argsort(x, -1),
    "found": lambda x, s, r: s.max(1)[1],
    "least": lambda x, s, r: torch.min(s, dim=0).indices,
    "middle": lambda x, s, r: x.median(-1)[r.choice([0, 1])],
    "larger": lambda x, s, r: torch.max(x, x.flip(0)),
    "joined": lambda x, s, r: torch.cat((x.flatten(), s.argmax(1))),
    "stacked": lambda x, s, r: torch.stack((x, -x)),
    "viewed": lambda x, s, r: x.reshape(-1)[1:].unsqueeze(0),
    "parts": lambda x, s, r: x.flatten().chunk(2)[0],
    "gathered": lambda x, s, r: x.flatten().gather(0, torch.zeros(3, dtype=torch.long, device=x.device)),
    "added": lambda x, s, r: x + r.randint(-9, 9),
    "added to": lambda x, s, r: r.randint(-9, 9) + x,
    "taken off": lambda x, s, r: r.randint(-9, 9) - x,
    "less": lambda x, s, r: x - x.flatten()[0],
    "times": lambda x, s, r: r.randint(-3, 3) * x,
    "squared": lambda x, s, r: x * x,
    "parted": lambda x, s, r: x.abs() // r.randint(1, 5),
    "parted down": lambda x, s, r: torch.div(x, r.randint(1, 5), rounding_mode=r.choice(["floor", "trunc"])),
    "rest": lambda x, s, r: x % r.randint(1, 7),
    "summed": lambda x, s, r: x.sum(-1, keepdim=True),
    "running": lambda x, s, r: x.cumsum(-1),
    "counted": lambda x, s, r: (s > 0).sum(r.choice([0, 1])),
    "nonzero": lambda x, s, r: torch.count_nonzero(s > 0.3).reshape(1),
    "truths": lambda x, s, r: (s > 0.3).long(),
    "chosen": lambda x, s, r: torch.where(x > 2, x, r.randint(-5, 50)),
    "filled": lambda x, s, r: x.masked_fill(x > 1, r.randint(-50, 50)),
    "written": lambda x, s, r: _written(x, r.randint(-50, 50)),
    "written in place": lambda x, s, r: x.clone().add_(r.randint(-9, 9)),
    "a part in place": lambda x, s, r: _part(x, r.randint(-9, 50)),
    "copied": lambda x, s, r: torch.zeros_like(x).copy_(x),
    "clamped": lambda x, s, r: x.clamp(min=r.randint(-3, 3), max=20),
    "short": lambda x, s, r: (x % 100).to(torch.int32).long(),
    "bytes": lambda x, s, r: (x % 100).to(torch.uint8).long(),
    "placed": lambda x, s, r: torch.bucketize(s, torch.linspace(-1, 1, 5, device=s.device)),
    "hot": lambda x, s, r: torch.nn.functional.one_hot(x.abs() % 4, 4),
    "repeated": lambda x, s, r: x.flatten()[:2].repeat(3),
    "rounded": lambda x, s, r: (s * 9).long(),
    "made": lambda x, s, r: torch.tensor([[r.randint(-9, 9), 4], [2, 60]], device=x.device),
    "full": lambda x, s, r: torch.full((2, 3), r.randint(-9, 9), device=x.device),
    "like": lambda x, s, r: torch.full_like(x, fill_value=r.randint(-9, 9)) + torch.ones_like(x),
    "counting": lambda x, s, r: torch.arange(r.randint(-5, 0), r.randint(5, 9), 2, device=x.device),
    "random": lambda x, s, r: torch.randint(3, 9, (2, 3), device=x.device),
    "scattered": lambda x, s, r: torch.zeros(9, dtype=torch.long, device=x.device).scatter(0, x.flatten().abs() % 9, 7),
}


def _written(x, number):
    x = x.clone()
    x[0] = number
    return x


def _part(x, number):
    x = x.clone()
    x.flatten()[:1].fill_(number)
    return x.flatten()[-1:]


def program(seed, device):
    """The same on both: a chain of steps, none of which asks for a value."""
    r = random.Random(seed)
    scores = torch.linspace(-2, 2, 24).roll(seed % 24).reshape(4, 6).to(device)
    x = torch.tensor([[3, 1, 4], [1, 5, 9]]).to(device)
    for _ in range(r.randint(1, 5)):
        x = STEPS[r.choice(sorted(STEPS))](x, scores, r)
        if x.numel() < 2:
            x = torch.cat((x.flatten(), x.flatten()))
        yield x


@pytest.mark.parametrize("first", range(0, 400, 100))
def test_what_the_cpu_gives_lies_within(first):
    known = 0
    for seed in range(first, first + 100):
        for there, here in zip(program(seed, "cuda"), program(seed, "cpu")):
            found = bounds(there)
            if found is None or here.numel() == 0:
                continue
            known += 1
            assert found[0] <= int(here.min()) and int(here.max()) <= found[1], (seed, found, here)
    assert known > 100  # of 300


def test_bounds_are_close():
    scores = torch.randn(8, 50, device="cuda")
    tokens = torch.cat((torch.tensor([[7]], device="cuda"), torch.multinomial(scores.softmax(1)[:1], 1)), 1)
    assert bounds(tokens) == (0, 49) and bounds(torch.tensor([3, 8]).cuda()) == (3, 8)
    assert bounds(scores.argmax(1)) == (0, 49)
    assert bounds((scores.argmax(1) == 3).sum()) == (0, 8)
    assert bounds(scores.topk(5).indices // 10) == (0, 4)
    assert bounds(scores.argmax()) == (0, 399)
    assert bounds((scores * 9).long()) is None  # nobody knows


def test_one_dear_thing_is_looked_into_once():
    """Each number of a dear tensor was a walk through all that is behind it."""
    weights = torch.randn(1024, 1024, device="cuda")
    x = torch.randn(4096, 1024, device="cuda")
    for _ in range(1500):
        x = torch.tanh(x @ weights)
    tokens = x.argmax(1)
    begin = time.perf_counter()
    assert len({int(token) for token in tokens[:5]}) >= 1
    first = time.perf_counter() - begin
    begin = time.perf_counter()
    assert {int(token) for token in tokens[:500]} == {0}  # the least that it can be
    assert time.perf_counter() - begin < 10 * first + 1
