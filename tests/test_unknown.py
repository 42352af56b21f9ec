"""What the report says where sizes depend on values that nobody knows."""

import re

import pytest
from conftest import PYTHON, SCRIPTS

IS_WARM = True

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
# All pairs of what is kept and what is not: the most is where half is kept.
PAIRS = MASK.split("kept =")[0].replace("60000", "40000") + """
mask = layer.weight.grad.sum() * torch.arange(40000, device="cuda") > 0
kept, rest = rows[mask, :3], rows[mask == 0, :3]
pairs = torch.cdist(kept, rest)
print("PAIRS", tuple(pairs.shape))
"""
# As in densification: what is added is not known, nor what is pruned then, by the inverse of a mask.
PRUNED = MASK.split("kept =")[0] + """
added = rows[layer.weight.grad.sum() * torch.arange(60000, device="cuda") > 0]
rows = torch.cat([rows, added])
pruned = layer.weight.grad.sum() * rows[:, 0] > 0
rows = rows[~pruned]
wide = torch.empty(len(rows), 10000, device="cuda")
print("ROWS", len(rows))
"""
# A forward pass that is too dear for one number: 1 stands for it, and the script goes by it.
EXIT = """
import torch
layers = [torch.nn.Linear(2000, 2000).cuda() for _ in range(6)]
x, kept = torch.randn(20000, 2000, device="cuda"), []
for number, layer in enumerate(layers):
    x = layer(x).relu()
    kept.append(x)
    if x.softmax(-1).amax(-1).mean().item() > 0.5:
        break
print("LAYERS", number + 1)
"""
EXIT_LINE = 8
OF_TENSORS = EXIT.replace(".item()", "")
# A size that was a number with a fraction, one on the host, and what is made with such a number on the card.
SHARE = """
import torch
layer = torch.nn.Linear(1000, 1000).cuda()
layer(torch.randn(200000, 1000).cuda()).square().sum().backward()
share = (layer.weight.grad > 0).float().mean()
"""
FEW = SHARE.replace("200000", "20000")  # made in a tenth of the time
SIZED = FEW + "rows = torch.empty(int(share.item() * 60000), 1000, device='cuda')\n"
ON_HOST = FEW + "rows = torch.empty(int((share * 60000).long().cpu()), 1000, device='cuda')\n"
BY_MATH = "from math import exp\n" + FEW + "rows = torch.empty(int(exp(-share.item()) * 60000), 1000, device='cuda')\n"
BY_NUMPY = "import numpy\n" + FEW + "rows = torch.empty(100 if numpy.exp(-share.item()) > 0.5 else 9, 1000000, device='cuda')\n"
COMPARED = FEW + "x = torch.randn(2000000, device='cuda')\nrows = torch.empty(len(x[x > share.item()]), 1000, device='cuda')\n"
# As many bytes are allocated either way, and freed earlier or later.
FREED = SHARE + """
first = torch.empty(1 << 30, device="cuda")
if share.item() > 0.5:
    del first
second = torch.empty(1 << 30, device="cuda")
"""
PRINTED = FEW + """
import io, json, math, yaml
share, file = share.item(), io.BytesIO()
total = 0.5 + sum([share, 2 * share]) / 3
torch.save({"loss": share}, file)
file.seek(0)
kept = torch.load(file)["loss"]
texts = json.dumps(share), yaml.safe_dump([share]).strip(), yaml.dump({"loss": share}).strip()
print("SHARE", f"{share:.1f}", round(total, 2), type(kept).__name__, *texts, math.isfinite(share))
print("PERPLEXITY", round(math.exp(share), 2), f"{math.sqrt(math.fsum([share, share])):.2f}")
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
    assert head.startswith("FITS  ") and re.search(r"needs between 4\.\d\d GiB and 8\.47 GiB of .*, by what `__getitem__` at", head)


def test_a_mask_may_need_most_where_it_keeps_half(run):
    report, done = run(PAIRS)
    assert "PAIRS (0, 40000)" in done.stdout
    # 20,000 x 20,000 distances, each four bytes.
    assert report["most"]["device_bytes"] > 4 * 20_000 * 20_000 and not report["most"]["is_same"]
    assert "needs between" in report["headline"]


def test_places_are_said_from_the_folder_that_one_is_in(fathom, tmp_path):
    (tmp_path / "train.py").write_text(MASK)
    report, done = fathom(PYTHON, "train.py", flags=("--gpu", "rtx3090", "--steps", "0"), cwd=tmp_path)
    assert report["decisions"][0]["file"] == "train.py" and f"at train.py:{LINE}" in report["headline"], done.stdout
    assert str(tmp_path) not in done.stdout


def test_the_most_does_not_fit(run):
    report, done = run(MASK, "--memory", "5GiB")
    assert done.returncode == 0 and not report["most"]["fits"] and report["most"]["device_bytes"] is None
    assert report["headline"].startswith("DEPENDS  fits if `__getitem__` at") and "not if it gives more" in report["headline"]


def test_what_the_user_says_of_a_line_counts(run):
    report, done = run(MASK, "--assume", f"train.py:{LINE}=1200")
    assert "KEPT 1200" in done.stdout and report["decisions"][0]["assumed"] == "given" and "most" not in report
    assert report["headline"].startswith("DEPENDS  fits if what `__getitem__`")
    report, _ = run(MASK, "--assume", "least")
    assert "most" not in report and report["headline"].startswith("DEPENDS  fits if what ")
    for wrong in ("train.py=3", "train.py:x=3", "train.py:3", "train.py:3=many", ":3=4"):
        _, done = run(MASK, "--assume", wrong)
        assert done.returncode == 2 and f"--assume does not understand `{wrong}`" in done.stderr and "hint: " in done.stderr


def test_a_mask_and_its_inverse_and_its_count_go_together(run):
    report, done = run(PARTED)
    assert "PARTS 60000 0 0" in done.stdout and {row["operator"] for row in report["decisions"]} == {"__getitem__"}
    assert report["most"]["fits"] and report["headline"].startswith("FITS  ") and "needs between" in report["headline"]
    report, done = run(PARTED, "--assume", "most")
    assert "PARTS 60000 60000 60000" in done.stdout  # a bound


def test_what_is_pruned_does_not_hide_what_is_added(run):
    """All added and then all pruned would be no bound."""
    report, done = run(PRUNED)
    assert "ROWS 60000" in done.stdout and report["headline"].startswith("FITS  ") and "needs between" in report["headline"]
    report, done = run(PRUNED, "--assume", "most")
    assert "ROWS 120000" in done.stdout


@pytest.mark.parametrize("text", [EXIT, OF_TENSORS], ids=["number", "tensor"])
def test_a_way_by_a_number_that_is_not_known_is_tried_both_ways(run, text):
    """A loss is only printed; a confidence says when to stop."""
    report, done = run(text)
    (decision,) = report["decisions"]
    assert "LAYERS 1\n" in done.stdout and (decision["line"], decision["why"], decision["assumed"]) == (EXIT_LINE, "dear", "either")
    head = report["headline"]
    assert head.startswith("FITS  ") and "needs between" in head
    assert report["most"]["device_bytes"] > report["peak"]["device_bytes"] + GIB // 2
    assert "and the script goes by that: 1 stands for the number behind it" in " ".join(report["warnings"])
    report, _ = run(text, "--memory", "1GiB")
    assert report["headline"].startswith("DEPENDS  fits if what `"), report["headline"]
    report, done = run(text, "--assume", f"train.py:{EXIT_LINE}=0")
    assert "LAYERS 6" in done.stdout and report["decisions"][0]["assumed"] == "given"


@pytest.mark.parametrize("text, assumed", [(SIZED, "one"), (BY_MATH, "one"), (BY_NUMPY, "one"), (ON_HOST, "one"), (COMPARED, "least")])
def test_a_size_by_a_number_with_a_fraction_is_not_overlooked(run, text, assumed):
    report, done = run(text)
    (decision,) = report["decisions"]
    assert done.returncode == 0 and decision["assumed"] == assumed, report["decisions"]
    assert not report["most"]["is_same"] and ("DEPENDS" in report["headline"] or "needs between" in report["headline"])


# What trainings do with a loss: keep the best, stop early, give up.
TRAINS = """
import math, torch
model = torch.nn.Sequential(*[torch.nn.Linear(2000, 2000) for _ in range(6)]).cuda()
optimizer = torch.optim.AdamW(model.parameters())
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
best, bad, average = math.inf, 0, 0.0
for step in range(6):
    loss = model(torch.randn(4000, 2000, device="cuda")).square().mean()
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    average = 0.9 * average + 0.1 * loss.item()
    schedule.step(average)
    if average > 1000 * best + 10:
        raise RuntimeError(f"diverged: {average}")
    if loss.item() < best:
        best, bad = loss.item(), 0
        torch.save(model.state_dict(), "/dev/null")
    else:
        bad += 1
    if bad > 2:
        break
