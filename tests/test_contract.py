"""Files between the processes of a run: what cannot be read is said with the file's name, and all else is kept."""

import ast
import json
import os
import re

import pytest
from conftest import PYTHON, ROOT

IS_WARM = True

# Whoever registers first is called last: what the doorway wrote at the end is there by then.
TRAINS = """
import atexit, glob, json, os, sys

def damage():
    (path,) = glob.glob(os.environ["FATHOM_RUN"] + f"/process.{os.getpid()}.json")
    with open(path, encoding="utf-8") as file:
        text = file.read()
    known = json.loads(text)
    if sys.argv[1] == "surrogate":
        text = json.dumps({**known, "python": known["python"] + "\\udce9"})
    elif sys.argv[1] == "newer":
        text = json.dumps({**known, "schema": "fathom.process/2", "steps_of_all": "three", "news": [1]})
    elif sys.argv[1] == "cut":
        text = text[: len(text) // 2]
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)

atexit.register(damage)
import torch

model = torch.nn.Sequential(torch.nn.Linear(512, 2048), torch.nn.ReLU(), torch.nn.Linear(2048, 512)).cuda()
optimizer = torch.optim.Adam(model.parameters())
for _ in range(4):
    optimizer.zero_grad()
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
"""

# Where these are said to be different, a run is not the same as another.
OF_THE_RUN = {"wall_seconds", "processes", "warnings", "next"}


@pytest.fixture(scope="module")
def kept(tmp_path_factory):
    """Where the files of the runs are, by what happens to `process.<pid>.json` after its process wrote it."""
    return tmp_path_factory.mktemp("kept")


@pytest.fixture(scope="module")
def trained(fathom, kept):
    """By what happens to `process.<pid>.json`: the report."""

    def train(how):
        report, done = fathom.code(TRAINS, arguments=(how,), flags=("--out", kept / how))
        assert done.returncode == 0 and "Traceback" not in done.stderr, done.stdout + done.stderr
        assert all(warning.split()[0] in done.stdout for warning in report["warnings"]), "it is seen on the terminal too"
        return report

    return {how: train(how) for how in ("whole", "surrogate", "newer", "cut")}


def without(report, *names):
    return {name: value for name, value in report.items() if name not in OF_THE_RUN | set(names)}


def test_a_whole_file_needs_no_words(trained):
    assert trained["whole"]["warnings"] == [] and trained["whole"]["steps"] == 3


def test_half_a_character_is_replaced_and_all_else_is_kept(trained):
    report, whole = trained["surrogate"], trained["whole"]
    (warning,) = report["warnings"]
    assert re.search(r"`process\.\d+\.json` holds what is no text in one place", warning)
    assert report["software"].pop("python") == whole["software"]["python"] + "�"
    assert report["software"].items() <= whole["software"].items()
    assert without(report, "software") == without(whole, "software")


def test_a_newer_file_is_read_as_far_as_it_is_understood(trained):
    report = trained["newer"]
    newer, part = report["warnings"]
    assert re.search(r"`process\.\d+\.json` is `fathom.process/2`, newer than this Fathom", newer)
    assert re.search(r"`process\.\d+\.json` was read in part: `steps_of_all` is no whole number", part)
    assert without(report) == without(trained["whole"])


def test_a_cut_file_leaves_what_the_page_and_the_recording_say(trained):
    report, whole = trained["cut"], trained["whole"]
    (warning,) = report["warnings"]
    assert re.search(r"`process\.\d+\.json` cannot be read \(EOF .*\), so these are not known: .* how it ended", warning)
    assert report["verdict"] == "fits" and report["steps"] == 3, "as the recording counts them"
    assert report["peak"]["device_bytes"] == whole["peak"]["device_bytes"]
    for name in ("categories", "modules", "findings"):
        assert report.get(name) == whole.get(name), name
    said = json.dumps(report)
    assert "was not reached" not in said and "ended before" not in said, "nothing is said that is not so"


STARTS_ANOTHER = """
import os, runpy, sys
runpy.run_path(os.fsdecode(os.fsencode(sys.argv[1]) + b"/caf\\xe9/train.py"))
"""


def test_names_that_are_no_text_cost_nothing_else(fathom, tmp_path):
    """A byte that is no UTF-8 is half a character to Python."""
    folder = os.fsencode(tmp_path) + b"/caf\xe9"
    os.mkdir(folder)
    with open(os.path.join(folder, b"train.py"), "w", encoding="utf-8") as file:
        file.write("import torch\ntorch.ones(1 << 20, device='cuda')\nraise ValueError(f'in {__file__}')\n")
    report, _ = fathom.code(STARTS_ANOTHER, arguments=(tmp_path,))
    assert report["verdict"] == "script_failed" and "caf�/train.py" in report["failure"]
    assert report["peak"]["allocated_bytes"] == 4 << 20 and report["warnings"] == []


def test_no_file_has_fields_of_its_own(trained, kept):
    """What the doorway writes is what the contract has: no more, and nothing left out."""
    text = (ROOT / "python" / "fathom" / "contract.py").read_text(encoding="utf-8")
    functions = [node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)]
    fields = {node.name: [argument.arg for argument in node.args.kwonlyargs] for node in functions}
    (path,) = (kept / "whole").glob("process.*.json")
    process = json.loads(path.read_text())
    assert list(process) == ["schema", *fields["process"]]
    assert list(process["devices"][0]) == fields["device"]
    assert list(process["devices"][0]["reserved"]) == fields["moment"]
    assert list(process["end"]) == fields["end"]


def test_trials_say_it_too_and_are_not_remembered(fathom, tmp_path):
    command = ("--vary", "width=1,2", "--memory", "8GiB", "--", PYTHON, "-c", TRAINS, "cut", "--width", "1")
    for _ in range(2):
        done = fathom.command("sweep", "--json", "-", *command, env={"FATHOM_CACHE": tmp_path / "cache"})
        assert done.returncode == 0, done.stderr
        sweep = json.loads(done.stdout)
        said = [note for note in sweep["notes"] if re.search(r"`process\.\d+\.json` cannot be read", note)]
        assert len(said) == 2 and "how it ended" in said[0]
        assert [point["verdict"] for point in sweep["points"]] == ["fits", "fits"], "the page says what was used"
        assert "remembered answers" not in done.stdout
