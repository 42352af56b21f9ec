"""docs/reference/schemas: as they are made, and real answers of each kind hold against them."""

import json
import os
import subprocess
import sys

import pytest
from conftest import PYTHON, ROOT, SCRIPTS
from test_smi import tools  # noqa: F401

sys.path.insert(0, str(ROOT / "packaging"))
import schemas

IS_WARM = True
BLOCKS = (PYTHON, SCRIPTS / "blocks_flags.py", "--batch-size", "8", "--depth", "8")
SNAPSHOT = ROOT / "tests/recorded/kdr2-t2-None_fwd-eager_bwd.pickle"
# What a program does that checks an answer; fields that a schema does not know must be none here.
VALIDATE = """
import json, sys, jsonschema
schema = json.load(open(sys.argv[1]))
jsonschema.Draft202012Validator.check_schema(schema)
def close(part):
    if isinstance(part, dict):
        if "properties" in part:
            part["additionalProperties"] = False
        list(map(close, part.values()))
    elif isinstance(part, list):
        list(map(close, part))
close(schema)
errors = jsonschema.Draft202012Validator(schema).iter_errors(json.load(open(sys.argv[2])))
print(json.dumps([f"{'.'.join(map(str, e.absolute_path))}: {e.message[:300]}" for e in errors]))
"""


def write(fathom, folder, name):
    """An answer of each kind."""
    path, script = folder / f"{name}.json", SCRIPTS / "leak.py"
    before = folder / "before.json"
    if name == "diff":
        fathom.command("run", "--memory", "700MiB", "--json", before, "--", *BLOCKS)
    if name == "check":
        (folder / "fathom.toml").write_text(f"[[script]]\nname = 'one'\ncommand = ['{PYTHON}', '{script}']\nbudget = '1GiB'\n")
    words = {
        "report": ("run", "--gpu", "rtx3090", "--ask", "sgd", "--", *BLOCKS),
        "cards": ("run", "--gpu", "rtx3090,t4", "--", PYTHON, script),
        "explain": ("explain", SNAPSHOT),
        "fit": ("fit", "--memory", "700MiB", "--", *BLOCKS),
        "sweep": ("sweep", "--vary", "batch-size=4,8", "--gpu", "rtx3090", "--", *BLOCKS),
        "diff": ("diff", before, SNAPSHOT),
        "replay": ("replay", SNAPSHOT, "--memory", "724MiB"),
        "check": ("check",),
        "baseline": ("run", "--gpu", "rtx3090", "--save-baseline", path, "--", *BLOCKS),
    }[name]
    if name == "baseline":
        done = fathom.command(*words, cwd=folder)
        assert path.exists(), done.stdout + done.stderr
        return path
    done = fathom.command(words[0], "--json", path, *words[1:], cwd=folder, timeout=300)
    assert path.exists(), done.stdout + done.stderr
    return path


def problems(tools, name, answer):
    """What is wrong with an answer, by its schema."""
    assert json.loads(answer.read_text())["schema"] == f"fathom.{name}/1"
    words = [tools, "-c", VALIDATE, schemas.FOLDER / f"{name}.schema.json", answer]
    done = subprocess.run(words, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# test_document.py has a document, which takes long; each text is one of those of tests/oom.
@pytest.mark.parametrize("name", [name for name in schemas.ANSWERS if name not in ("document", "oom")])
def test_a_real_answer_is_valid(fathom, tools, tmp_path, name):
    assert problems(tools, name, write(fathom, tmp_path, name)) == []


@pytest.mark.parametrize(
    "words",
    [
        [ROOT / "tests" / "oom"],
        ["TEXT", "--dims", "batch=8,heads=12,tokens=4096", "--shape", "8x12x4096x4096"],
        ["--smi", "22616MiB", "--reserved", "16.4GiB", "--gpu", "a10g"],
    ],
    ids=["texts", "dims", "figures"],
)
def test_answers_about_texts_are_valid(fathom, tools, tmp_path, words):
    path, text = tmp_path / "oom.json", tmp_path / "train.log"
    text.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 6.00 GiB. GPU 0 has a total capacity of 14.74 GiB")
    texts = sorted(words[0].glob("*.txt")) if words[0] != "TEXT" and "--" not in str(words[0]) else None
    words = texts or [text if word == "TEXT" else word for word in words]
    done = fathom.command("explain", *words, "--json", path, cwd=tmp_path, timeout=300)
    assert path.exists(), done.stdout + done.stderr
    assert problems(tools, "oom", path) == []


@pytest.mark.parametrize("name", schemas.ANSWERS)
def test_the_files_are_as_they_are_made(name):
    path = schemas.FOLDER / f"{name}.schema.json"
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(schemas.text(name))
    assert path.read_text() == schemas.text(name), "python packaging/schemas.py"


def test_a_wrong_answer_is_not_valid(tools, tmp_path):
    """Else the test above could not fail."""
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"schema": "fathom.cards/1", "rows": [{"gpu": 3, "more": 1}]}))
    words = [tools, "-c", VALIDATE, schemas.FOLDER / "cards.schema.json", wrong]
    errors = json.loads(subprocess.run(words, capture_output=True, text=True, check=True).stdout)
    assert any("not of type 'string'" in each for each in errors) and any("required" in each for each in errors)
