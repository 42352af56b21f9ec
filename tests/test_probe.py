"""Only the script itself runs the user's code: not the question which torch it will find, nor a warm process."""

import json
import subprocess

import pytest
from conftest import PYTHON

# Modules that the questions, a warm process and torch import.
NAMES = ["importlib", "json", "platform", "glob", "re", "site", "selectors", "ctypes", "random", "copy", "sitecustomize"]

# Whoever imports it leaves a note of which program that was.
HOSTILE = """
import os, sys
with open({marks!r}, "a") as file:
    file.write(f"{{__name__}} {{os.path.basename(sys.orig_argv[1])}}\\n")
"""

SCRIPT = """
import sys
import torch
weight = torch.zeros(int(sys.argv[1]) << 20, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight])
for _ in range(3):
    weight.sum().backward(); optimizer.step()
"""


@pytest.fixture
def trap(tmp_path):
    """A folder full of modules with names of others, and what was run of it."""
    folder, marks = tmp_path / "trap", tmp_path / "marks"
    folder.mkdir()
    for name in NAMES:
        (folder / f"{name}.py").write_text(HOSTILE.format(marks=str(marks)))
    return folder, lambda: marks.read_text().splitlines() if marks.exists() else []


@pytest.mark.parametrize("command", ["run", "sweep"])
def test_files_of_the_working_folder_are_not_run(command, fathom, trap, tmp_path):
    folder, marks = trap
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    words = {"run": (), "sweep": ("--vary", "n=8", "--set", "n={}", "--memory", "1GiB", "--fresh")}
    done = fathom.command(command, *words[command], "--", PYTHON, script, "8", cwd=folder)
    assert done.returncode == 0, done.stdout + done.stderr
    assert fathom.command("doctor", "--", PYTHON, cwd=folder).returncode == 0
    assert marks() == []


def test_files_beside_the_script_are_run_by_the_script_alone(fathom, trap):
    """`random` and others beside a script take the place of Python's own, in a run as in a trial."""
    folder, marks = trap
    for name in NAMES:
        if name != "random":
            (folder / f"{name}.py").unlink()
    script = folder / "train.py"
    script.write_text(SCRIPT)
    words = ("--vary", "n=8", "--set", "n={}", "--memory", "1GiB", "--fresh")
    done = fathom.command("sweep", *words, "--", PYTHON, script, "8")
    assert done.returncode == 3, "torch finds this `random` and fails, as it would without us"
    assert marks() and set(marks()) == {"random train.py"}, marks()


def test_what_pythonpath_names_is_run_by_the_script_alone(fathom, trap, tmp_path):
    folder, marks = trap
    script = tmp_path / "train.py"
    script.write_text(SCRIPT)
    for name in NAMES:
        if name != "sitecustomize":
            (folder / f"{name}.py").unlink()
    env = {"PYTHONPATH": folder}
    done = fathom.command("run", "--record", "off", "--", PYTHON, script, "8", env=env)
    assert done.returncode == 0, done.stderr
    assert marks() == ["sitecustomize train.py"], "as without us"
    assert fathom.command("doctor", "--", PYTHON, env=env).returncode == 0 and len(marks()) == 1


@pytest.fixture(scope="module")
def bare(tmp_path_factory):
    """An environment without torch, and the folder with the torch of the others."""
    folder = tmp_path_factory.mktemp("bare")
    base = subprocess.run([PYTHON, "-c", "import sys; print(sys._base_executable)"], capture_output=True, text=True)
    subprocess.run([base.stdout.strip(), "-m", "venv", "--without-pip", folder], check=True)
    packages = next((PYTHON.parent.parent / "lib").glob("python3*/site-packages"))
    return folder, packages


def test_the_torch_that_the_script_will_find(fathom, bare, tmp_path):
    """PYTHONPATH, `.pth` files, the user's own packages, editable installations: as Python does, without running any."""
    folder, packages = bare
    python = folder / "bin" / "python"
    own = next((folder / "lib").glob("python3*/site-packages"))
    user = tmp_path / "user"
    user_site = user / "lib" / own.parent.name / "site-packages"
    user_site.mkdir(parents=True)
    (user_site / "torch").symlink_to(packages / "torch")
    finds = lambda python=python, *words, **env: "torch      " in next(  # noqa: E731
        (line for line in fathom.command("doctor", "--", python, *words, env=env, cwd=tmp_path).stdout.splitlines()
         if line.startswith("ok    torch")), "")  # fmt: skip
    script = tmp_path / "train.py"
    script.write_text("import torch\n")
    assert not finds()
    assert finds(PYTHONPATH=packages) and not finds(python, "-E", script, PYTHONPATH=packages)
    ran = tmp_path / "ran"
    (own / "evil.pth").write_text(f"import os; open({str(ran)!r}, 'w')\n")
    (own / "torch.pth").write_text(f"{packages}\n")
    assert finds() and not finds(python, "-S", script) and not ran.exists()
    (own / "torch.pth").unlink()
    assert not finds(), "what was remembered of it is no longer so"
    base = (folder / "bin" / "python").resolve()
    assert finds(base, PYTHONUSERBASE=user) and not finds(base, PYTHONUSERBASE=user, PYTHONNOUSERSITE="1")
    (own / "torch-2.15.0.dist-info").mkdir()
    direct = {"url": packages.as_uri(), "dir_info": {"editable": True}}
    (own / "torch-2.15.0.dist-info" / "direct_url.json").write_text(json.dumps(direct))
    assert finds(), "an editable installation"


def test_a_file_that_takes_torch_s_place_is_named(fathom, tmp_path):
    (tmp_path / "torch.py").write_text("raise SystemExit(7)")
    (tmp_path / "train.py").write_text("import torch\n")
    done = fathom.command("run", "--", PYTHON, tmp_path / "train.py")
    assert done.returncode == 2 and "torch.py`, which is not PyTorch" in done.stderr
    assert fathom.command("doctor", "--", PYTHON, cwd=tmp_path).returncode == 0
