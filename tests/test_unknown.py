"""What the report says where sizes depend on values that nobody knows."""

import pytest
from conftest import PYTHON, SCRIPTS

# Gradients are not known, so the mask is not.
MASK = """
import torch
layer = torch.nn.Linear(1000, 1000).cuda()
layer(torch.randn(200000, 1000, device="cuda")).square().sum().backward()
rows = torch.randn(60000, 1000, device="cuda")
kept = rows[layer.weight.grad.sum() * torch.arange(60000, device="cuda") > 0]
wide = torch.empty(len(kept), 20000, device="cuda")
print("KEPT", len(kept))
"""
LINE = 6
COUNT = MASK.replace("print(", "count = int((layer.weight.grad > 0).sum())\nlast = torch.empty(count, 1000, device='cuda')\nprint(")
# One part is what the other is not, and is counted.
PARTED = MASK.split("kept =")[0] + """
mask = layer.weight.grad.sum() * torch.arange(60000, device="cuda") > 0
rest, kept = rows[~mask], rows[mask]
wide = torch.empty(int(mask.sum()), 20000, device="cuda")
print("PARTS", len(rest), len(kept), len(wide))
"""
KERNEL = """
import torch, triton
import triton.language as tl

@triton.jit
def count(x, out, n: tl.constexpr):
    tl.store(out, tl.sum((tl.load(x + tl.arange(0, n)) > 0).to(tl.int32)))

x, out = torch.randn(1024, device="cuda"), torch.zeros(1, dtype=torch.int32, device="cuda")
count[(1,)](x, out, 1024)
rows = torch.empty(int(out), 1000, device="cuda")
"""
# Read as code of an extension would, below all functions of torch.
BELOW = KERNEL.replace("import torch, triton", "import ctypes, torch, triton").replace(
    "rows = torch.empty(int(out)",
    """number = ctypes.c_int(0)
ctypes.CDLL(None).cudaMemcpy(ctypes.byref(number), ctypes.c_void_p(out.data_ptr()), ctypes.c_size_t(4), 2)
print("READ", number.value)
rows = torch.empty(number.value""",
)
BRANCH = """
import torch
layer = torch.nn.Linear(1000, 1000).cuda()
layer(torch.randn(200000, 1000, device="cuda")).square().sum().backward()
last = torch.empty(1 << 28, device="cuda") if int((layer.weight.grad > 0).sum()) > 1000 else None
"""
# A function with a kernel for the card alone: the CPU cannot say what it reads, and no second run can.
INSIDE = """
import torch

@torch.library.custom_op("mine::kept", mutates_args=(), device_types="cuda")
def kept(x: torch.Tensor) -> torch.Tensor:
    return x.new_zeros(int((x > 0).sum()))

layer = torch.nn.Linear(1000, 1000).cuda()
layer(torch.randn(200000, 1000, device="cuda")).square().sum().backward()
rows = kept(layer.weight.grad)
"""
FAILS = MASK + "assert len(kept) == 5, 'there must be five'\n"
GIB = 1 << 30


@pytest.fixture
def run(fathom, tmp_path):
    def run(text, *flags):
        path = tmp_path / "train.py"
        path.write_text(text)
        return fathom(PYTHON, path, flags=("--gpu", "rtx3090", "--steps", "0", *flags))

    return run


def test_a_mask_gives_a_range(run):
    report, done = run(MASK)
    (decision,) = report["decisions"]
    assert (decision["operator"], decision["line"], decision["why"], decision["assumed"]) == ("__getitem__", LINE, "unknown", "least")
    assert "KEPT 0" in done.stdout and done.stdout.count("KEPT") == 1
    most = report["most"]
    assert most["fits"] and not most["is_same"] and most["device_bytes"] > report["peak"]["device_bytes"] + 4 * GIB
    head = report["headline"]
    assert head.startswith("FITS  ") and "needs between 4.00 GiB and 8.47 GiB, by what `__getitem__` at" in head


def test_the_most_does_not_fit(run):
    report, done = run(MASK, "--memory", "5GiB")
    assert done.returncode == 0 and not report["most"]["fits"] and report["most"]["device_bytes"] is None
    assert report["headline"].startswith("FITS IF  `__getitem__` at") and "not if it gives all" in report["headline"]


def test_what_the_user_says_of_a_line_counts(run):
    report, done = run(MASK, "--assume", f"train.py:{LINE}=1200")
    assert "KEPT 1200" in done.stdout and report["decisions"][0]["assumed"] == "given" and "most" not in report
    assert report["headline"].startswith("FITS IF  what `__getitem__`")
    report, _ = run(MASK, "--assume", "least")
    assert "most" not in report and report["headline"].startswith("FITS IF  what ")
    for wrong in ("train.py=3", "train.py:x=3", "train.py:3", "train.py:3=many", ":3=4"):
        _, done = run(MASK, "--assume", wrong)
        assert done.returncode == 2 and f"--assume does not understand `{wrong}`" in done.stderr and "hint: " in done.stderr


