"""A trial is remembered if all that it could see is known, and its answer counts while that is the same."""

import json

import pytest
from conftest import PYTHON, SCRIPTS

IS_WARM = True

# What it allocates depends on a variable, on a file that may be there, on one that may be read and on a folder.
SCRIPT = """
import os, pathlib, platform, socket, subprocess, sys
import torch

size = int(os.environ.get("WIDTH", "1")) + len(os.listdir("data"))
if os.path.exists("more.txt"):
    size += 100
try:
    size += int(pathlib.Path("option.txt").read_text())
except FileNotFoundError:
    pass
os.makedirs(f"out/{os.getpid()}")
open(f"out/{os.getpid()}/log", "w").write("a log")
if sys.argv[-1] == "program":
    subprocess.run(["true"])
if sys.argv[-1] == "library":
    platform.architecture()  # has `file` look at Python
if sys.argv[-1] == "network":
    try:
        with socket.socket() as client:
            client.setblocking(False)
            client.connect(("192.0.2.1", 9))
    except OSError:
        pass
weight = torch.zeros(size << 20, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight])
for _ in range(3):
    weight.sum().backward(); optimizer.step()
"""

MIB = 1 << 20


@pytest.fixture
def sweep(fathom, tmp_path):
    """A sweep of one value in a folder of its own: the answer, and what was allocated by how many trials that ran."""
    folder, starts = tmp_path / "project", tmp_path / "starts"
    (folder / "data").mkdir(parents=True)
    (folder / "train.py").write_text(SCRIPT)
    site = tmp_path / "site"
    site.mkdir()
    noted = f"open({str(starts)!r}, 'a').write('x')\n"
    (site / "sitecustomize.py").write_text(noted + (fathom.start["PYTHONPATH"] / "sitecustomize.py").read_text())

    def run(values="plain", *words, **env):
        before = starts.read_text() if starts.exists() else ""
        path = tmp_path / "sweep.json"
        command = ("--", PYTHON, "train.py", "x")
        env = {"FATHOM_CACHE": tmp_path / "cache", **fathom.start, "PYTHONPATH": site, **env}
        flags = ("--vary", f"n={values}", "--set", "n={}", "--memory", "16GiB", "--json", path)
        done = fathom.command("sweep", *flags, *words, *command, cwd=folder, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        answer = json.loads(path.read_text())
        if answer["trials"]["run"] == 0:
            assert starts.read_text() == before, "Python was started"
        sizes = [point["peak_allocated_bytes"] // (8 * MIB) for point in answer["points"]]
        return answer, sizes, answer["trials"]["run"]

    run.folder = folder
    return run


def test_an_answer_counts_while_all_that_was_seen_is_the_same(sweep, tmp_path):
    folder = sweep.folder
    assert sweep()[1:] == ([1], 1)
    answer, sizes, run = sweep(SHLVL="7", TERM="dumb", SSH_TTY="/dev/pts/9")  # of terminals and shells
    assert (sizes, run, answer["trials"]["remembered"]) == ([1], 0, 1)
    assert answer["wall_seconds"] < 1 and any("not compared" in note for note in answer["notes"])
    assert sweep(WIDTH="8")[1:] == ([8], 1), "a variable"
    (folder / "more.txt").write_text("")
    assert sweep()[1:] == ([101], 1), "a file that was looked for"
    (folder / "option.txt").write_text("4")
    assert sweep()[1:] == ([105], 1), "a file that could not be read"
    (folder / "data" / "new").write_text("")
    assert sweep()[1:] == ([106], 1), "a name in a folder"
    (folder / "train.py").write_text(SCRIPT.replace("100", "200"))
    assert sweep()[1:] == ([206], 1), "the script"
    for file in (tmp_path / "cache" / "trials").iterdir():
        file.write_bytes(file.read_bytes()[:-7])
    assert sweep()[1:] == ([206], 1), "what is damaged is run again"
    assert sweep()[1:] == ([206], 0) and sweep("plain", "--fresh")[1:] == ([206], 1)


def test_what_nobody_can_list_is_not_remembered(sweep):
    answer, sizes, run = sweep("plain,program,network,library")
    assert (sizes, run) == ([1, 1, 1, 1], 4)
    assert any("starts other programs (`true`)" in note for note in answer["notes"]), answer["notes"]
    assert any("connects to `192.0.2.1`" in note for note in answer["notes"]), answer["notes"]
    answer, _, run = sweep("plain,program,network,library")
    assert (run, answer["trials"]["remembered"]) == (2, 2)


def test_a_card_without_room_for_a_context_is_remembered_as_too_small(fathom, tmp_path):
    for run in (1, 0):
        words = ("--vary", "depth=1", "--memory", "200MiB", "--json", tmp_path / "sweep.json")
        command = ("--", PYTHON, SCRIPTS / "blocks_flags.py", "--depth", "1")
        done = fathom.command("sweep", *words, *command, env={"FATHOM_CACHE": tmp_path / "cache"})
        answer = json.loads((tmp_path / "sweep.json").read_text())
        assert [point["verdict"] for point in answer["points"]] == ["does_not_fit"], done.stdout
        assert bool(answer["trials"]["run"]) == bool(run)


def test_fit_remembers_its_trials_and_its_first_look(fathom, tmp_path):
    answers = []
    for _ in range(2):
        path = tmp_path / "fit.json"
        words = ("--memory", "700MiB", "--try", "checkpoint,no-foreach", "--json", path)
        command = ("--", PYTHON, SCRIPTS / "blocks_flags.py", "--depth", "8")
        done = fathom.command("fit", *words, *command, env={"FATHOM_CACHE": tmp_path / "cache"}, timeout=240)
        assert done.returncode == 0, done.stdout + done.stderr
        answers.append(json.loads(path.read_text()))
    first, second = answers
    count = first["trials"] + first["remembered"]  # a trial that is asked for twice is made once
    assert 0 < first["trials"] and (second["trials"], second["remembered"]) == (1, count - 1), "only the patch is run again"
    assert first["plans"] == second["plans"] and first["causes"] == second["causes"]
    assert f"1 run, {count - 1} remembered" in done.stdout
