"""What is read on a page can be read: no text lies on another, and each stands out from what is behind it, on screens
wide and narrow, light and dark, and on paper."""

import pytest
from conftest import ROOT

# Fixtures are used by their names.
from pages import SCREENSHOTS, browser, case, folder, look, small  # noqa: F401

IS_WARM = True
GOLDEN = ROOT / "tests" / "golden" / "page"
# By the W3C's guidelines (WCAG 2.2, level AA).
CONTRAST = 4.5
# Glyphs have soft edges: boxes may touch by so many pixels.
TOUCH = 1.5

# Texts of canvases, as they are drawn: boxes of their ink, and what is behind them. A canvas that is filled from its
# corner on is drawn anew.
WATCH = """
(() => {
  const drawn = (globalThis.drawnTexts = new Map());
  const proto = CanvasRenderingContext2D.prototype;
  const { fillRect, fillText, strokeText } = proto;
  proto.fillRect = function (x, y, width, height) {
    const { canvas } = this, scale = this.getTransform().a;
    if (canvas.id && x === 0 && y === 0 && width * scale >= canvas.width - 2 && height * scale >= canvas.height - 2)
      drawn.set(canvas.id, []);
    return fillRect.call(this, x, y, width, height);
  };
  proto.strokeText = function (...words) {
    this.halo = [words.join(), this.strokeStyle];
    return strokeText.apply(this, words);
  };
  proto.fillText = function (...words) {
    const [text, x, y] = words, { canvas } = this, scale = this.getTransform().a;
    const ink = this.measureText(text);
    const box = { left: x - ink.actualBoundingBoxLeft, right: x + ink.actualBoundingBoxRight,
                  top: y - ink.actualBoundingBoxAscent, bottom: y + ink.actualBoundingBoxDescent };
    const list = drawn.get(canvas.id);
    if (list && text.trim()) {
      const hasHalo = this.halo?.[0] === words.join();
      let behind = this.halo?.[1];
      if (!hasHalo) {
        const width = Math.max(1, Math.round((box.right - box.left) * scale));
        const height = Math.max(1, Math.round((box.bottom - box.top) * scale));
        const { data } = this.getImageData(Math.round(box.left * scale), Math.round(box.top * scale), width, height);
        const light = [];
        for (let at = 0; at < data.length; at += 4) light.push([data[at] + data[at + 1] + data[at + 2], at]);
        light.sort((a, b) => a[0] - b[0]);
        const at = light[light.length >> 1][1];
        behind = `rgb(${data[at]}, ${data[at + 1]}, ${data[at + 2]})`;
      }
      list.push({ text, ...box, ink: this.fillStyle, behind, alpha: this.globalAlpha });
    }
    return fillText.apply(this, words);
  };
})();
"""

# Every text that is seen, with its box on the page, its colour and what is behind it.
SEEN = """() => {
  const probe = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const rgb = (colour) => {
    probe.clearRect(0, 0, 1, 1);
    probe.fillStyle = "#000";
    probe.fillStyle = colour;
    const match = /^color\\(srgb ([\\d.]+) ([\\d.]+) ([\\d.]+)(?: \\/ ([\\d.]+))?/.exec(colour);
    if (match) return [...match.slice(1, 4).map((part) => 255 * part), match[4] === undefined ? 1 : +match[4]];
    probe.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = probe.getImageData(0, 0, 1, 1).data;
    return a ? [r, g, b, a / 255] : [0, 0, 0, 0];
  };
  const over = ([r, g, b, a], under) => [r, g, b].map((part, at) => part * a + under[at] * (1 - a));
  const behind = (element) => {
    if (!element) return rgb(getComputedStyle(document.body).backgroundColor).slice(0, 3);
    const own = rgb(getComputedStyle(element).backgroundColor);
    let under = own[3] === 1 ? own.slice(0, 3) : over(own, behind(element.parentElement));
    const fill = element.matches("td.heat") && element.querySelector(".fill");
    if (fill) {
      const style = getComputedStyle(fill);
      under = over([...rgb(style.backgroundColor).slice(0, 3), +style.opacity], under);
    }
    return under;
  };
  const light = (colour) => colour.map((part) => part / 255)
    .map((part) => (part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4))
    .reduce((sum, part, at) => sum + part * [0.2126, 0.7152, 0.0722][at], 0);
  const contrast = (ink, under) => {
    const [low, high] = [light(over(ink, under)), light(under)].sort((a, b) => a - b);
    return (high + 0.05) / (low + 0.05);
  };
  const seen = [];
  let number = 0;
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const parent = node.parentElement;
    if (!node.textContent.trim() || parent.closest("script, style, noscript, option, select, title")) continue;
    if (!parent.checkVisibility({ opacityProperty: true, visibilityProperty: true })) continue;
    number++;
    const range = document.createRange();
    range.selectNodeContents(node);
    const style = getComputedStyle(parent);
    const ink = rgb(parent instanceof SVGElement ? style.fill : style.color);
    const ratio = parent.closest(":disabled") ? 99 : contrast(ink, behind(parent));
    // A word that is scrolled out of its own box is not seen.
    let clip = { left: -Infinity, right: Infinity, top: -Infinity, bottom: Infinity };
    for (let box = parent; box; box = box.parentElement) {
      if (getComputedStyle(box).overflowX === "visible") continue;
      const { left, right, top, bottom } = box.getBoundingClientRect();
      clip = { left: Math.max(clip.left, left), right: Math.min(clip.right, right),
               top: Math.max(clip.top, top), bottom: Math.min(clip.bottom, bottom) };
    }
    for (const { left, right, top, bottom } of range.getClientRects()) {
      const box = { left: Math.max(left, clip.left), right: Math.min(right, clip.right),
                    top: Math.max(top, clip.top), bottom: Math.min(bottom, clip.bottom) };
      // Lines are higher than their letters.
      const lead = (box.bottom - box.top) * 0.16;
      if (box.right - box.left > 1 && box.bottom > box.top)
        seen.push({ text: node.textContent.trim().slice(0, 60), ...box, top: box.top + lead, bottom: box.bottom - lead,
                    where: parent.closest("[id]")?.id ?? "", ratio, number });
    }
  }
  for (const [id, texts] of drawnTexts) {
    const canvas = document.getElementById(id);
    if (!canvas?.checkVisibility()) continue;
    const place = canvas.getBoundingClientRect();
    for (const { text, ink, behind, left, right, top, bottom } of texts)
      seen.push({ text, where: id, number: ++number, ratio: contrast(rgb(ink), rgb(behind).slice(0, 3)), left: place.left + left,
                  right: place.left + right, top: place.top + top, bottom: place.top + bottom });
  }
  return seen;
}"""


