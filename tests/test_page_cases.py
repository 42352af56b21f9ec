"""Every view of the HTML page, driven in a real browser: on the five case studies and on a million events.

The runs are those of test_findings.py. What was seen is kept in target/screenshots.
"""

import pytest
from conftest import sampled

# Fixtures are used by their names.
from pages import SCREENSHOTS, at, browser, brushed, embedded, folder, hash_of, look, million, window  # noqa: F401
from test_cases import QUICK

CASES = ("uni3d-dp3/stated", "stdiff/document", "bev-graph/before", "dit3d/s_2_full", "avatar/half_batch")


@pytest.mark.parametrize("name", sampled(CASES, QUICK))
def test_every_view_of_a_case(shared, fathom, folder, look, name):
    report, done = shared("case", name)
    assert report, done.stderr
    path = folder / f"{name.replace('/', '-')}.html"
    done = fathom.command("page", fathom.folder_of(name), "-o", path)
    assert done.returncode == 0, done.stderr
    page = look(path)
    assert embedded(path)["items"][0]["report"] == report
    drive(page, path.stem)
    show_evidence(page, report, path.stem)
    restore(page, look, path)


def test_every_view_of_a_million_events(look, million):
    page = look(million)
    drive(page, "million")
    restore(page, look, million)


def keep(page, name):
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"{name}.png", full_page=True)


def drive(page, name):
    """Looks at a page as a reader would; each step says what has to change."""
    assert page.locator("#verdict").inner_text() and page.locator("#problem").inner_text() == ""
    keep(page, f"{name}-light")
    zoom(page)
    hover(page)
    brush(page)
    pictures(page, name)
    search(page)
    dark(page, name)


def zoom(page):
    whole = window(page)
    page.locator("#timeline-canvas").focus()
    page.mouse.move(*at(page, 0.6))
    page.mouse.wheel(0, -500)
    page.wait_for_timeout(80)
    close = window(page)
    assert close[1] - close[0] < 0.7 * (whole[1] - whole[0]) and whole[0] <= close[0] < close[1] <= whole[1]
    page.locator("#zoom-all").click()
    page.wait_for_timeout(80)
    assert window(page) == whole


def hover(page):
    """Near the ground something is alive at the peak, whatever the run."""
    peak, whole = page.evaluate("[fathom.story.header.peak_tick, fathom.timeline.length()]")
    page.mouse.move(*at(page, min(0.995, (peak + 0.5) / whole), 0.97))
    tip = page.locator("#tip")
    tip.wait_for(state="visible")
    life = page.evaluate("fathom.timeline.hovered")
    assert life >= 0 and page.evaluate("life => fathom.story.born[life]", life) <= whole
    page.mouse.move(5, 5)
    tip.wait_for(state="hidden")


def brush(page):
    brushed(page, 0.1, 0.5)
    kept = int(page.locator("[data-range=retained]").get_attribute("data-bytes"))
    expected = page.evaluate(
        """() => { const { story: s, state } = fathom, { rangeFrom, rangeTo } = state.now; let sum = 0;
           for (let i = 0; i < s.count; i++)
             if (s.born[i] >= rangeFrom && s.born[i] <= rangeTo && s.freed[i] > rangeTo) sum += s.block[i];
           return sum; }"""
    )
    assert kept == expected
    page.locator("#timeline-canvas").press("Escape")
    page.locator("#range").wait_for(state="hidden")


def pictures(page, name):
    """Treemap and flame graph, by modules and by lines; at each the tiles cover what is allocated."""
    whole = page.evaluate("fathom.story.allocatedAt(fathom.story.header.peak_tick)")
    for view in ("treemap", "flame"):
        for tree in ("module", "line"):
            page.evaluate("([view, tree]) => fathom.state.set({ view, tree })", [view, tree])
            page.wait_for_timeout(80)
            assert page.evaluate("fathom.momentView.drawn.length") > 0, (view, tree)
            assert int(page.locator("[data-moment=allocated]").get_attribute("data-bytes")) == whole
    for by in ("module", "phase", "line"):
        page.evaluate("by => fathom.state.set({ by })", by)
        page.wait_for_timeout(80)
        assert page.locator("#timeline-legend li").count() > 1, by
    keep(page, f"{name}-lines-flame")
    page.evaluate("fathom.state.set({ by: 'category', view: 'treemap', tree: 'module' })")
    page.wait_for_timeout(80)


def search(page):
    rows = page.locator("#table-body tbody tr")
    word = page.locator("#table-body tbody tr td").first.inner_text().split(".")[-1]
    page.keyboard.press("/")
    page.keyboard.type(word)
    page.wait_for_timeout(80)
    texts = rows.all_inner_texts()
    assert texts and all(part in text.lower() for text in texts for part in word.lower().split())
    page.locator("#table-search").fill("nothing-has-this-name")
    page.wait_for_timeout(80)
    assert "bytes" not in " ".join(rows.all_inner_texts()) and rows.count() <= 1
    page.locator("#table-search").fill("")
    page.locator("#table-search").blur()


def dark(page, name):
    paper = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    assert paper() == "rgb(255, 255, 255)"
    page.keyboard.press("d")
    page.wait_for_timeout(150)
    assert paper() == "rgb(22, 24, 27)"
    pixel = "[...document.getElementById('timeline-canvas').getContext('2d').getImageData(2, 2, 1, 1).data].join()"
    assert page.evaluate(pixel) == "22,24,27,255"
    keep(page, f"{name}-dark")


def show_evidence(page, report, name):
    """Evidence of the first finding is hatched in the timeline, and as much as it says."""
    finding = page.locator(f"[data-finding={report['findings'][0]['id']}]").first
    finding.locator("summary").first.click()
    button = finding.get_by_role("button").first
    assert report["findings"][0]["evidence"]
    button.click()
    page.wait_for_timeout(120)
    assert page.locator("#mark-note").is_visible() and "Hatched" in page.locator("#mark-note").inner_text()
    highest = page.evaluate("Math.max(...fathom.timeline.marked.values)")
    # A request that failed is evidence too, but never was in memory.
    tried = (report["out_of_memory"] or {"tried_bytes": 0})["tried_bytes"]
    assert highest >= report["findings"][0]["evidence"][0]["bytes"] - tried and highest > 0
    keep(page, f"{name}-evidence")


def restore(page, look, path):
    """What is looked at is in the address; a reload shows it."""
    page.evaluate(
        """() => {
          const part = (share) => Math.round(fathom.story.ticks * share);
          fathom.state.set({ from: part(0.2), to: part(0.7), by: "phase", query: "a" });
        }"""
    )
    again = look(path, hash=hash_of(page))
    now = "JSON.stringify(fathom.state.now)"
    assert again.evaluate(now) == page.evaluate(now) and window(again) == window(page)
