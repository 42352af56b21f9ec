"""What the tests of the HTML page share: a browser, pages of a few runs, and places on them.

Needs a Chromium of the system and Playwright; where one is missing the tests say so and are skipped.
"""

import json
import re
import shutil
import subprocess

import pytest
from conftest import FATHOM, PYTHON, ROOT, environment, missing

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
# What tests have seen, for people to look at.
SCREENSHOTS = ROOT / "target" / "screenshots"
TRAINING = ROOT / "target" / "release" / "examples" / "training"
# Runs and pages that more than one file of tests looks at, each made once.
MADE = {}


def once(key, make):
    if key not in MADE:
        MADE[key] = make()
    return MADE[key]


def bytes_text(count):
    """A size as the command prints it."""
    for unit, size, digits in (("GiB", 2**30, 2), ("MiB", 2**20, 1), ("KiB", 2**10, 1)):
        if count >= size:
            return f"{count / size:.{digits}f} {unit}"
    return f"{count} B"


def embedded(path):
    """What a page holds, as JSON."""
    found = re.search(r'<script type="application/json" id="fathom-page">(.*?)</script>', path.read_text(), re.S)
    return json.loads(found[1])


@pytest.fixture(scope="module")
def browser():
    sync_api = pytest.importorskip("playwright.sync_api", reason="Playwright is missing: `make test` installs it")
    found = next(filter(None, map(shutil.which, BROWSERS)), None)
    if found is None:
        pytest.skip("no Chromium on this machine: `apt-get install chromium`")
    with sync_api.sync_playwright() as playwright:
        # A container has no sandbox of its own to offer; the page is ours and has no network.
        browser = playwright.chromium.launch(executable_path=found, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def look(browser):
    """`look(path)` opens a page from disk; at the end no error and no request may have been seen."""
    contexts, troubles = [], []

    def look(path, width=1280, height=900, hash="", **options):
        context = browser.new_context(viewport={"width": width, "height": height}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: troubles.append(f"error: {error}"))
        page.on("console", lambda message: message.type == "error" and troubles.append(f"console: {message.text}"))
        page.on("dialog", lambda dialog: troubles.append(f"dialog: {dialog.message}") or dialog.dismiss())
        page.on(
            "request", lambda request: request.url.startswith("file:") or troubles.append(f"request: {request.url}")
        )
        page.goto(path.as_uri() + hash)
        page.wait_for_selector("html[data-ready]", state="attached")
        return page

    look.troubles = troubles
    yield look
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Where all pages are; one for all files of tests."""
    return once("folder", lambda: tmp_path_factory.mktemp("pages"))


def training(folder, name, events):
    """The page of a made-up training run with this many events."""
    if not TRAINING.exists():
        missing(TRAINING, "run `make checker`")
    recording, page = folder / f"{name}.fathom", folder / f"{name}.html"
    subprocess.run([TRAINING, recording, str(events)], check=True, capture_output=True)
    subprocess.run(
        [FATHOM, "page", recording, "-o", page], check=True, capture_output=True, cwd=ROOT, env=environment()
    )
    return page


@pytest.fixture(scope="module")
def million(folder):
    """A made-up training run of a million events."""
    return once("million", lambda: training(folder, "million", 1_000_000))


@pytest.fixture(scope="module")
def small(folder):
    """A made-up training run of some steps."""
    return once("small", lambda: training(folder, "small", 20_000))


@pytest.fixture(scope="module")
def case(fathom, folder):
    """A case study that does not fit: its page, the JSON beside it, and the folder of the run."""
    return once("case", lambda: run_case(fathom, folder))


def run_case(fathom, folder):
    page, kept = folder / "case.html", folder / "case"
    command = (PYTHON, "examples/avatar/train.py", "--config", "examples/avatar/document.yaml")
    report, done = fathom(*command, flags=("--gpu", "rtx3060-12g", "--page", page, "--out", kept))
    assert done.returncode == 1, done.stderr
    return page, report, kept


def hash_of(page):
    page.wait_for_timeout(350)
    return page.evaluate("location.hash")


def window(page):
    return page.evaluate("fathom.timeline.window()")


def at(page, x=0.5, y=0.5):
    """A place in the plot of the timeline, in shares of it."""
    page.evaluate("document.getElementById('timeline').scrollIntoView()")
    page.wait_for_timeout(50)
    box = page.locator("#timeline-canvas").bounding_box()
    scale = page.evaluate(
        "(({left, head, plotWidth, plotHeight}) => ({left, head, plotWidth, plotHeight}))(fathom.timeline.scale)"
    )
    return box["x"] + scale["left"] + x * scale["plotWidth"], box["y"] + scale["head"] + y * scale["plotHeight"]


def brushed(page, first, last):
    """The panel of a range that is drawn with Shift, between two places in shares of the plot."""
    y = at(page)[1]
    page.mouse.move(at(page, first)[0], y)
    page.keyboard.down("Shift")
    page.mouse.down()
    page.mouse.move(at(page, last)[0], y, steps=4)
    page.mouse.up()
    page.keyboard.up("Shift")
    panel = page.locator("#range")
    panel.wait_for(state="visible")
    return panel
