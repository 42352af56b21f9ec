"""What commands write: nothing is mixed into it, nothing of it is lost, and no name of a stranger acts in it."""

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import FATHOM, PYTHON, ROOT, SCRIPTS, environment

SNAPSHOT = ROOT / "tests" / "recorded" / "kdr2-t2-None_fwd-eager_bwd.pickle"

# A module whose name would end its line, clear the screen and set an output of a GitHub job; a file of such a name.
HOSTILE = """
import torch
from torch import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        for name in ["a\\n::set-output name=x::y", "\\x1b[2Jb", "::error::c", "d\\rFITS"]:
            self.add_module(name, nn.Linear(512, 512))

    def forward(self, x):
        for module in self.children():
            x = module(x)
        return x

net = Net().cuda()
optimizer = torch.optim.SGD(net.parameters(), lr=0.1)
for step in range(2):
    print("the script prints")
    net(torch.zeros(512, 512, device="cuda")).sum().backward()
    optimizer.step()
raise RuntimeError("first\\n::warning::second \\x1b]0;title\\x07")
"""


def lines_that_act(text):
    """Lines that a runner of GitHub would obey (it skips blanks first), and characters that a terminal would."""
    act = [line for line in text.splitlines() if line.lstrip().startswith("::")]
    return act + [char for char in text if char in "\x1b\r\x07\x9b"]


@pytest.fixture(scope="module")
def hostile(fathom, tmp_path_factory):
    """One run of a script whose names are hostile, every output written, one of them to a full disk."""
    folder = tmp_path_factory.mktemp("hostile")
    script = folder / "tr\nain.py"
    script.write_text(HOSTILE)
    words = ("--json", "-", "--markdown", folder / "m.md", "--junit", folder / "j.xml", "--page", "/dev/full")
    done = fathom.command("run", "--all", "--steps", "0", "--out", folder / "out", *words, "--", PYTHON, script)
    return folder, done


def test_the_answer_is_alone_on_the_standard_output(hostile):
    _, done = hostile
    report = json.loads(done.stdout)
    assert any(row["path"] == "a\n::set-output name=x::y" for row in report["modules"]), "names are as they are"
    assert done.stderr.count("the script prints\n") == 2


def test_an_output_that_cannot_be_written_keeps_no_other_back(hostile):
    folder, done = hostile
    assert done.returncode == 2 and "cannot write `/dev/full`" in done.stderr
    assert "GPU memory" in (folder / "m.md").read_text() and "<testsuites" in (folder / "j.xml").read_text()
    assert json.loads((folder / "out" / "report.json").read_text())["verdict"] == "script_failed"


def test_names_of_strangers_do_nothing(hostile, fathom):
    folder, _ = hostile
    (recording,) = (folder / "out").glob("recording.*")
    weird = recording.rename(recording.with_name("re\n::notice::cording.0.fathom"))
    shown = [
        fathom.command("explain", "--all", weird),
        fathom.command("diff", "--all", weird, folder / "out"),
        fathom.command("replay", weird),
        fathom.command("page", weird, "-o", folder / "\x1b[2J\n::x.html"),
        fathom.command("explain", folder / "none\n::error::x"),
        fathom.command("run", "--", folder / "none\n::error::x"),
    ]
    assert [done.returncode for done in shown] == [0, 0, 0, 0, 2, 2], [done.stderr for done in shown]
    for done in shown:
        assert not lines_that_act(done.stdout + done.stderr), done.args
    assert "a\\n::set-output name=x::y" in shown[0].stdout, "it is shown, in its line"
    assert not lines_that_act((folder / "m.md").read_text())


