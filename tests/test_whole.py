"""What a training does after its first steps: a shortened one shows it, and touches nothing of the user's."""

import json
import re

import pytest
from conftest import PYTHON, sampled

IS_WARM = True

ON = {"FATHOM_WHOLE_RUN": "on"}
MIB = 1 << 20

START = """
import itertools, os, sys, torch
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset

torch.manual_seed(0)
model = nn.Sequential(nn.Linear(512, 1024), nn.ReLU(), nn.Linear(1024, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())

def train(rows):
    model.train()
    model(rows.cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()

def validate(rows=16384):
    model.eval()
    with torch.no_grad():
        return model(torch.zeros(rows, 512, device="cuda")).sum()
"""

# An epoch of 200 batches, and what follows it.
EPOCHS = """
loader = DataLoader(TensorDataset(torch.zeros(200 * 64, 512)), batch_size=64)
for epoch in range(2):
    for (rows,) in loader:
        train(rows)
"""

EVALUATES = START + EPOCHS + "    validate()\n"

# A copy of the model on the card, and of its optimizer's state, before it is saved.
SAVES = START + EPOCHS + """
    copy = {name: tensor.clone().repeat(8, *[1] * (tensor.dim() - 1)) for name, tensor in model.state_dict().items()}
    torch.save(copy, f"checkpoint-{epoch}.pt")
    del copy
"""

# Only the evaluation reads what nobody knows: which of 60,000 rows it keeps.
KEEPS = START + """
large = torch.empty(1 << 28, device="cuda")
del large
sums = []
model[0].weight.register_post_accumulate_grad_hook(lambda p: sums.append(p.grad.sum()))
""" + EPOCHS + """
    which = sums[-1] * torch.arange(60000, device="cuda") > 0
    rows = torch.arange(60000, device="cuda")[which]
    wide = torch.empty(len(rows), 20000, device="cuda")
    print("KEPT", len(rows))
    del wide
"""
# What it finds is printed alone.
COUNTS = KEEPS.replace("wide = torch.empty(len(rows), 20000", "wide = torch.empty(10, 20000")

KEPT_LINE = next(number for number, line in enumerate(KEEPS.split("\n"), 1) if "[which]" in line)

EVERY_50 = START + """
loader = DataLoader(TensorDataset(torch.zeros(70 * 64, 512)), batch_size=64)
for step, (rows,) in enumerate(loader):
    train(rows)
    if step % 50 == 49:
        validate()
"""

ITERTOOLS = START + """
for step in itertools.count():
    train(torch.zeros(64, 512))
    if step % 50 == 49:
        validate()
    if step == 105:
        break
"""

# The long batch is the first: then the optimizer has no state yet.
LENGTHS = START + """
class Rows(Dataset):
    def __len__(self):
        return 24

    def __getitem__(self, index):
        return torch.zeros(8192 if index == 0 else 64 + index, 512)

loader = DataLoader(Rows(), batch_size=None)
for epoch in range(3):
    for rows in loader:
        train(rows)
"""

TRAINER = """
import sys, torch
from torch.utils.data import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainingArguments

class Tokens(Dataset):
    def __len__(self):
        return 240

    def __getitem__(self, index):
        ids = torch.arange(64) % 100
        return {"input_ids": ids, "labels": ids}

config = GPT2Config(n_layer=2, n_embd=64, n_head=2, vocab_size=20000, n_positions=64)
arguments = TrainingArguments(
    output_dir=sys.argv[1], num_train_epochs=2, per_device_train_batch_size=4, per_device_eval_batch_size=32,
    eval_strategy="steps", eval_steps=30, save_strategy="steps", save_steps=30, report_to="none", disable_tqdm=True,
    prediction_loss_only=True, seed=0,
)
Trainer(model=GPT2LMHeadModel(config), args=arguments, train_dataset=Tokens(), eval_dataset=Tokens()).train()
"""

