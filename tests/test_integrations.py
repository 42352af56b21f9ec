"""What records on the GPU that is there: `fathom.Monitor`, `fathom.on_oom`, callbacks of Trainer and Lightning.

The phantom stands for the real GPU: Fathom's own recorder is off there, and nothing else of a run is asked for.
"""

import json

import pytest
from conftest import PYTHON, ROOT

FLAGS = ("--gpu", "rtx3090", "--steps", "0", "--record", "off", "--values", "off")


def train(fathom, folder, text, *flags):
    script = folder / "train.py"
    script.write_text(text)
    env = {"PYTHONPATH": ROOT / "python", "WANDB_MODE": "disabled", "CUDA_VISIBLE_DEVICES": "0"}
    return fathom(PYTHON, script, flags=(*FLAGS, *flags), cwd=folder, env=env)


def files(folder, *beside):
    """Report and page, which hold what they should; nothing else is in the folder."""
    found = {path.name.split(".")[0] for path in folder.iterdir()}
    assert found == {"report", "page", *beside}, found
    assert (folder / "page.html").read_text().startswith("<!doctype html>")
    report = json.loads((folder / "report.json").read_text())
    assert "peak     allocated" in (folder / "report.txt").read_text() and report["schema"] == "fathom.explain/1"
    return report


def steps_of(found):
    return max(phase["step"] for phase in found["phases"] if phase["name"] == "backward")


LOOP = """
import fathom, torch
model = torch.nn.Sequential(*(torch.nn.Linear(1024, 1024) for _ in range(4))).cuda()
optimizer = torch.optim.AdamW(model.parameters())
monitor = fathom.Monitor("memory", steps=2)
monitor.start()
for _ in range(4):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
    monitor.step()
    print("step", flush=True)
    FAILS
"""


def test_the_first_steps_of_a_loop(fathom, tmp_path):
    report, done = train(fathom, tmp_path, LOOP.replace("FAILS", ""))
    assert report["verdict"] == "fits" and done.stdout.count("step\n") == 4, done.stderr
    assert done.stderr.count("fathom: wrote ") == 1
    found = files(tmp_path / "memory", "recording", "process")
    held = {row["name"]: row["bytes"] for row in found["categories"]}
    assert held["weights"] == 4 * (1024 * 1024 + 1024) * 4 and held["optimizer"] >= 2 * held["weights"]
    assert steps_of(found) == 2


def test_a_loop_that_fails_leaves_its_report(fathom, tmp_path):
    report, done = train(fathom, tmp_path, LOOP.replace("FAILS", "raise KeyError('mine')"))
    assert report["verdict"] == "script_failed" and "KeyError: 'mine'" in done.stderr
    files(tmp_path / "memory", "recording", "process")


def test_where_no_gpu_is_a_training_goes_on(tmp_path, fathom):
    import subprocess

    script = "import fathom\nfathom.Monitor('memory').start()\nprint('goes on')"
    env = {"PYTHONPATH": str(ROOT / "python"), "PATH": ""}
    done = subprocess.run([PYTHON, "-c", script], cwd=tmp_path, env=env, capture_output=True, text=True, check=False)
    assert done.returncode == 0 and done.stdout == "goes on\n" and "fathom: not recorded: " in done.stderr
    assert not list(tmp_path.iterdir())


RUNS_OUT = """
import fathom, torch
fathom.on_oom("report")
kept = [torch.ones(1 << 28, device="cuda") for _ in range(3)]
for times in range(2):
    try:
        torch.ones(1 << 30, device="cuda")
    except torch.OutOfMemoryError:
        print("caught", flush=True)
"""


def test_an_error_that_is_caught_leaves_one_report(fathom, tmp_path):
    report, done = train(fathom, tmp_path, RUNS_OUT, "--memory", "6GiB")
    assert done.stdout.count("caught\n") == 2 and report["exit_code"] in (0, 1), done.stderr
    assert done.stderr.count("fathom: out of memory on GPU 0 (4096 MiB wanted, ") == 1
    found = files(tmp_path / "report", "snapshot")
    assert found["out_of_memory"]["tried_bytes"] == 4 << 30
    assert found["peak"]["allocated_bytes"] == 3 << 30 and found["lines"][0]["file"].endswith("train.py")


TRAINER = """
import torch, transformers
from fathom.integrations.transformers import FathomCallback

class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(512, 512)
    def forward(self, x, labels=None):
        return {"loss": self.inner(x).square().mean()}

data = [{"x": torch.randn(512), "labels": 0} for _ in range(32)]
words = dict(output_dir="out", max_steps=4, per_device_train_batch_size=4, report_to="none", save_strategy="no", disable_tqdm=True)
words["gradient_accumulation_steps"] = 2
arguments = transformers.TrainingArguments(**words)
trainer = transformers.Trainer(Model(), arguments, train_dataset=data, callbacks=[FathomCallback("memory", steps=2)])
trainer.train()
print("steps", trainer.state.global_step)
"""

LIGHTNING = """
import torch, lightning
from fathom.integrations.lightning import FathomCallback

class Model(lightning.LightningModule):
    def __init__(self):
        super().__init__()
        self.inner = torch.nn.Linear(512, 512)
    def training_step(self, batch, index):
        return self.inner(batch).square().mean()
    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters())

loader = torch.utils.data.DataLoader(torch.randn(64, 512), batch_size=4)
words = dict(max_steps=4, accumulate_grad_batches=2, logger=False, enable_checkpointing=False, enable_progress_bar=False)
trainer = lightning.Trainer(accelerator="gpu", devices=1, callbacks=[FathomCallback("memory", steps=2)], **words)
trainer.fit(Model(), loader)
print("steps", trainer.global_step)
"""


@pytest.mark.parametrize("text", [TRAINER, LIGHTNING], ids=["transformers", "lightning"])
def test_callbacks_record_the_first_steps(fathom, tmp_path, text):
    report, done = train(fathom, tmp_path, text)
    assert report["verdict"] == "fits" and "steps 4\n" in done.stdout, done.stderr
    found = files(tmp_path / "memory", "recording", "process")
    held = {row["name"]: row["bytes"] for row in found["categories"]}
    assert held["weights"] == (512 * 512 + 512) * 4 and steps_of(found) == 2


def test_numbers_for_trackers():
    import sys

    sys.path.insert(0, str(ROOT / "python"))
    try:
        from fathom.integrations import trackers
    finally:
        sys.path.pop(0)
    written = []
    writer = type("Writer", (), {"add_scalar": lambda *row: written.append(row[1:]), "add_text": lambda *row: written.append(row[1:])})()
    writer.flush = lambda: None
    peak = {"allocated_bytes": 3 << 30, "reserved_bytes": 4 << 30}
    finding = {"title": "model state", "bytes": 2 << 30, "counted": True}
    report = {"peak": peak, "categories": [{"name": "weights", "bytes": 1 << 30}], "findings": [finding]}
    trackers.to_tensorboard(report, writer, 5)
    assert written[0] == ("memory/allocated_GiB", 3.0, 5) and ("memory/peak/weights_GiB", 1.0, 5) in written
    assert written[-1] == ("memory/causes", "- model state: 2.00 GiB", 5)
    trackers.to_wandb(report, "nowhere.html")  # it is not in use: nothing happens
