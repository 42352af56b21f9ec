"""Programs that start a script in an environment of their own, the real ones: uv, poetry, jupyter nbconvert."""

import json
import os
import subprocess

import pytest
from conftest import FATHOM, PYTHON, ROOT, environment
from test_smi import TOOLS, tools  # noqa: F401

pytestmark = pytest.mark.usefixtures("tools")

TRAINS = """
import torch
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.AdamW(model.parameters())
for _ in range(5):
    model(torch.randn(64, 1024, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""
FLAGS = ("--gpu", "rtx3090", "--verify", "off", "--whole", "off")
POETRY = '[project]\nname = "own"\nversion = "0.1"\nrequires-python = ">=3.10"\n[tool.poetry]\npackage-mode = false\n'


@pytest.fixture
def run(fathom, tmp_path):
    (tmp_path / "train.py").write_text(TRAINS)
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "train.py").write_text(TRAINS)
    (tmp_path / "pyproject.toml").write_text(POETRY)

    def start(*words, **variables):
        env = {"PATH": f"{TOOLS.parent}:{os.environ['PATH']}", **variables}
        done = fathom.command("run", *FLAGS, "--json", tmp_path / "report.json", *words, cwd=tmp_path, env=env)
        assert done.returncode == 0, done.stdout + done.stderr
        report = json.loads((tmp_path / "report.json").read_text())
        assert report["verdict"] == "fits" and report["steps"] == 3 and report["findings"], done.stdout
        return done

    return start


def test_without_dashes(run):
    run("train.py")
    run("python", "-m", "pkg.train")
    run("bash", "-c", "python train.py")


def test_uv(run):
    run("uv", "run", "--no-project", "--python", TOOLS, "train.py")
    run("uv", "run", "--no-project", "--python", TOOLS, "python", "-m", "pkg.train")


def test_poetry(run):
    run("poetry", "run", "python", "train.py", VIRTUAL_ENV=str(TOOLS.parent.parent))


def test_a_notebook_ends_without_an_error(run, tmp_path):
    """What stands behind the last step is not executed, so it cannot fail for what is not there."""
    sources = [TRAINS.partition("for ")[0], "for " + TRAINS.partition("for ")[2], "print(of_nobody)", "1 / 0"]
    cell = {"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": []}
    cells = [{**cell, "id": f"cell-{number}", "source": source} for number, source in enumerate(sources)]
    kernel = {"kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"}}
    notebook = {"cells": cells, "metadata": kernel, "nbformat": 4, "nbformat_minor": 5}
    (tmp_path / "note.ipynb").write_text(json.dumps(notebook))
    done = run("jupyter", "nbconvert", "--to", "notebook", "--execute", "note.ipynb", "--output", "done.ipynb")
    assert "Traceback" not in done.stderr, done.stderr
    outputs = [each["outputs"] for each in json.loads((tmp_path / "done.ipynb").read_text())["cells"]]
    assert outputs[0] == outputs[2] == outputs[3] == []
    assert "enough steps were seen" in str(outputs[1]) and "Stopped" not in str(outputs[1])


def test_errors_of_a_notebook_are_its_own(run, fathom, tmp_path):
    cells = [{"cell_type": "code", "execution_count": None, "metadata": {}, "outputs": [], "id": "a", "source": "import torch\n1 / 0"}]
    (tmp_path / "bad.ipynb").write_text(json.dumps({"cells": cells, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}))
    env = {"PATH": f"{TOOLS.parent}:{PYTHON.parent}:{os.environ['PATH']}"}
    words = ("run", *FLAGS, "jupyter", "nbconvert", "--to", "notebook", "--execute", "bad.ipynb")
    done = fathom.command(*words, cwd=tmp_path, env=env)
    assert done.returncode == 3 and "ZeroDivisionError" in done.stderr


def test_the_example_notebook(fathom, tmp_path):
    """examples/notebook, as Colab would execute it, with what its first cell installs already there."""
    (tmp_path / "fits.ipynb").write_text((ROOT / "examples" / "notebook" / "fits.ipynb").read_text())
    env = environment({"PATH": f"{FATHOM.parent}:{TOOLS.parent}:{os.environ['PATH']}", "PYTHONPATH": str(ROOT / "python")})
    words = [TOOLS.parent / "jupyter", "nbconvert", "--to", "notebook", "--execute", "fits.ipynb", "--output", "done.ipynb"]
    done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    cells = json.loads((tmp_path / "done.ipynb").read_text())["cells"]
    said = "".join("".join(output.get("text", "")) for cell in cells for output in cell.get("outputs", []))
    assert "FITS  Tesla T4" in said and "64 does_not_fit" in said, said
    assert (tmp_path / "report.html").exists()
    committed = json.loads((tmp_path / "fits.ipynb").read_text())["cells"]
    assert not any(cell.get("outputs") for cell in committed), "commit it without outputs"