@pytest.mark.parametrize("command", ["run", "fit", "sweep", "check", "explain", "diff", "replay"])
def test_a_folder_that_is_not_there_is_found_before_anything_runs(command, fathom, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(f"open({str(tmp_path / 'ran')!r}, 'w')")
    (tmp_path / "fathom.toml").write_text(f'[[script]]\ncommand = "{PYTHON} {script}"\n')
    train = ("--", PYTHON, script)
    words = {
        "run": train,
        "fit": ("--memory", "1GiB", *train),
        "sweep": ("--vary", "n=1", "--set", "n={}", *train),
        "check": (),
        "explain": (SNAPSHOT,),
        "diff": (SNAPSHOT, SNAPSHOT),
        "replay": (SNAPSHOT,),
    }
    flags = {"run": ("json", "page", "markdown", "junit"), "check": ("json", "markdown"), "diff": ("page",)}
    for flag in flags.get(command, ("json",)):
        done = fathom.command(command, f"--{flag}", tmp_path / "none" / "file", *words[command], cwd=tmp_path)
        assert done.returncode == 2 and done.stdout == "", done.stdout
        assert f"--{flag}" in done.stderr and "is not there" in done.stderr and "mkdir -p" in done.stderr
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize(
    "words",
    [("completions", "bash"), ("man",), ("gpus",), ("gpus", "rtx3090"), ("replay", SNAPSHOT), ("explain", SNAPSHOT),
     ("doctor", "--", PYTHON), ("--help",), ("explain", "--json", "-", SNAPSHOT), ("nonsense",)],
)  # fmt: skip
def test_a_reader_who_has_gone_is_no_error(words):
    reader, writer = os.pipe()
    os.close(reader)
    command = [str(FATHOM), *map(str, words)]
    with os.fdopen(writer, "wb") as gone:
        alone = subprocess.run(command, stdout=gone, stderr=subprocess.PIPE, text=True, env=environment(), cwd=ROOT)
        both = subprocess.run(command, stdout=gone, stderr=gone, env=environment(), cwd=ROOT)
    expected = 2 if words == ("nonsense",) else 0
    assert (alone.returncode, both.returncode) == (expected, expected), alone.stderr
    assert "panicked" not in alone.stderr


@pytest.mark.parametrize("words", [("gpus",), ("completions", "bash"), ("replay", SNAPSHOT)])
def test_a_full_disk_is_one(words):
    with open("/dev/full", "w") as full:
        done = subprocess.run([str(FATHOM), *map(str, words)], stdout=full, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    assert done.returncode == 2 and "cannot write to the standard output" in done.stderr


def test_fit_shows_the_script_s_own_error(fathom, tmp_path):
    script = tmp_path / "train.py"
    script.write_text("import torch\nx = torch.zeros(9, device='cuda')\nraise KeyError('no such data set: imagenet')\n")
    done = fathom.command("fit", "--gpu", "rtx3090", "--", PYTHON, script)
    assert done.returncode == 3
    assert done.stdout.startswith("SCRIPT FAILED") and 'line 3, in <module>' in done.stdout, done.stdout
    assert "KeyError: 'no such data set: imagenet'" in done.stdout.splitlines()[-2]


def test_a_cache_that_cannot_be_written_has_a_substitute(fathom, tmp_path):
    variables = {"FATHOM_CACHE": "/dev/null/cache", "TMPDIR": tmp_path}
    for _ in range(2):
        done = fathom.command("run", "-q", "--", PYTHON, SCRIPTS / "import_only.py", env=variables)
        assert done.returncode == 0, done.stderr
        assert done.stderr.count("the cache cannot be written") == 1 and str(tmp_path) in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [f"fathom-cache-{os.getuid()}"]


def test_without_any_folder_for_the_cache_the_error_says_so(fathom):
    variables = {"FATHOM_CACHE": "/dev/null/cache", "TMPDIR": "/dev/null"}
    done = fathom.command("run", "--", PYTHON, SCRIPTS / "import_only.py", env=variables)
    assert done.returncode == 2 and "no folder for the cache" in done.stderr and "FATHOM_CACHE" in done.stderr


def test_a_folder_whose_name_is_no_text_changes_no_verdict(tmp_path):
    """On Linux a name is any bytes. The script runs out of memory there, and every output is written there."""
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    with open(folder + b"/train.py", "w") as file:
        file.write("import torch\nx = [torch.empty(1 << 28, device='cuda') for _ in range(40)]\n")
    words = ["--json", "r.json", "--page", "p.html", "--markdown", "m.md", "--junit", "j.xml", "--out", "o"]
    command = [FATHOM, "run", "--gpu", "rtx3090", *words, "--", PYTHON, "train.py"]
    done = subprocess.run(command, cwd=folder, env=environment(), capture_output=True, timeout=120)
    assert done.returncode == 1 and b"OutOfMemoryError" in done.stderr and b"panicked" not in done.stderr, done.stderr
    with open(folder + b"/r.json") as file:
        assert json.load(file)["verdict"] == "does_not_fit"
    assert {b"p.html", b"m.md", b"j.xml", b"o"} <= set(os.listdir(folder))
    command = [FATHOM, "run", "--", PYTHON, folder + b"/train.py"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True, timeout=120)
    assert done.returncode == 2 and "error: an argument is not UTF-8\n\nhint: " in done.stderr, done.stderr


@pytest.mark.parametrize("given", ["", "tmp"])
def test_an_empty_or_relative_folder_for_temporary_files(fathom, tmp_path, given):
    """An empty one is none; nothing is left in the working folder, nor lost where the script goes elsewhere."""
    (tmp_path / "tmp").mkdir()
    code = "import os, torch; os.chdir('/'); print(torch.ones(9, device='cuda').shape)"
    words = ("--json", tmp_path / "r.json", "--", PYTHON, "-c", code)
    done = fathom.command("run", "--gpu", "rtx3090", *words, cwd=tmp_path, env={"TMPDIR": given})
    assert done.returncode == 0, done.stderr
    assert json.loads((tmp_path / "r.json").read_text())["peak"]["allocated_bytes"] == 512
    substitute = Path("/tmp", f"fathom-cache-{os.getuid()}")
    was_there = substitute.exists()
    variables = {"TMPDIR": given, "FATHOM_CACHE": "/dev/null/cache"}
    done = fathom.command("run", "--", "true", cwd=tmp_path, env=variables)
    if not was_there:
        shutil.rmtree(substitute, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    assert sorted(path.name for path in tmp_path.iterdir()) == ["r.json", "tmp"]