LIGHTNING = """
import sys, torch
import lightning as L
from torch.utils.data import DataLoader, TensorDataset

class Module(L.LightningModule):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(512, 2048)

    def training_step(self, batch, index):
        return self.layer(batch[0]).square().mean()

    def validation_step(self, batch, index):
        return self.layer(batch[0].repeat(256, 1)).sum()

    def configure_optimizers(self):
        return torch.optim.Adam(self.parameters())

data = DataLoader(TensorDataset(torch.zeros(60 * 64, 512)), batch_size=64)
trainer = L.Trainer(
    accelerator="gpu", devices=1, max_epochs=2, limit_val_batches=3, num_sanity_val_steps=0, logger=False,
    enable_progress_bar=False, default_root_dir=sys.argv[1],
)
trainer.fit(Module(), data, data)
"""

CASES = {
    "evaluates": (EVALUATES, "evaluation"), "saves": (SAVES, "forward"), "every 50": (EVERY_50, "evaluation"),
    "itertools": (ITERTOOLS, "evaluation"), "lengths": (LENGTHS, "backward"), "trainer": (TRAINER, "evaluation"),
    "lightning": (LIGHTNING, "evaluation"),
}  # fmt: skip


def peaks(rows):
    most = {}
    for row in rows:
        most[row["name"]] = max(most.get(row["name"], 0), row["peak_allocated_bytes"])
    return most


def written(tmp_path, code):
    path = tmp_path / "train.py"
    path.write_text(code)
    return PYTHON, path, tmp_path / "output"


# `every 50` is as `itertools`, with a loader.
@pytest.mark.parametrize("name", sampled(CASES, ["evaluates", "saves", "itertools", "lengths", "trainer", "lightning"]))
def test_each_phase_peaks_as_in_the_whole_training(fathom, tmp_path, name):
    code, peak = CASES[name]
    words = written(tmp_path, code)
    flags = ("--gpu", "rtx3090")
    report, done = fathom(*words, flags=flags, env=ON, cwd=tmp_path, timeout=300)
    assert [path.name for path in tmp_path.rglob("*") if path.is_file()] == ["train.py"], "three steps save nothing"
    whole = report["whole"]
    assert whole["came"] == "through" and whole["is_reported"], (whole, done.stdout, done.stderr)
    complete, other = fathom(*words, flags=(*flags, "--steps", "0"), cwd=tmp_path)
    assert complete["verdict"] == "fits" and "whole" not in complete, other.stderr
    expected, found = peaks(complete["phases"]), peaks(whole["phases"])
    if not whole["has_ended"]:
        expected.pop("after_training", None)
    assert found == expected, done.stdout
    assert report["peak"]["allocated_bytes"] == complete["peak"]["allocated_bytes"]
    assert report["peak"]["phase"] == complete["peak"]["phase"] == peak.replace("_", " "), report["peak"]
    assert re.match("FITS  NVIDIA GeForce RTX 3090: needs ", report["headline"])
    assert re.search(r"^whole\s+shortened training, ", done.stdout, re.M), done.stdout


