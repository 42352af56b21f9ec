"""What a patch writes, compared with the script as it was: both run on the CPU, where gradients are real."""

import gc
import runpy

import pytest
import torch
from fathom._doorway import levers
from fathom._doorway.edits.checkpoint_text import parts_of
from fathom._doorway.edits.source import source_of
from torch import nn

HEAD = """import torch
import torch.nn.functional as F
from torch import nn

torch.manual_seed(0)
"""

LANGUAGE = (
    HEAD
    + """

class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(11, 6)
        self.head = nn.Linear(6, 11)

    def forward(self, tokens, targets=None):
        x = self.embed(tokens)
BODY


model = Model()
model(torch.arange(4).view(2, 2))
tokens = torch.randint(11, (4, 7))
loss = model(tokens, tokens.flip(1))
loss = loss[1] if isinstance(loss, tuple) else loss
loss.backward()
with torch.no_grad():
    answer = model(tokens)
    answer = answer[0] if isinstance(answer, tuple) else answer
gradients = [p.grad for p in model.parameters()] + [answer]
"""
)

LOSS_OF_LOGITS = {
    "rows": "logits = self.head(x)\nif targets is None:\n    return logits\nreturn F.cross_entropy(logits.view(-1, 11), targets.view(-1))",
    "given back": "logits = self.head(x)\nloss = None\nif targets is not None:\n"
    "    loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1))\nreturn logits, loss",
    "set in two branches": "if targets is not None:\n    logits = self.head(x)\n"
    "    loss = F.cross_entropy(logits.transpose(1, 2), targets)\nelse:\n    logits = self.head(x)\n    loss = None\nreturn logits, loss",
    "shifted": "logits = self.head(x)\nloss = None\nif targets is not None:\n"
    "    loss = F.cross_entropy(logits[..., :-1, :].reshape(-1, 11), targets[..., 1:].reshape(-1))\nreturn logits, loss",
    "classes moved": "logits = self.head(x)\nif targets is None:\n    return logits\n"
    "return F.cross_entropy(logits.permute(0, 2, 1), targets)",
    "targets in the same other order": "if targets is None:\n    return self.head(x)\nlogits = self.head(x.transpose(0, 1))\n"
    "return F.cross_entropy(logits.reshape(-1, 11), targets.transpose(0, 1).reshape(-1))",
}  # fmt: skip

NOT_WRITTEN = {
    # Rows of the one would meet targets of the other.
    "another order": (
        "logits = self.head(x)\nif targets is None:\n    return logits\n"
        "return F.cross_entropy(logits.transpose(0, 1).reshape(-1, 11), targets.transpose(0, 1).reshape(-1))",
        "linear layer|another order",
    ),
    "another input by then": (
        "logits = self.head(x)\nif targets is None:\n    return logits\nx = x + 1\n"
        "return F.cross_entropy(logits.view(-1, 11), targets.view(-1))",
        "another value before the loss",
    ),
    "read by a function": (
        "logits = self.head(x)\nif targets is None:\n    return logits\nself.last = logits.argmax(-1)\n"
        "return F.cross_entropy(logits.view(-1, 11), targets.view(-1))",
        "is read here, too",
    ),
    "wanted otherwise": (
        "logits = self.head(x)\nif targets is None:\n    loss = None\nelse:\n"
        "    loss = F.cross_entropy(logits.view(-1, 11), targets.view(-1))\nreturn logits, loss",
        "not clear when",
    ),
}

LOOP = (
    HEAD
    + """
from torch.utils.data import DataLoader, TensorDataset

data = TensorDataset(torch.randn(22, 5), torch.randn(22, 3))
model = nn.Sequential(nn.Linear(5, 7), nn.Tanh(), nn.Linear(7, 3))
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for x, y in DataLoader(data, batch_size=8):
BODY
gradients = [p.detach() for p in model.parameters()]
"""
)

STEP = "optimizer.zero_grad()\nloss.backward()\noptimizer.step()"

LOOPS = {
    # The last batch has six rows, which four does not divide.
    "a mean": ("loss = F.mse_loss(model(x), y)", True),
    "a sum": ('loss = F.mse_loss(model(x), y, reduction="sum")', True),
    "two sums": ('out = model(x)\nloss = F.mse_loss(out, y, reduction="sum") - 0.5 * torch.sum(out.tanh())', True),
    "a sum over the size of the batch": ("out = model(x)\nloss = (out - y).pow(2).sum() / x.size(0)", True),
    "a sum and a mean": ("out = model(x)\nloss = F.mse_loss(out, y) + 0.5 * torch.sum(out.tanh())", False),
    "a weighted sum": ("loss = (model(x) - y).pow(2).sum() / 7", False),
}


