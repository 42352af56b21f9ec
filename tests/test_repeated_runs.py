"""Runs that nobody asked for by name leave nothing behind: after `fathom run` all is as one plain run leaves it."""

import json
import subprocess

import pytest
from conftest import PYTHON, SCRIPTS, sampled

IS_WARM = True

ALL = {"FATHOM_VERIFY": None, "FATHOM_WHOLE_RUN": None}  # as without our tests' own defaults
GPU = ("--gpu", "rtx3090")

START = """
import os, shutil, subprocess, sys
import torch
from torch.utils.data import DataLoader, TensorDataset
"""

TRAINS = """
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.Adam(model.parameters())
for step, (rows,) in enumerate(DataLoader(TensorDataset(torch.zeros(20 * 64, 1024)), batch_size=64)):
    model(rows.cuda()).square().mean().backward()
    optimizer.step()
    optimizer.zero_grad()
"""

# Each in its own way, before the first step and after each.
WRITES = START + """
import sqlite3
import numpy

os.mkdir("made")
with open("log.txt", "a") as log:
    log.write("started\\n")
with open("by-program.txt", "a") as log:
    subprocess.run(["sh", "-c", "echo started"], stdout=log, check=True)
base = sqlite3.connect("runs.db")
base.execute("create table if not exists runs (step)")
""" + TRAINS + """
    with open("log.txt", "a") as log:
        log.write(f"{step}\\n")
    base.execute("insert into runs values (?)", (step,))
    base.commit()
    torch.save(model.state_dict(), f"made/model-{step}.pt")
    numpy.save(f"made/rows-{step}.npy", rows.numpy())
    if os.path.exists(f"made/model-{step - 1}.pt"):
        os.remove(f"made/model-{step - 1}.pt")
    if os.path.exists("old.pt"):
        os.remove("old.pt")
"""


def everything(folder):
    """Names and contents; of a database, its rows."""

    def content(path):
        if path.suffix == ".db":
            return subprocess.run([PYTHON, "-c", READS, path], capture_output=True, text=True, check=True).stdout
        return path.read_bytes() if path.is_file() and path.suffix != ".pt" else None

    return {str(path.relative_to(folder)): content(path) for path in sorted(folder.rglob("*"))}


READS = "import sqlite3, sys; print(sqlite3.connect(sys.argv[1]).execute('select * from runs').fetchall())"


def project(folder, code):
    folder.mkdir()
    (folder / "train.py").write_text(code)
    for name in ("old.pt", "log.txt"):
        (folder / name).write_text("precious\n")
    return folder


def test_a_run_with_all_defaults_leaves_what_one_run_leaves(fathom, tmp_path):
    once, often = (project(tmp_path / name, WRITES) for name in ("once", "often"))
    fathom(PYTHON, "train.py", flags=(*GPU, "--verify", "off", "--whole", "off"), cwd=once)
    plain = everything(once)
    assert plain["log.txt"].count(b"\n") == 4 and "old.pt" not in plain and "made/model-1.pt" in plain, plain.keys()
    report, done = fathom(PYTHON, "train.py", flags=GPU, cwd=often, env=ALL)
    assert everything(often) == plain
    # The runs were made, and went through: none of them met the folder that must not be there.
    assert report["need"]["known"] == "run" and report["whole"]["came"] == "through", (report["whole"], done.stdout)


def test_without_a_gpu_named_the_cards_are_run_without_a_trace(fathom, tmp_path):
    folder = project(tmp_path / "often", WRITES)
    report, done = fathom(PYTHON, "train.py", cwd=folder, env=ALL)
    assert everything(folder)["log.txt"].count(b"\n") == 4, done.stdout
    assert report["judgement"] == "needs" and report["need"]["known"] == "run"


# Whether other values are tried, too.
DEPENDS = START + TRAINS.replace("    optimizer.zero_grad()\n", "") + """
    with open("log.txt", "a") as log:
        log.write(f"{step}\\n")
    chosen = model.weight[model.weight.grad > 0].repeat(64)
    del chosen
    optimizer.zero_grad()
"""


def test_other_values_are_tried_without_a_trace(fathom, tmp_path):
    folder = project(tmp_path / "often", DEPENDS)
    report, done = fathom(PYTHON, "train.py", flags=GPU, cwd=folder, env={"FATHOM_VERIFY": "off"})
    assert report["decisions"] and report["most"]["device_bytes"], done.stdout
    assert everything(folder)["log.txt"].count(b"\n") == 3