print("STEPS", step + 1, "perplexity", math.exp(min(loss.item(), 20)))
"""
# Classes of a model that is too dear for one number: its predictions are some of ten.
PREDICTED = """
import torch
layers = torch.nn.Sequential(*(torch.nn.Linear(2000, 2000, device="cuda") for _ in range(4)), torch.nn.Linear(2000, 10, device="cuda"))
names, table = list("abcdefghij"), torch.zeros(10, 10)
with torch.no_grad():
    found = layers(torch.randn(8000, 2000, device="cuda")).argmax(1)
for number in found.cpu().numpy()[:50]:
    table[number, number] += 1
print("NAMES", "".join(names[number] for number in found[:9].tolist()), names[int(found[0])], names[found[1].item()])
"""
# How many there are of one class is a size: from none of them to all.
ONE_CLASS = PREDICTED.split("for number")[0] + 'rows = torch.empty((found == 3).sum().item(), 250000, device="cuda")\n'
# A guard that gives up hides what comes after it.
HIDDEN = SHARE + """
if share.item() > 5:
    raise SystemExit("diverged")
if share.item() < 0.5:
    large = torch.empty(1 << 30, device="cuda")
"""


def test_tensors_that_are_made_on_the_card_by_default_are_known(run):
    """As older scripts do."""
    report, done = run("""
