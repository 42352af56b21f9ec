"""Assertions about values that nobody knows: a script that goes on says itself that they hold."""

from conftest import PYTHON

IS_WARM = True

# The gradients' sum is not known. What follows from it either way would end the script.
ASSERTS = """
import torch
model = torch.nn.Linear(4096, 4096).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(6):
    model(torch.randn(8192, 4096, device="cuda")).sum().backward()
    found = model.weight.grad.sum() * torch.ones(5, device="cuda")
    assert (found >= 2).all()
    assert (found < 5).any() and (found < 7).all(), f"step {step}"
    assert not (found > 9).any(), "too many"
    assert found[0] > 100
    assert not found[0] < 100
    optimizer.step()
    optimizer.zero_grad()
"""


def test_assertions_hold_and_nothing_depends_on_them(fathom, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(ASSERTS)
    report, done = fathom(PYTHON, script, flags=("--gpu", "rtx3090"))
    assert (report["judgement"], report["decisions"], report["steps"]) == ("fits", [], 3), done.stdout + done.stderr


def test_an_assertion_of_what_is_known_fails_as_it_would(fathom, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import torch\nassert (torch.ones(5, device='cuda') > 2).all()\n")
    report, done = fathom(PYTHON, script, flags=("--gpu", "rtx3090"))
    assert report["verdict"] == "script_failed" and "AssertionError" in done.stderr


def test_other_ways_are_still_decisions(fathom, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(ASSERTS.replace("    assert found[0] > 100\n", "    if found[0] > 100:\n        print('far')\n"))
    report, done = fathom(PYTHON, script, flags=("--gpu", "rtx3090"))
    assert [row["operator"] for row in report["decisions"]] == ["__bool__"], done.stdout + done.stderr
