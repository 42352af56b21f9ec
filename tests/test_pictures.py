"""The pictures in README and docs: the first screens of real pages, taken from the case studies.

A picture is stale when its page says something else: beside each stands the text that is read on it. Fonts differ from
machine to machine, so pixels are not compared. `UPDATE_PICTURES=1 pytest tests/test_pictures.py` takes them again.
"""

import os
import re

import pytest
from conftest import ROOT, sampled

# Fixtures are used by their names.
from pages import SCREENSHOTS, browser, folder, look  # noqa: F401
from test_page_cases import CASES, QUICK

PICTURES = ROOT / "docs" / "pictures"
# What differs from run to run, and from machine to machine.
VARIES = [r"\d+\.\d s\b", r"(torch|cuDNN|Python) \d[\w.+]*", r"\S*/bin/python\S*"]
# What is read on the first screen, from top to bottom; a text below its edge is cut.
READ = """() => {
  const parts = ["#verdict", "#reason", "#bar", "#findings summary h3", "#timeline-legend"];
  const shown = parts.flatMap((part) => [...document.querySelectorAll(part)])
    .filter((element) => element.getBoundingClientRect().top < innerHeight);
  return shown.map((element) => element.innerText.replace(/\\s+/g, " ").trim()).join("\\n") + "\\n";
}"""


def read(page):
    text = page.evaluate(READ)
    for pattern in VARIES:
        text = re.sub(pattern, "…", text)
    return text


@pytest.mark.parametrize("name", sampled(CASES, QUICK))
def test_the_picture_of_a_case_is_what_its_page_shows(shared, fathom, folder, look, name):
    report, done = shared("case", name)
    assert report, done.stderr
    case = name.split("/")[0]
    path = folder / f"picture-{case}.html"
    done = fathom.command("page", fathom.folder_of(name), "-o", path)
    assert done.returncode == 0, done.stderr
    page = look(path, height=800)
    page.wait_for_timeout(300)
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    picture = page.screenshot(path=SCREENSHOTS / f"picture-{case}.png")
    text, kept = read(page), PICTURES / f"{case}.png"
    assert text.count("\n") > 4
    if os.environ.get("UPDATE_PICTURES"):
        PICTURES.mkdir(exist_ok=True)
        kept.write_bytes(picture)
        kept.with_suffix(".txt").write_text(text)
    assert kept.with_suffix(".txt").read_text() == text, "UPDATE_PICTURES=1 pytest tests/test_pictures.py"
    assert kept.read_bytes().startswith(b"\x89PNG")


def test_pictures_are_shown_somewhere():
    texts = [path.read_text() for path in [ROOT / "README.md", *(ROOT / "docs").rglob("*.md"), *(ROOT / "examples").rglob("README.md")]]
    kept = sorted(PICTURES.glob("*.png"))
    assert [path.name for path in kept if not any(f"pictures/{path.name})" in text for text in texts)] == []
    assert {path.stem for path in kept} >= {name.split("/")[0] for name in CASES}