# Whatever a script may do to files, each in its own way; what is refused is an error of the system.
DESTROYS = START + EPOCHS + """
import ctypes, numpy, pathlib, shutil, subprocess
from safetensors.torch import save_file

c = ctypes.CDLL(None, use_errno=True)

def written_in_c():
    file = c.open(b"c-written", os.O_WRONLY | os.O_TRUNC)
    if file >= 0:
        c.write(file, b"gone", 4)

def by_folder():
    folder = os.open(".", os.O_RDONLY)
    os.unlink("by-folder", dir_fd=folder)

for change in (
    lambda: open("opened", "w").write("gone"), lambda: open("appended", "a").write("gone"),
    lambda: open("updated", "r+").write("gone"), lambda: pathlib.Path("path").write_text("gone"),
    lambda: torch.save(model.state_dict(), "saved.pt"), lambda: save_file({"a": torch.zeros(2)}, "saved.safetensors"),
    lambda: numpy.save("saved.npy", numpy.zeros(2)), lambda: shutil.rmtree("folder"), lambda: os.remove("removed"),
    lambda: os.rename("renamed", "elsewhere"), lambda: os.replace("source", "target"), lambda: os.truncate("truncated", 1),
    lambda: os.system("rm -f by-shell; touch by-shell-new"), lambda: subprocess.run(["rm", "-f", "by-program"], check=True),
    lambda: subprocess.run("echo gone > by-subshell", shell=True), written_in_c, lambda: c.unlink(b"c-removed"),
    lambda: c.rename(b"c-renamed", b"c-other"), lambda: c.truncate(b"c-truncated", 0), by_folder, lambda: os.mkdir("new"),
    lambda: pathlib.Path("unlinked").unlink(), lambda: os.rmdir("empty"), lambda: os.symlink("opened", "link"),
    lambda: os.link("opened", "hard"), lambda: c.system(b"rm -rf c-folder"), lambda: os.chmod("moded", 0),
):
    try:
        change()
    except OSError:
        pass
    model.train()
train(torch.zeros(64, 512))
"""

FILES = ["opened", "appended", "updated", "path", "saved.pt", "saved.safetensors", "saved.npy", "folder/inner", "removed", "renamed"]
FILES += ["source", "target", "truncated", "by-shell", "by-program", "by-subshell", "c-written", "c-removed", "c-renamed", "moded"]
FILES += ["c-truncated", "by-folder", "unlinked", "c-folder/inner"]


def everything(folder):
    return {
        str(path.relative_to(folder)): (path.stat().st_mode, path.read_bytes() if path.is_file() else None)
        for path in sorted(folder.rglob("*"))
    }


def test_nothing_of_the_users_is_changed(fathom, tmp_path):
    words = written(tmp_path, DESTROYS)
    for name in FILES:
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(f"precious {name}")
    (tmp_path / "empty").mkdir()
    before = everything(tmp_path)
    report, done = fathom(*words, flags=("--gpu", "rtx3090"), env=ON, cwd=tmp_path)
    assert everything(tmp_path) == before
    whole = report["whole"]
    assert whole["came"] == "through" and whole["has_ended"], (whole, done.stderr)
    assert "saving" in peaks(whole["phases"]) and any("rm" in what for what in whole["refused"])
    # Without the shortened form it does all of it.
    fathom(*words, flags=("--gpu", "rtx3090", "--steps", "0"), cwd=tmp_path)
    after = everything(tmp_path)
    assert all(after.get(name) != before[name] for name in FILES if name != "source" or name in after)


# Written by the short run, found again by it: the last checkpoint is looked for, read and removed.
RETURNS = START + EPOCHS + """
    folder = f"checkpoints/epoch-{epoch}"
    os.makedirs(folder, exist_ok=True)
    torch.save(model.state_dict(), folder + "/draft.pt")
    os.replace(folder + "/draft.pt", folder + "/model.pt")
    with open("checkpoints/log.txt", "a") as log:
        log.write(f"{epoch}\\n")
    assert sorted(os.listdir("checkpoints")) == sorted([f"epoch-{epoch}", "log.txt", "mine.txt"]), os.listdir("checkpoints")
    model.load_state_dict(torch.load(folder + "/model.pt"))
    assert open("checkpoints/log.txt").read() == "before\\n" + "".join(f"{each}\\n" for each in range(epoch + 1))
    import shutil
    shutil.rmtree(folder)
    assert not os.path.exists(folder)
validate()
"""


def test_a_script_finds_what_it_wrote(fathom, tmp_path):
    words = written(tmp_path, RETURNS)
    (tmp_path / "checkpoints").mkdir()
    (tmp_path / "checkpoints" / "log.txt").write_text("before\n")
    (tmp_path / "checkpoints" / "mine.txt").write_text("mine")
    before = everything(tmp_path)
    report, done = fathom(*words, flags=("--gpu", "rtx3090"), env=ON, cwd=tmp_path)
    assert report["whole"]["came"] == "through" and report["whole"]["has_ended"], (report["whole"], done.stderr)
    assert everything(tmp_path) == before