import torch
torch.set_default_tensor_type("torch.cuda.FloatTensor")
torch.manual_seed(0)
x = torch.arange(60000) / 60000
weight = torch.ones(1000, 1000, requires_grad=True)
(torch.rand(2000, 1000) @ weight).square().sum().backward()
print("KEPT", len(x[x >= 0.25]), f"{weight.grad.mean().item():.3f}", len(torch.zeros(9)), torch.zeros(1).device.type)
""")
    assert "KEPT 45000 1.000 9 cuda" in done.stdout and report["decisions"] == [], done.stdout


def test_an_ordinary_training_gets_a_plain_answer(run):
    """Whether a loss is the best so far, a schedule by it, early stopping, a check that it has not grown."""
    report, done = run(TRAINS)
    assert report["verdict"] == "fits" and report["headline"].startswith("FITS  "), report["headline"]
    assert "between" not in report["headline"]
    assert "STEPS 4" in done.stdout and report["warnings"] == [] and report["most"]["is_same"]
    assert any("did not move the peak" in note for note in report["notes"]), report["notes"]


def test_predictions_are_classes(run):
    """A number larger than all classes ended the run with other values, and so nothing was certain."""
    report, done = run(PREDICTED)
    assert "NAMES aaaaaaaaa a a" in done.stdout and {row["why"] for row in report["decisions"]} == {"dear"}, done.stdout
    assert report["headline"].startswith("FITS  ") and "between" not in report["headline"], report["headline"]
    assert report["most"]["is_same"] and report["warnings"] == []


def test_a_count_is_at_most_all(run):
    report, _ = run(ONE_CLASS)
    assert [row["assumed"] for row in report["decisions"]] == ["smallest"]
    assert report["headline"].startswith("FITS  ") and "needs between " in report["headline"], report["headline"]
    assert 8000 * 1_000_000 < report["most"]["device_bytes"] < 8000 * 1_000_000 + GIB
    report, _ = run(ONE_CLASS, "--memory", "4GiB")
    assert report["verdict"] == "fits_if" and report["headline"].startswith("DEPENDS  "), report["headline"]


def test_what_a_way_hides_is_tried_as_well(run):
    report, done = run(HIDDEN)
    assert done.returncode == 0 and len(report["decisions"]) == 2, done.stdout
    assert report["headline"].startswith("FITS  ") and "needs between 4.00 GiB and " in report["headline"], report["headline"]
    report, done = run(HIDDEN, "--memory", "4.1GiB")
    assert report["verdict"] == "fits_if" and report["headline"].startswith("DEPENDS  fits if what `item`"), report["headline"]


def test_what_is_freed_by_a_number_that_is_not_known_is_not_overlooked(run):
    report, _ = run(FREED)
    assert not report["most"]["is_same"] and "needs between 8.00 GiB and 12.00 GiB" in report["headline"], report["headline"]


def test_a_number_that_is_only_printed_decides_nothing(run):
    report, done = run(PRINTED)
    assert "SHARE 1.0 1.5 float 1.0 - 1.0 loss: 1.0 True" in done.stdout and report["decisions"] == [] and "most" not in report, done.stdout
    assert report["headline"].startswith("FITS  ") and "PERPLEXITY 2.72 1.41" in done.stdout


def test_a_count_has_no_most(run):
    """It may be any number: that two of them fit says little."""
    report, _ = run(COUNT)
    assert report["headline"].startswith("DEPENDS  fits if what ") and len(report["decisions"]) == 2


def test_what_a_kernel_of_their_own_has_counted_is_not_known(run):
    """Before it there were zeros, which are known."""
    report, done = run(KERNEL)
    assert done.returncode == 0 and report["headline"].startswith("DEPENDS  fits if what `__int__` at"), report["headline"]


def test_what_an_extension_reads_by_itself_is_not_known(run):
    """Zeros in both tries would look as if it did not matter."""
    report, done = run(BELOW)
    assert done.returncode == 0 and report["headline"].startswith("DEPENDS  fits if what `cudaMemcpy` at"), report["headline"]
    place = f"train.py:{report['decisions'][0]['line']}"
    assert any(f"--assume {place}=NUMBER" in note for note in report["notes"]), report["notes"]
    report, done = run(BELOW, "--assume", f"{place}=700")
    assert "READ 700" in done.stdout and report["decisions"][0]["assumed"] == "given"
    assert report["headline"].startswith("DEPENDS  fits if what `cudaMemcpy` at")


def test_what_a_function_reads_inside_is_never_a_plain_answer(run):
    """It would read zero in a second run too, and look as if it did not matter."""
    report, done = run(INSIDE)
    (decision,) = report["decisions"]
    assert (decision["operator"].split(".")[0], decision["assumed"]) == ("kept", "zero") and "most" not in report
    assert report["headline"].startswith("DEPENDS  fits if what `kept") and "zero was assumed" in done.stdout


RANKS = ("--world-size", "2", "--ranks", "all")


def test_ranks_are_tried_with_the_most_as_well(run):
    """All of them, and what they print then is dropped."""
    report, done = run(MASK, *RANKS)
    assert done.stdout.count("KEPT") == 2 and report["most"]["fits"]
    assert report["headline"].startswith("FITS  ") and "needs between 4.00 GiB and 8.47 GiB" in report["headline"], report["headline"]
    report, done = run(MASK, "--memory", "5GiB", *RANKS)
    assert report["verdict"] == "fits_if" and "not if it gives more" in report["headline"]


TOLD = """
import os, torch, torch.distributed as dist
dist.init_process_group("nccl")
torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
own = torch.ones(3, dtype=torch.long, device="cuda")
sure = torch.empty(int(own.sum()), 1000, device="cuda")
dist.all_reduce(own)
rows = torch.empty(int(own[0]), 1000, device="cuda")
print("ROWS", len(rows))
"""


def test_a_size_that_comes_of_other_ranks_is_modelled(run):
    """They are taken to give what this one does, which need not be so."""
    report, done = run(TOLD, "--world-size", "4", "--record", "off")
    assert "ROWS 4" in done.stdout and report["judgement"] == "fits", done.stdout
    (note,) = [note for note in report["notes"] if "modelled" in note]
    assert "train.py:8 gives rests on what other ranks are taken to give" in note and "train.py:6" not in note


@pytest.mark.matrix
def test_ranks_with_other_unknowns_are_judged_as_one(run):
    report, done = run(COUNT, *RANKS)
    assert report["verdict"] == "fits_if" and report["headline"].startswith("DEPENDS  fits if what `"), report["headline"]
    report, done = run(KERNEL.replace("torch.empty(int(out), 1000", "torch.empty(0 * int(out), 1000"), *RANKS)
    assert report["verdict"] == "fits" and report["most"]["is_same"], report["headline"]


def test_a_branch_on_a_count_is_not_overlooked(run):
    """A small number and none go the same way here, and a large one does not."""
    report, _ = run(BRANCH)
    assert report["headline"].startswith("DEPENDS  fits if what `__int__`") and not report["most"]["is_same"], report["headline"]


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
    # Whole numbers, whether the loss is the best so far, a norm, a matrix for NumPy: they move nothing.
    assert {row["operator"] for row in report["decisions"]} == {"item", "__bool__", "__float__", "numpy"}
    assert "did not move the peak" in " ".join(report["notes"])


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