def lines(text, margin):
    return "\n".join(" " * margin + line for line in text.splitlines())


def edited(path, requests):
    """The script's gradients, its text as the levers mean it, and what they say."""
    gc.collect()
    source_of.cache_clear()
    undo = levers.install(requests)
    try:
        gradients = runpy.run_path(str(path))["gradients"]
    finally:
        facts = undo()
    raw = path.read_bytes()
    for edit in sorted((edit for fact in facts for edit in fact["edits"]), key=lambda edit: (edit["begin"], edit["end"]))[::-1]:
        raw = raw[: edit["begin"]] + edit["text"].encode() + raw[edit["end"] :]
    return gradients, raw, facts


def patched(tmp_path, text, request, mark=b""):
    """The lever's words for a script, once its patch was run beside it."""
    script, changed = tmp_path / "script.py", tmp_path / "changed.py"
    script.write_bytes(mark + text.encode())
    _, raw, (fact,) = edited(script, [request])
    if fact["applied"] and fact["edits"]:
        changed.write_bytes(raw)
        for one, other in zip(runpy.run_path(str(script))["gradients"], runpy.run_path(str(changed))["gradients"]):
            assert torch.allclose(one, other, atol=1e-5), raw.decode()
    return fact, raw.decode("utf-8-sig")


FUSED = {"lever": "linear-cross-entropy", "large": 1}


@pytest.mark.parametrize("name", LOSS_OF_LOGITS)
def test_a_loss_without_all_logits_is_the_same(name, tmp_path):
    fact, text = patched(tmp_path, LANGUAGE.replace("BODY", lines(LOSS_OF_LOGITS[name], 8)), FUSED)
    assert fact["applied"] and "linear_cross_entropy(x" in text, (fact["reason"], fact["in_the_way"])


@pytest.mark.parametrize("name", NOT_WRITTEN)
def test_a_loss_that_would_be_another_is_not_written(name, tmp_path):
    body, why = NOT_WRITTEN[name]
    fact, _ = patched(tmp_path, LANGUAGE.replace("BODY", lines(body, 8)), FUSED)
    assert not fact["edits"] and any(word in fact["reason"] for word in why.split("|")), fact


@pytest.mark.parametrize("name", LOOPS)
def test_smaller_batches_are_the_same(name, tmp_path):
    body, is_sure = LOOPS[name]
    fact, text = patched(tmp_path, LOOP.replace("BODY", lines(f"{body}\n{STEP}", 4)), {"lever": "accumulate", "parts": 4})
    if is_sure:
        assert fact["edits"] and "for x, y in zip(x.chunk(4), y.chunk(4)):" in text, fact
    else:
        assert not fact["applied"] and "would be weighted otherwise" in fact["reason"], fact


def test_a_batch_in_a_dictionary_may_be_smaller_than_its_parts(tmp_path):
    body = "batch = {'x': x[:2] if len(x) == 6 else x, 'y': y[:2] if len(y) == 6 else y}\n"
    body += "loss = F.mse_loss(model(batch['x']), batch['y'])\n" + STEP
    fact, text = patched(tmp_path, LOOP.replace("BODY", lines(body, 4)), {"lever": "accumulate", "parts": 4})
    assert fact["edits"] and "dict(zip(batch, part))" in text, fact


def test_what_the_last_part_alone_would_tell_is_not_read(tmp_path):
    body = f"out = model(x)\nloss = F.mse_loss(out, y)\n{STEP}\n"
    text = LOOP.replace("BODY", lines(body + "print(out.mean())", 4))
    fact, _ = patched(tmp_path, text, {"lever": "accumulate", "parts": 4})
    assert not fact["edits"] and "`out` is read again" in fact["in_the_way"][0], fact
    # In an evaluation behind it, the same name is another value; of the loss itself a line says what it is.
    body = f"out = model(x)\nloss = F.mse_loss(out, y)\n{STEP}\nprint(loss.item())\nfor x, y in data:\n    out = model(x)\n    str(out)"
    fact, text = patched(tmp_path, LOOP.replace("BODY", lines(body, 4)), {"lever": "accumulate", "parts": 4})
    assert "# behind this loop, `loss` is that of its last part" in text, (fact["reason"], fact["in_the_way"])