def test_what_an_evaluation_reads_that_nobody_knows_counts(fathom, tmp_path):
    """The plain run did not come to it, and with the least the evaluation needs less than that run."""
    words = written(tmp_path, KEEPS)
    report, _ = fathom(*words, flags=("--gpu", "rtx3090"), env=ON, cwd=tmp_path, timeout=300)
    assert [row["line"] for row in report["decisions"]] == [KEPT_LINE]
    assert report["most"]["device_bytes"] > 60000 * 80000
    head = report["headline"]
    assert re.search(r"^FITS  .*needs between 1.27 GiB and 5.74 GiB of .*, by what `__getitem__` at", head), head
    report, _ = fathom(*words, flags=("--memory", "3GiB"), env=ON, cwd=tmp_path, timeout=300)
    assert report["headline"].startswith("DEPENDS  ") and report["verdict"] == "fits_if", report["headline"]


def test_what_an_evaluation_prints_moves_nothing(fathom, tmp_path):
    report, _ = fathom(*written(tmp_path, COUNTS), flags=("--gpu", "rtx3090"), env=ON, cwd=tmp_path, timeout=300)
    assert report["most"]["fits"] and "between" not in report["headline"], report["headline"]
    assert report["headline"].startswith("FITS  ") and report["decisions"] != []


def test_a_short_run_that_fails_leaves_the_plain_answer(fathom, tmp_path):
    words = written(tmp_path, START + EPOCHS + "    raise ValueError('after the epoch')\n")
    plain, _ = fathom(*words, flags=("--gpu", "rtx3090"))
    report, done = fathom(*words, flags=("--gpu", "rtx3090"), env=ON)
    assert (report["headline"], report["peak"]) == (plain["headline"], plain["peak"])
    whole = report["whole"]
    assert whole["came"] == "failed" and "after the epoch" in whole["why"] and not whole["is_reported"]
    assert whole["unseen"] == ["evaluation", "saving", "after_training"]
    assert "the shortened training failed after" in done.stdout and "not seen: evaluation, saving" in done.stdout


def test_what_runs_out_in_evaluation_does_not_fit(fathom, tmp_path):
    words = written(tmp_path, EVALUATES)
    report, done = fathom(*words, flags=("--gpu", "rtx3090", "--memory", "420MiB"), env={**ON, "FATHOM_VERIFY": "on"})
    assert (report["verdict"], done.returncode, report["whole"]["came"]) == ("does_not_fit", 1, "ran_out"), done.stdout
    where = r"ran out of memory in evaluation, after step \d+ of the shortened training"
    assert re.search(where, report["headline"]), report["headline"]
    assert report["beyond"]["need"]["bytes"] > 420 * MIB


