"""Scripts of a few lines that tests of `fathom run` share, and how their answers are read."""

import pytest

# A model of 64 MiB, three steps of it need some 300 MiB; imports nothing but torch.
TRAIN = """
import torch
model = torch.nn.Linear(4096, 4096, device="cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(50):
    model(torch.randn(8, 4096, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    print("step", step, flush=True)
"""
ONE = "import torch; torch.ones(1, device='cuda')"
# The third step is taken, then the script is stopped inside `optimizer.step()`.
STEPS = ["step 0", "step 1"]


def said(done):
    return [line for line in done.stdout.splitlines() if line.startswith("step ")]


@pytest.fixture
def train(tmp_path):
    path = tmp_path / "train.py"
    path.write_text(TRAIN)
    return path


def assert_refused(done, message, hint=""):
    """Bad input: one clear message with a hint, exit code 2, nothing on stdout."""
    assert done.returncode == 2, done
    assert message in done.stderr and f"hint: {hint}" in done.stderr, done.stderr
    assert "Traceback" not in done.stderr and "panicked" not in done.stderr and done.stdout == ""