LAYERS = (
    HEAD
    + """

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        layers = []
        for _ in range(3):
            layers += [nn.Linear(5, 5), nn.BatchNorm1d(5), FUNCTION, nn.Dropout(0.5)]
        self.features = nn.Sequential(*layers)
        self.head = nn.Linear(5, 2)

    def forward(self, x):
        return self.head(self.features(x))


net = Net()
for _ in range(2):
    net(torch.randn(6, 5)).square().mean().backward()
gradients = [p.grad for p in net.parameters()] + [net.eval()(torch.ones(3, 5))]
gradients += [b.float() for n, b in net.named_buffers() if "running" in n]
"""
)


@pytest.mark.parametrize("function", ["nn.ReLU(inplace=True)", "nn.ELU()", "nn.ELU(inplace=True)"])
def test_layers_in_a_row_are_computed_again_in_parts(function, tmp_path):
    text = LAYERS.replace("FUNCTION", function)
    fact, text = patched(tmp_path, text, {"lever": "checkpoint", "modules": ["features"]})
    assert fact["applied"] and "checkpoint_sequential, list(net.features), 3" in text, (fact, text)


def test_no_part_begins_with_a_function_that_changes_its_input():
    """Computed again, it would change what it has changed before; of ReLU the second time gives what the first gave."""
    of = lambda function: parts_of(nn.Sequential(nn.Linear(5, 5), nn.Tanh(), function, nn.Linear(5, 5)))  # noqa: E731
    assert of(nn.ELU(inplace=True)) is None and of(nn.ELU()) == of(nn.ReLU(inplace=True)) == 2


STEPS = {
    "by itself": ("optimizer.step()", "optimizer.zero_grad(set_to_none=True)"),
    "by a scaler": ("scaler.step(optimizer)\nscaler.update()", "optimizer.zero_grad(set_to_none=True)"),
}


@pytest.mark.parametrize("name", STEPS)
def test_gradients_are_dropped_by_whoever_has_them(name, tmp_path):
    step, line = STEPS[name]
    body = f"loss = F.mse_loss(model(x), y)\noptimizer.zero_grad()\nloss.backward()\n{step}"
    text = LOOP.replace("for x, y", 'scaler = torch.amp.GradScaler("cpu", enabled=False)\nfor x, y', 1)
    fact, text = patched(tmp_path, text.replace("BODY", lines(body, 4)), {"lever": "zero-grad"})
    assert fact["applied"] and f"{step.splitlines()[0]}\n    {line}\n" in text, (fact, text)


def test_an_optimizer_that_maximizes_is_not_written_as_another(tmp_path):
    text = LOOP.replace("torch.optim.SGD(model.parameters(), lr=0.01)", "torch.optim.AdamW(model.parameters(), maximize=True)")
    body = lines(f"loss = F.mse_loss(model(x), y)\n{STEP}", 4)
    fact, _ = patched(tmp_path, text.replace("BODY", body), {"lever": "adafactor"})
    assert not fact["edits"] and "`maximize` would be lost" in fact["in_the_way"][0], fact


def test_a_batch_that_is_fetched_before_the_backward_pass(tmp_path):
    body = "loss = F.mse_loss(model(x), y)\nx, y = x + 1, y + 1\noptimizer.zero_grad()\nloss.backward()\noptimizer.step()"
    fact, _ = patched(tmp_path, LOOP.replace("BODY", lines(body, 4)), {"lever": "accumulate", "parts": 4})
    assert not fact["edits"] and "gets another value before the backward pass" in fact["in_the_way"][0], fact


def test_several_statements_on_one_line(tmp_path):
    body = "loss = F.mse_loss(model(x), y)\noptimizer.zero_grad(); loss.backward(); optimizer.step()"
    fact, _ = patched(tmp_path, LOOP.replace("BODY", lines(body, 4)), {"lever": "accumulate", "parts": 4})
    assert "several statements stand on this line" in fact["in_the_way"][0], fact


def test_a_file_with_a_mark_in_front(tmp_path):
    body = lines(LOSS_OF_LOGITS["given back"], 8)
    fact, text = patched(tmp_path, LANGUAGE.replace("BODY", body), FUSED, mark=b"\xef\xbb\xbf")
    assert fact["edits"] and text.startswith("import torch\n"), text
