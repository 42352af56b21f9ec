"""GitHub's action, the workflows and the hook: their files say what exists, and the action's steps are run as a runner would."""

import os
import re
import subprocess

import pytest
import yaml
from conftest import FATHOM, PYTHON, ROOT, environment

ACTION = yaml.safe_load((ROOT / "action.yml").read_text())
SCRIPT = "import sys, torch\nprint('said', sys.argv[1:])\ntorch.ones(1 << 28, device='cuda')\n"


def step(folder, **inputs):
    """The step that runs Fathom, with inputs as a runner puts them into variables."""
    given = {name: inputs.get(name, declared["default"]) for name, declared in ACTION["inputs"].items()}
    run = ACTION["runs"]["steps"][-1]
    filled = {name: re.sub(r"\$\{\{ inputs\.(\w+) \}\}", lambda found: given[found[1]], text) for name, text in run["env"].items()}
    files = {"GITHUB_OUTPUT": folder / "output", "RUNNER_TEMP": folder / "temp", "GITHUB_STEP_SUMMARY": folder / "summary"}
    path = f"{FATHOM.parent}:{PYTHON.parent}:{os.environ['PATH']}"
    env = environment({**filled, **files, "PATH": path, "GITHUB_ACTIONS": "true"})
    words = ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", run["run"]]
    done = subprocess.run(words, cwd=folder, env=env, capture_output=True, text=True, timeout=120, check=False)
    output = dict(line.split("=", 1) for line in (folder / "output").read_text().splitlines())
    return done, output


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "temp").mkdir()
    return tmp_path


def test_a_command_with_a_budget(folder):
    command = "python train.py 'two words' $(touch broken) `id`"
    done, output = step(folder, command=command, gpu="rtx3090", budget="1GiB", python=str(PYTHON))
    assert done.returncode == 1 and "said ['two words', '$(touch', 'broken)', '`id`']" in done.stdout, done.stderr
    assert "DOES NOT FIT" in done.stdout and "::error" in done.stdout and not (folder / "broken").exists()
    assert set(output) == {"json", "markdown", "page"} and all(os.path.getsize(path) for path in output.values())
    assert "train.py" in (folder / "summary").read_text()


def test_scripts_of_the_file(folder):
    (folder / "fathom.toml").write_text('gpu = "rtx3090"\n[[script]]\nname = "first"\ncommand = "train.py"\n')
    done, output = step(folder)
    assert done.returncode == 0 and "1 script: all pass" in done.stdout, done.stdout + done.stderr
    assert set(output) == {"json", "markdown"}


def test_inputs_are_never_part_of_a_program():
    for each in ACTION["runs"]["steps"]:
        assert "${{" not in each["run"], each["name"]


def test_files_name_what_exists():
    makefile, ours = (ROOT / "Makefile").read_text(), sorted((ROOT / ".github").rglob("*.yml"))
    assert len(ours) == 5
    for path in ours:
        text = path.read_text()
        yaml.safe_load(text)
        for target in re.findall(r"run: make ([\w-]+)", text):
            assert f"\n{target}:" in makefile, (path, target)
    [hook] = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    assert hook["entry"] == "fathom check" and hook["language"] == "system"
