"""The documents: every link leads somewhere, and what the tutorial says to type does what it shows."""

import os
import re
import subprocess
import sys

import pytest
from conftest import FATHOM, PYTHON, ROOT, environment

sys.path.insert(0, str(ROOT / "packaging"))
import links
import notes

TUTORIAL = ROOT / "docs" / "tutorial.md"
# What differs from run to run, or with what a machine has.
VARIES = (r"\d+(\.\d+)? s\b", r"±", r"trials")


def test_every_link_leads_somewhere():
    found = [each for path in links.documents() for each in links.broken(path)]
    assert len(list(links.documents())) > 50 and not found, "\n".join(found)


def test_every_page_is_in_the_book():
    assert list(links.not_in_the_book()) == []


def test_a_broken_link_is_found(tmp_path):
    (tmp_path / "a.md").write_text("# One thing\n\n[a](b.md) [b](a.md#one-thing) [c](a.md#other) `[d](e.md)` [e](https://x.y)\n")
    assert [line.split(": ")[1:] for line in links.broken(tmp_path / "a.md", tmp_path)] == [
        ["b.md", "no such file"],
        ["a.md#other", "no such heading"],
    ]


def test_notes_of_a_release_are_its_section():
    text = "# Changelog\n\n## Unreleased\n\n- new\n\n## 0.2.0 - 2026-11-19\n\n### Added\n- one\n\n## 0.1.0\n- old\n"
    assert notes.notes(text, "0.2.0") == "### Added\n- one\n" and notes.notes(text, "Unreleased") == "- new\n"
    assert notes.notes(text, "0.1.0") == "- old\n" and notes.notes(text, "0.2") is None
    assert notes.notes((ROOT / "CHANGELOG.md").read_text(), "Unreleased")


def blocks(text):
    """Language, and content, of every block; a file's name stands in the line before it: `train.py`:"""
    for before, language, content in re.findall(r"([^\n]*)\n\n```(\w+)\n(.*?)^```", text, re.M | re.S):
        named = re.search(r"`([\w.]+)`:$", before)
        yield language, named and named.group(1), content


def commands(content):
    """Each command of a block with the lines that it is said to print."""
    for part in re.split(r"^\$ ", content, flags=re.M)[1:]:
        command, _, shown = part.partition("\n")
        yield command, shown.splitlines()


def is_shown(line, printed):
    """Numbers that vary may differ; a line that ends with … may go on."""
    if line.strip() == "…":
        return True
    whole = re.escape(line.removesuffix("…"))
    if any(re.search(pattern, line) for pattern in VARIES):
        whole = re.sub(r"\d+(?:\\\.\d+)?", r"[\\d.]+", whole)
    return any(re.match(whole if line.endswith("…") else whole + "$", each) for each in printed)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("tutorial")


def test_the_tutorial_does_what_it_shows(folder):
    """Every block, in its order, in one folder."""
    if not FATHOM.exists():
        pytest.skip("make build")
    env = environment({"PATH": f"{FATHOM.parent}:{PYTHON.parent}:{os.environ['PATH']}", "COLUMNS": "100"})
    # As a reader has it: nothing is switched off.
    env = {name: value for name, value in env.items() if name not in ("FATHOM_VERIFY", "FATHOM_WHOLE_RUN")}
    ran = 0
    for language, name, content in blocks(TUTORIAL.read_text()):
        if name and language != "console":
            (folder / name).write_text(content)
        for command, shown in commands(content) if language == "console" else ():
            done = subprocess.run(command, shell=True, cwd=folder, env=env, capture_output=True, text=True, timeout=400)
            printed = (done.stdout + done.stderr).splitlines()
            missing = [line for line in shown if not is_shown(line, printed)]
            assert not missing, "\n".join([command, *missing, "-- printed:", *printed])
            ran += 1
    assert ran >= 5 and (folder / "report.html").exists()
