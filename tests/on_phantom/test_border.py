"""The border between our code and the script's: faults are put in at every place of it, one by one, and the script sees
nothing of them."""

import gc
import os
import threading
import time

import fathom
import torch
from fathom._doorway import border, native
from torch import nn
from torch.utils.checkpoint import checkpoint

WIDTH = 300
# Places that are Rust's own: tried with an error and with a panic.
HOT = ("before a function", "after a function", "before a module", "after a module", "a node", "values", "a rule of values")


class Block(nn.Module):
    calls = 0

    def __init__(self):
        super().__init__()
        self.inner, self.norm = nn.Linear(WIDTH, WIDTH), nn.BatchNorm1d(WIDTH)

    def forward(self, x):
        Block.calls += 1
        return self.norm(torch.relu(self.inner(x))) + x


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    @staticmethod
    def backward(ctx, gradient):
        return gradient * 2 + ctx.saved_tensors[0] * 0


class Wrong(nn.Module):
    def forward(self, x):
        raise KeyError("the script's own")


class WrongBackward(torch.autograd.Function):
    forward = staticmethod(lambda ctx, x: x.clone())

    @staticmethod
    def backward(ctx, gradient):
        raise ValueError("in the backward pass")


def own_errors():
    """Errors of the script's own, in functions, modules and backward passes, as it sees them."""
    x = torch.ones(2, WIDTH, device="cuda", requires_grad=True)
    for wrong in (
        lambda: nn.Sequential(Wrong())(x),
        lambda: torch.ones(2, 3, device="cuda") @ torch.ones(2, 3, device="cuda"),
        lambda: torch.save(lambda: 0, os.devnull),
        lambda: WrongBackward.apply(x).sum().backward(),
        lambda: torch.empty(1 << 40, device="cuda"),
        lambda: torch.ones(3, device="cuda")[5],
        lambda: torch.optim.SGD([x], lr=-1),
    ):
        try:
            wrong()
        except Exception as error:
            yield type(error).__name__, str(error)[:60]


def train():
    """Trains, saves, evaluates, fails, runs out of memory; what the script sees of it."""
    torch.cuda.reset_peak_memory_stats()
    Block.calls = 0
    model = nn.Sequential(Block(), Block(), nn.Linear(WIDTH, 10)).cuda()
    optimizer = torch.optim.Adam(model.parameters())
    seen = []
    for _ in range(2):
        optimizer.zero_grad()
        x = torch.randn(512, WIDTH, device="cuda")
        middle = checkpoint(model[1], model[0](x), use_reentrant=False)
        loss = Doubled.apply(model[2](middle)).square().mean()
        loss.backward()
        optimizer.step()
        seen.append((list(loss.shape), torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()))
    model.eval()
    with torch.autocast("cuda", torch.bfloat16):
        seen.append(model(x).dtype)
    small = torch.arange(6, device="cuda")
    seen.append(((small * 2).shape, type(small.sum().item()), torch.func.vmap(torch.sin)(small / 2).shape))
    toy = torch.ones(3, device="cuda", requires_grad=True)
    (toy * toy).sum().backward()
    seen.append((toy.grad.shape, torch.eye(4, device="cuda").to_sparse().shape))
    torch.save(model.state_dict(), os.devnull)
    thread = threading.Thread(target=lambda: seen.append(model(x).shape))
    thread.start()
    thread.join()
    seen.extend(own_errors())
    settle()
    return [*seen, Block.calls, torch.cuda.memory_allocated(), torch.cuda.max_memory_allocated()]


def settle():
    """Autograd's own thread lets go of an error, and of the tensors behind it, a moment after it has passed it on."""
    found = []
    while len(found) < 3 or len(set(found[-3:])) > 1:
        time.sleep(0.005)
        gc.collect()
        found.append(torch.cuda.memory_allocated())


def recorded(folder, *fault):
    """What the script sees while it is recorded with a fault, the places of the border that it passed, and the noise."""
    settle()
    torch.cuda.empty_cache()
    border.faults.clear()
    native.fail_at(*fault)
    native.places_passed()
    gc.disable()  # it would come at another moment each time, and peaks with it
    try:
        with fathom.record(str(folder)):
            seen = train()
        return seen, native.places_passed(), list(border.faults)
    finally:
        gc.enable()
        native.fail_at()
        border.faults.clear()


def test_a_fault_at_any_place_is_noted_and_the_script_goes_on(tmp_path, capsys):
    recorded(tmp_path, "nowhere")  # what is made once is made now
    gc.collect()
    gc.freeze()  # what the tests have made need not be looked through each time
    expected, places, noted = recorded(tmp_path, "nowhere")
    assert noted == [] and len(places) > 30
    assert {*HOT, "Watch.refused", "Watch.after_step", "Recorder.finish", "before torch.save"} <= set(places)
    wrong, hows = {}, [("begin", False), ("end", True)]
    # One import stands for all.
    places = [place for place in places if "the import of torch.distributed." not in place]
    for number, place in enumerate(places):
        for moment, is_panic in hows if place in HOT else hows[number % 2 :][:1]:
            seen, _, noted = recorded(tmp_path, place, moment, is_panic)
            if seen != expected or not noted or "a fault that a test put in" not in noted[0]["error"]:
                wrong[place, moment] = noted, [pair for pair in zip(expected, seen) if pair[0] != pair[1]]
    gc.unfreeze()
    assert wrong == {}
    noise = [line for line in capsys.readouterr().err.splitlines() if line]
    assert noise and all(line.startswith("fathom: ") for line in noise), noise[:5]


def test_the_collector_may_come_while_ours_is_made():
    party = border.Party("nothing")
    thresholds = gc.get_threshold()
    gc.set_threshold(1)
    try:
        made = [native.Around(party.native, "print", print, None, None) for _ in range(300)]
        made += [native.Instead(party.native, "print", print, lambda theirs: theirs) for _ in range(300)]
    finally:
        gc.set_threshold(*thresholds)
    assert len(made) == 600