def test_the_need_is_that_of_the_whole_training(fathom, tmp_path):
    words = written(tmp_path, EVALUATES)
    report, _ = fathom(*words, flags=("--gpu", "rtx3090"), env={**ON, "FATHOM_VERIFY": "on"})
    need = report["need"]
    assert need["known"] == "run", need
    for size, verdict in ((need["bytes"], "fits"), (need["bytes"] * 97 // 100, "does_not_fit")):
        found, _ = fathom(*words, flags=("--gpu", "rtx3090", "--memory", f"{size}B", "--steps", "0"))
        assert found["verdict"] == verdict


def test_sizes_that_vary_are_named(fathom, tmp_path):
    report, done = fathom(*written(tmp_path, LENGTHS), flags=("--gpu", "rtx3090"), env=ON)
    batches = report["whole"]["batches"][0]
    assert (batches["varies"], batches["smallest"], batches["largest"]) == ("batch", [65, 512], [8192, 512])
    assert batches["was_largest_run"]
    assert "batches vary: `batch` 65 × 512 to 8192 × 512" in " ".join(done.stdout.split()), done.stdout


# One long row in a thousand, far behind the batches that are looked at whole.
RARE = START + """
class Rows(Dataset):
    def __len__(self):
        return 4000

    def __getitem__(self, index):
        return {"ids": [0] * (4096 if index == 2500 else 30 + index % 7)}

def padded(rows):
    longest = max(len(row["ids"]) for row in rows)
    return torch.zeros(len(rows) * longest, 512)

for rows in DataLoader(Rows(), batch_size=4, shuffle=True, num_workers=WORKERS, collate_fn=padded):
    train(rows)
"""


@pytest.mark.parametrize("workers", sampled([0, 2], [0]))
def test_a_rare_long_row_is_found(fathom, tmp_path, workers):
    words = written(tmp_path, RARE.replace("WORKERS", str(workers)))
    report, done = fathom(*words, flags=("--gpu", "rtx3090"), env=ON, timeout=300)
    batches = report["whole"]["batches"][0]
    assert batches["largest"] == [4 * 4096, 512] and batches["was_largest_run"], (batches, done.stderr)
    assert batches["looked_at"] == 1000 and "vary in size" not in report["headline"], report["headline"]
    # What follows from it: two hidden layers of that many rows are alive at once, beside the state.
    assert report["peak"]["allocated_bytes"] > 2 * 4 * 4096 * 1024 * 4, done.stdout


# A trainer that reads one batch ahead, of slow steps: an epoch has two, and the second is read before the first has trained.
AHEAD = START + """
class Rows(Dataset):
    def __len__(self):
        return 400

    def __getitem__(self, index):
        return torch.zeros(8192 if index == 300 else 64 + index % 7, 512)

def ahead(loader):
    batches = iter(loader)
    now = next(batches)
    for following in batches:
        yield now
        now = following
    yield now

for rows in ahead(DataLoader(Rows(), batch_size=None)):
    train(rows)
    __import__("time").sleep(2)
"""


def test_the_largest_batch_is_run_where_batches_are_read_ahead(fathom, tmp_path):
    report, done = fathom(*written(tmp_path, AHEAD), flags=("--gpu", "rtx3090"), env=ON, timeout=300)
    batches = report["whole"]["batches"][0]
    assert (batches["largest"], batches["was_largest_run"], batches["given"]) == ([8192, 512], True, 2), (batches, done.stderr)
    assert report["peak"]["allocated_bytes"] > 8192 * 1024 * 4, done.stdout


def test_a_largest_batch_that_was_not_run_is_said_in_the_first_line(fathom, tmp_path):
    # The script leaves each pass before its end.
    passes = "for epoch in range(60):\n    for rows, _ in zip(DataLoader(Rows(), batch_size=None), range(2)):\n        train(rows)\n"
    code = AHEAD.split("for rows in ahead")[0] + passes
    report, _ = fathom(*written(tmp_path, code), flags=("--gpu", "rtx3090"), env=ON, timeout=300)
    assert not report["whole"]["batches"][0]["was_largest_run"]
    assert "; batches vary in size, the largest was not run" in report["headline"], report["headline"]


# Each item takes its time: not all of them can be looked at.
SLOW = RARE.replace("return {", "__import__('time').sleep(0.05)\n        return {").replace("WORKERS", "0").replace("4000", "400000")


def test_sizes_that_were_not_looked_at_are_said_in_the_first_line(fathom, tmp_path):
    report, _ = fathom(*written(tmp_path, SLOW), flags=("--gpu", "rtx3090"), env=ON, timeout=300)
    batches = report["whole"]["batches"][0]
    assert batches["looked_at"] < batches["count"] == 100000
    assert f"; batches vary in size, {batches['looked_at']} of 100000 looked at" in report["headline"], report["headline"]


# What a batch takes depends on the one before it: the order decides.
ORDERS = START + """
class Rows(Dataset):
    def __len__(self):
        return 60

    def __getitem__(self, index):
        return torch.zeros(4096 if index in (50, 55) else 64 + index, 512)

before = None
for rows in DataLoader(Rows(), batch_size=None):
    rows = rows.cuda()
    train(rows)
    before = rows.repeat(4, 1)
"""


def test_orders_of_batches_give_a_band(fathom, tmp_path):
    words = written(tmp_path, ORDERS)
    flags = ("--gpu", "rtx3090", "--batch-order", "shuffle")
    report, done = fathom(*words, flags=flags, env=ON, cwd=tmp_path)
    orders = report["whole"]["orders"]
    found = sorted(row["peak_allocated_bytes"] for row in orders)
    assert len(orders) == 5 and found[0] < found[-1], orders
    largest = max(orders, key=lambda row: row["peak_allocated_bytes"])
    assert largest["largest_batch"] == [4096, 512], largest
    text = " ".join(done.stdout.split())
    assert re.search(r"5 orders of batches: peaks of .* to .*, median .*; the largest in step \d+, batch 4096 × 512", text), text
    # The answer is that of the worst order.
    assert report["peak"]["device_bytes"] >= max(row["device_bytes"] for row in orders)
    again, _ = fathom(*words, flags=flags, env=ON, cwd=tmp_path)
    assert again["whole"]["orders"] == orders, "seeds make it the same in every run"
    assert "orders" not in fathom(*words, flags=flags[:2], env=ON, cwd=tmp_path)[0]["whole"]


# The evaluation comes after the last of many epochs, or after steps of which most are left out; or not at all.
LAST = EVALUATES.replace("range(2)", "range(14)").replace("    validate()", "validate()")
RARELY = START + """
for step in range(1 << 40):
    train(torch.zeros(64, 512))
    if step % PERIOD == PERIOD - 1:
        validate()
"""
# Neither a mode that was not asked for nor a function that only names itself will come.
UNUSED = START + """
def look_on():
    look_on()
    model.eval()

def main():
    if len(sys.argv) > 7:
        validate()
        return
    if len(sys.argv) < 7:
        for step in range(1 << 40):
            train(torch.zeros(64, 512))
    else:
        validate()

main()
"""


def test_an_evaluation_that_the_text_promises_is_waited_for(fathom, tmp_path):
    for code in (LAST, RARELY.replace("PERIOD", "200")):
        report, done = fathom(*written(tmp_path, code), flags=("--gpu", "rtx3090"), env=ON, timeout=300)
        assert report["judgement"] == "fits" and report["peak"]["phase"] == "evaluation", done.stdout
        assert report["whole"]["unreached"] == []


def test_an_evaluation_that_was_not_reached_is_said_in_the_first_line(fathom, tmp_path):
    path = tmp_path / "train.py"
    code = RARELY.replace("PERIOD", str(1 << 30))
    line = next(number for number, text in enumerate(code.split("\n"), 1) if "model.eval()" in text)
    report, done = fathom(*written(tmp_path, code), flags=("--gpu", "rtx3090", "--strict"), env=ON, cwd=tmp_path, timeout=300)
    assert (report["judgement"], done.returncode) == ("depends", 1), report["headline"]
    assert report["headline"].startswith("DEPENDS") and f"; the evaluation at {path.name}:{line} was not reached" in report["headline"]
    assert report["whole"]["unreached"] == [f"train.py:{line}"]


def test_what_will_not_be_run_is_not_waited_for(fathom, tmp_path):
    report, _ = fathom(*written(tmp_path, UNUSED), flags=("--gpu", "rtx3090"), env=ON, timeout=300)
    assert (report["judgement"], report["whole"]["unreached"]) == ("fits", []), report["headline"]


# Every batch leaves its answers on the card: a few batches do not show what all of them take.
GATHERS = START + EPOCHS + """
    model.eval()
    with torch.no_grad():
        answers = [model(rows.cuda()) for (rows,) in DataLoader(TensorDataset(torch.zeros(2000 * 64, 512)), batch_size=64)]
"""


def test_an_evaluation_that_keeps_every_batch_is_not_said_to_fit(fathom, tmp_path):
    words = written(tmp_path, GATHERS)
    report, done = fathom(*words, flags=("--gpu", "rtx3090", "--memory", "500MiB"), env=ON)
    each = 64 * 512 * 4
    assert report["whole"]["unseen_bytes"] == (2000 - 4) * each, done.stdout
    assert report["judgement"] == "depends" and "would take at least 249.5 MiB more" in report["headline"], report["headline"]


# As many trainings have it: gradients are off for the call of the model alone, and what is kept is joined in the end.
SWITCHES = START + EPOCHS + """
    model.eval()
    answers = []
    for (rows,) in DataLoader(TensorDataset(torch.zeros(2000 * 64, 512)), batch_size=64):
        with torch.no_grad():
            answers.append(model(rows.cuda()))
    answers = torch.cat(answers)
"""


def test_what_runs_nothing_backward_is_an_evaluation(fathom, tmp_path):
    words = written(tmp_path, SWITCHES)
    each = 64 * 512 * 4
    report, done = fathom(*words, flags=("--gpu", "rtx3090", "--memory", "700MiB"), env=ON)
    training, evaluation = report["whole"]["batches"][:2]
    assert (training["is_evaluation"], evaluation["is_evaluation"], evaluation["grows_bytes"]) == (False, True, each), done.stdout
    # All that is kept would fit, and twice as much would not: it does not, run to its end.
    assert report["judgement"] == "depends" and "at least" in report["headline"], report["headline"]
    complete, _ = fathom(*words, flags=("--gpu", "rtx3090", "--memory", "700MiB", "--steps", "0"), cwd=tmp_path)
    assert complete["verdict"] == "does_not_fit"


# The trainer's own way: without `eval_accumulation_steps` all that the model says of the evaluation's rows stays on the card.
PREDICTS = TRAINER.replace("prediction_loss_only=True,", "").replace(
    "train_dataset=Tokens(),", "compute_metrics=lambda all: {'number': len(all.predictions)}, train_dataset=Tokens(),"
)


def test_predictions_that_a_trainer_keeps_are_counted(fathom, tmp_path):
    words = written(tmp_path, PREDICTS.replace("return 240", "return 24000"))
    report, done = fathom(*words, flags=("--gpu", "rtx3090"), env=ON, cwd=tmp_path, timeout=300)
    evaluation = next(row for row in report["whole"]["batches"] if row["is_evaluation"])
    # Losses come and go beside the scores of 32 texts.
    assert evaluation["grows_bytes"] >= 32 * 63 * 20000 * 4, done.stdout
    assert report["judgement"] == "depends" and "an evaluation of all its batches" in report["headline"], report["headline"]


# A list that nobody empties: the first steps say nothing of the last ones.
KEEPS_EACH = START + """
loader = DataLoader(TensorDataset(torch.zeros(3000 * 64, 512)), batch_size=64)
kept = []
for (rows,) in loader:
    train(rows)
    kept.append(torch.zeros(1 << 20, dtype=torch.uint8, device="cuda"))
"""
# What is kept of each step is a number, or only of the last steps.
KEEPS_NUMBERS = KEEPS_EACH.replace("torch.zeros(1 << 20, dtype=torch.uint8", "torch.zeros(1")
KEEPS_SOME = KEEPS_EACH.replace("kept = []", "from collections import deque\nkept = deque(maxlen=20)")


def test_a_training_that_keeps_something_of_each_step_is_not_said_to_fit(fathom, tmp_path):
    words, flags = written(tmp_path, KEEPS_EACH), ("--gpu", "rtx3090", "--memory", "2GiB")
    report, done = fathom(*words, flags=flags, env=ON)
    assert (report["judgement"], report["verdict"]) == ("depends", "fits_if"), done.stdout
    assert report["growth_bytes_per_step"] == 1 << 20
    full = report["full_after_steps"]
    assert f"; every step keeps 1.0 MiB more: full after {full:,} steps" in report["headline"], report["headline"]
    complete, _ = fathom(*words, flags=(*flags, "--steps", "0", "--record", "off"), cwd=tmp_path)
    assert complete["verdict"] == "does_not_fit" and abs(complete["out_of_memory"]["step"] - full) <= full // 50
    # Without a GPU it is said too, and with `--strict` it is no success.
    assert "; every step keeps 1.0 MiB more" in fathom(*words, env=ON)[0]["headline"]
    assert fathom(*words, flags=(*flags, "--strict"), env=ON)[1].returncode == 1


@pytest.mark.parametrize("code", [KEEPS_NUMBERS, KEEPS_SOME], ids=["numbers", "the last"])
def test_what_does_not_fill_the_card_is_no_growth(fathom, tmp_path, code):
    report, _ = fathom(*written(tmp_path, code), flags=("--gpu", "rtx3090", "--memory", "2GiB"), env=ON)
    assert report["judgement"] == "fits" and "keeps" not in report["headline"], report["headline"]


def test_what_saw_all_of_it_is_not_run_again(fathom, tmp_path):
    three = START + "for _ in range(2):\n    train(torch.zeros(64, 512))\n"
    assert "whole" not in fathom(*written(tmp_path, three), flags=("--gpu", "rtx3090"), env=ON)[0]
    for flags in (("--whole", "off"), ("--steps", "0"), ("--record", "off")):
        report, _ = fathom(*written(tmp_path, EVERY_50), flags=("--gpu", "rtx3090", *flags), env=ON)
        assert "whole" not in report, flags


DISTRIBUTED = (
    "import torch.distributed as dist\n"
    + START.replace("torch.manual_seed(0)", 'dist.init_process_group("nccl")\ntorch.manual_seed(0)')
    + EPOCHS
    + "    validate()\n    torch.save(model.state_dict(), 'checkpoint.pt')\ndist.destroy_process_group()\n"
)


def test_commands_of_other_kinds_are_shortened_too(fathom, tmp_path):
    shell = ("sh", "-c", '"$0" train.py', PYTHON)
    torchrun = (PYTHON.parent / "torchrun", "--standalone", "--nproc-per-node", "1", "train.py")
    for start, code, verify in ((shell, EVALUATES, "confined"), (torchrun, DISTRIBUTED, "off")):
        (tmp_path / "train.py").write_text(code)
        report, done = fathom(*start, flags=("--gpu", "rtx3090"), env={**ON, "FATHOM_VERIFY": verify}, cwd=tmp_path)
        whole = report["whole"]
        assert (whole["came"], whole["has_ended"]) == ("through", True), (whole, done.stdout)
        assert verify == "off" or report["need"]["known"] == "run", done.stdout
        assert "evaluation" in peaks(whole["phases"])
        assert [path.name for path in tmp_path.iterdir()] == ["train.py"]


def test_what_is_kept_is_of_the_run_that_is_reported(fathom, tmp_path):
    words = written(tmp_path, EVALUATES)
    out, page = tmp_path / "out", tmp_path / "page.html"
    report, _ = fathom(*words, flags=("--gpu", "rtx3090", "--out", out, "--page", page), env=ON)
    (recording,) = out.glob("recording.*.fathom")
    done = fathom.command("explain", recording, "--json", tmp_path / "explained.json")
    explained = json.loads((tmp_path / "explained.json").read_text())
    assert explained["phases"] == report["phases"], done.stderr
    assert page.stat().st_size > 10_000 and json.loads((out / "report.json").read_text()) == report