def test_a_mask_and_its_inverse_and_its_count_go_together(run):
    report, done = run(PARTED)
    assert "PARTS 60000 0 0" in done.stdout and {row["operator"] for row in report["decisions"]} == {"__getitem__"}
    assert report["most"]["fits"] and report["headline"].startswith("FITS  ") and "needs between" in report["headline"]
    report, done = run(PARTED, "--assume", "most")
    assert "PARTS 0 60000 60000" in done.stdout


def test_a_count_has_no_most(run):
    """It may be any number: that two of them fit says little."""
    report, _ = run(COUNT)
    assert report["headline"].startswith("FITS IF  what ") and len(report["decisions"]) == 2


def test_what_a_kernel_of_their_own_has_counted_is_not_known(run):
    """Before it there were zeros, which are known."""
    report, done = run(KERNEL)
    assert done.returncode == 0 and report["headline"].startswith("FITS IF  what `__int__` at"), report["headline"]


def test_what_an_extension_reads_by_itself_is_not_known(run):
    """Zeros in both tries would look as if it did not matter."""
    report, done = run(BELOW)
    assert done.returncode == 0 and report["headline"].startswith("FITS IF  what `cudaMemcpy` at"), report["headline"]
    place = f"train.py:{report['decisions'][0]['line']}"
    assert any(f"--assume {place}=NUMBER" in note for note in report["notes"]), report["notes"]
    report, done = run(BELOW, "--assume", f"{place}=700")
    assert "READ 700" in done.stdout and report["decisions"][0]["assumed"] == "given"
    assert report["headline"].startswith("FITS IF  what `cudaMemcpy` at")


def test_what_a_function_reads_inside_is_never_a_plain_answer(run):
    """It would read zero in a second run too, and look as if it did not matter."""
    report, done = run(INSIDE)
    (decision,) = report["decisions"]
    assert (decision["operator"].split(".")[0], decision["assumed"]) == ("kept", "zero") and "most" not in report
    assert report["headline"].startswith("FITS IF  what `kept") and "zero was assumed" in done.stdout


def test_a_branch_on_a_count_is_not_overlooked(run):
    """A small number and none go the same way here, and a large one does not."""
    report, _ = run(BRANCH)
    assert report["headline"].startswith("FITS IF  what `__int__`") and not report["most"]["is_same"], report["headline"]


def test_a_failure_after_unknown_values_says_so_first(run):
    report, done = run(FAILS)
    assert done.returncode == 3 and report["headline"].startswith("SCRIPT FAILED  after `__getitem__` at")
    assert "AssertionError: there must be five" in report["headline"]


def test_many_places_are_few_lines(run):
    """As where points are pruned from every parameter by the same mask."""
    again = "".join(f"kept{number} = rows[layer.weight.grad.sum() * rows[:, {number}] > 0]\n" for number in range(9))
    report, _ = run(MASK + again, "--assume", "least")
    said = [text for text in report["warnings"] if "asks for values that are not known" in text]
    assert len(report["decisions"]) == 10 and len(said) == 4
    assert "6 other places do so too: `decisions` of --json has them all" in report["warnings"]


def test_ordinary_scripts_decide_nothing(fathom):
    """Losses, accuracy, norms, checks, the best model so far, a checkpoint."""
    report, done = fathom(PYTHON, SCRIPTS / "ordinary.py", flags=("--gpu", "rtx3090", "--steps", "0", "--record", "off"))
    assert done.returncode == 0 and report["headline"].startswith("FITS  "), done.stdout
    assert report["warnings"] == [] and report["most"]["is_same"], report["warnings"]
    assert {row["operator"] for row in report["decisions"]} == {"item"}  # of whole numbers


def test_many_small_layers_take_little_of_the_host(fathom):
    code = """
import torch, resource
from torch import nn
model = nn.Sequential(*[nn.Sequential(nn.Linear(64, 64), nn.ReLU()) for _ in range(3200)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(3):
    model(torch.randn(32, 64, device="cuda")).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
print("MIB", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10)
"""
    report, done = fathom.code(code, flags=("--steps", "0"))
    (mib,) = (int(line.split()[1]) for line in done.stdout.splitlines() if line.startswith("MIB"))
    assert report["steps"] == 3 and mib < 1500, mib


def test_ours_reads_nothing_of_theirs(fathom):
    """The recorder looks at arguments: a number of classes may lie on the card."""
    code = """
import torch
from torch.nn import functional as F
indices = torch.randint(0, 9, (4, 1000)).cuda()
print("SHAPE", *F.one_hot(indices, max(indices.max() + 2, 5)).shape)
"""
    report, done = fathom.code(code, flags=("--steps", "0"))
    assert "SHAPE 4 1000 10" in done.stdout and report["decisions"] == [], done.stdout