# What it finds, it goes on from: a second run that found the first one's checkpoint would do something else.
RESUMES = START + """
state = {"extra": 64 << 20} if os.path.exists("state.json") else {}
held = torch.empty(state.get("extra", 0), dtype=torch.uint8, device="cuda")
""" + TRAINS + """
    open("state.json", "w").write("{}")
"""


def test_a_repeated_run_does_not_find_what_the_first_one_made(fathom, tmp_path):
    folder = project(tmp_path / "often", RESUMES)
    report, _ = fathom(PYTHON, "train.py", flags=GPU, cwd=folder, env=ALL)
    taken = report["peak"]["device_bytes"]
    assert report["need"]["known"] == "run" and report["need"]["bytes"] <= taken, report["headline"]
    # Now it is there from the beginning, and remembered answers of other days do not count.
    again, _ = fathom(PYTHON, "train.py", flags=GPU, cwd=folder, env=ALL)
    assert again["need"]["bytes"] > report["need"]["bytes"] + (60 << 20), again["headline"]


# A download that the second run cannot make: then it sees what the first one brought.
DOWNLOADS = START + """
if not os.path.exists("data.bin"):
    if os.path.exists("server-is-gone"):
        raise OSError("no connection")
    os.rename("source.bin", "data.bin")
    shutil.copy("data.bin", "copy.bin")
if not os.path.exists("copy.bin"):
    raise OSError("no connection")
""" + TRAINS


def test_what_only_the_first_run_can_get_is_there_for_the_next(fathom, tmp_path):
    folder = project(tmp_path / "often", DOWNLOADS)
    (folder / "source.bin").write_bytes(b"data")
    report, done = fathom(PYTHON, "train.py", flags=GPU, cwd=folder, env=ALL)
    assert report["need"]["known"] == "run", done.stdout


# Files that are written below Python are refused, and so is what is not seen to be one's own machine.
FAILS = START + TRAINS + """
    import ctypes
    if ctypes.CDLL(None, use_errno=True).creat(b"by-c.txt", 0o644) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
"""


def test_a_run_that_cannot_be_repeated_so_says_by_what_its_need_is_known(fathom, tmp_path):
    folder = project(tmp_path / "often", FAILS)
    report, done = fathom(PYTHON, "train.py", flags=GPU, cwd=folder, env=ALL)
    assert report["need"]["known"] == "replay", done.stdout
    text = " ".join(done.stdout.split())
    assert "without writing to your files" in text and "`--verify on` runs it all the same" in text, done.stdout
    report, done = fathom(PYTHON, "train.py", flags=(*GPU, "--verify", "on"), cwd=folder, env=ALL)
    assert report["need"]["known"] == "run" and "--verify on" not in done.stdout


def test_trials_that_were_asked_for_write_nothing_where_they_can_be_confined(fathom, tmp_path):
    folder = project(tmp_path / "often", WRITES.replace("batch_size=64", "batch_size=int(sys.argv[2])"))
    before = everything(folder)
    for command in ("sweep", "fit"):
        flags = ("--memory", "60MiB") if command == "fit" else ("--vary", "batch-size=64,128", "--memory", "8GiB")
        done = fathom.command(command, *flags, "--json", "-", "--", PYTHON, "train.py", "--batch-size", "64", cwd=folder)
        answer = json.loads(done.stdout)
        assert everything(folder) == before, (command, done.stderr)
        if command == "sweep":
            assert [point["verdict"] for point in answer["points"]] == ["fits", "fits"], answer


NAMES = sorted(path.stem for path in SCRIPTS.glob("*.py"))


@pytest.mark.parametrize("name", sampled(NAMES, ["amp_transformer", "resnet_flags", "gan_two_optimizers"]))
def test_a_confined_run_gives_the_same_answer_to_the_byte(fathom, tmp_path, name):
    words = (PYTHON, SCRIPTS / f"{name}.py")
    free, _ = fathom(*words, flags=GPU, cwd=tmp_path, timeout=300)
    if free["verdict"] not in ("fits", "does_not_fit"):
        pytest.skip(f"{name} is no training: {free['headline']}")
    done = fathom.command("run", "--gpus", "rtx3090,", "--json", "-", "--", *words, cwd=tmp_path, timeout=300)
    (confined,) = json.loads(done.stdout)["rows"]
    for key in ("device_bytes", "allocated_bytes"):
        assert confined[key] == free["peak"][key], (key, done.stdout)
    assert confined["verdict"] == free["verdict"]