def overlapping(seen):
    """Pairs of texts of which one lies on the other."""
    found = []
    seen = sorted(seen, key=lambda text: text["top"])
    for at, one in enumerate(seen):
        for other in seen[at + 1 :]:
            if other["top"] >= one["bottom"] - TOUCH:
                break
            wide = min(one["right"], other["right"]) - max(one["left"], other["left"])
            high = min(one["bottom"], other["bottom"]) - max(one["top"], other["top"])
            # A text that is cut short has two boxes.
            if wide > TOUCH and high > TOUCH and one["number"] != other["number"]:
                found.append((one["where"], one["text"], other["where"], other["text"]))
    return found


def read(page):
    page.wait_for_timeout(250)
    seen = page.evaluate(SEEN)
    assert len(seen) > 10
    faint = [(text["where"], text["text"], round(text["ratio"], 2)) for text in seen if text["ratio"] < CONTRAST]
    return overlapping(seen), sorted(set(faint))


def opened(browser, path, width, scheme, hash=""):
    context = browser.new_context(viewport={"width": width, "height": 800}, color_scheme=scheme)
    context.add_init_script(WATCH)
    page = context.new_page()
    page.goto(path.as_uri() + hash)
    page.wait_for_selector("html[data-ready]", state="attached")
    return page


@pytest.fixture(scope="module")
def pages(case, small, folder, fathom):
    paths = {"case": case[0], "small": small}
    for name in ("fit", "sweep"):
        paths[name] = folder / f"look-{name}.html"
        done = fathom.command("page", GOLDEN / f"{name}.json", "-o", paths[name])
        assert done.returncode == 0, done.stderr
    paths["diff"] = folder / "look-diff.html"
    snapshots = sorted((ROOT / "tests" / "recorded").glob("*.p*kl*"))[:2]
    done = fathom.command("diff", *snapshots, "--page", paths["diff"])
    assert done.returncode == 0, done.stderr
    return paths


# What is opened on each page, by its address.
VIEWS = {
    "case": ["", "#v=flame&by=category&y=limit", "#if=open&mib=9000&less=category:optimizer"],
    "small": ["", "#by=line&of=line", "#if=open"],
    "fit": [""],
    "sweep": [""],
    "diff": [""],
}


@pytest.mark.parametrize("name", VIEWS)
@pytest.mark.parametrize("width", [1280, 390])
def test_every_text_can_be_read(pages, browser, name, width):
    troubles = {}
    for scheme in ("light", "dark"):
        for number, hash in enumerate(VIEWS[name]):
            page = opened(browser, pages[name], width, scheme, hash)
            for details in page.locator("details").all()[:3]:
                details.evaluate("element => (element.open = true)")
            found = read(page)
            if any(found):
                troubles[f"{scheme} {hash}"] = found
            wide = page.evaluate("document.documentElement.scrollWidth")
            assert wide <= width, "the page itself never scrolls to the side"
            SCREENSHOTS.mkdir(parents=True, exist_ok=True)
            page.screenshot(path=SCREENSHOTS / f"look-{name}-{width}-{scheme}-{number}.png", full_page=True)
            page.context.close()
    assert troubles == {}


@pytest.mark.parametrize("name", VIEWS)
def test_every_text_can_be_read_on_paper(pages, browser, name):
    page = opened(browser, pages[name], 1000, "dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert read(page) == ([], [])
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"look-{name}-print.png", full_page=True)
    page.context.close()


def test_a_text_on_another_would_be_seen(browser, small):
    """The test itself: what it looks for is found."""
    page = opened(browser, small, 1280, "light")
    page.evaluate("""() => {
      const one = document.createElement("div");
      one.textContent = "lies on the verdict";
      one.id = "planted";
      const {left, top} = document.getElementById("verdict").getBoundingClientRect();
      one.style.cssText = `position: absolute; left: ${left + 20}px; top: ${top + scrollY}px; color: #999`;
      document.body.append(one);
    }""")
    over, faint = read(page)
    assert any("planted" in pair for pair in over) and [row[0] for row in faint] == ["planted"]
    page.context.close()
