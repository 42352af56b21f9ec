"""The HTML page in a real browser: moved, pressed, searched, on a phone and on paper."""

import re
from xml.etree import ElementTree

# Fixtures are used by their names.
from pages import at, browser, brushed, bytes_text, case, folder, hash_of, look, small, window  # noqa: F401


def test_wheel_drag_and_keys_move_the_window(small, look):
    page = look(small)
    whole = window(page)
    x, y = at(page)
    page.mouse.move(x, y)
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(60)
    assert window(page) == whole, "a wheel that passes by scrolls the page"
    at(page)
    page.locator("#timeline-canvas").focus()
    page.mouse.move(*at(page))
    page.mouse.wheel(0, -600)
    page.wait_for_timeout(60)
    close = window(page)
    assert close[1] - close[0] < 0.6 * (whole[1] - whole[0])
    page.mouse.down()
    page.mouse.move(x - 200, y, steps=4)
    page.mouse.up()
    page.wait_for_timeout(60)
    moved = window(page)
    assert moved[0] > close[0] and abs((moved[1] - moved[0]) - (close[1] - close[0])) < 1e-6
    for key, check in (
        ("ArrowLeft", lambda now: now[0] < moved[0]),
        ("+", lambda now: now[1] - now[0] < moved[1] - moved[0]),
        ("0", lambda now: now == whole),
    ):
        page.locator("#timeline-canvas").press(key)
        page.wait_for_timeout(60)
        assert check(window(page)), key


def test_hover_tells_of_the_allocation_under_the_pointer(case, look):
    page = look(case[0])
    tip, text = page.locator("#tip"), ""
    for shift in range(40):  # the memory may be freed at the very end
        page.mouse.move(*at(page, 0.99 - shift / 50, 0.7))
        tip.wait_for(state="visible")
        text = tip.inner_text()
        if re.search(r"^[\d.]+ [KMG]iB\s+float\w+\[[\d, ]+\]", text):
            break
        page.wait_for_timeout(50)
    assert re.search(r"^[\d.]+ [KMG]iB\s+float\w+\[[\d, ]+\]", text), text
    assert "activations" in text and "module " in text and "line examples/avatar/unet.py:" in text
    life = page.evaluate("fathom.timeline.hovered")
    asked, born, freed = page.evaluate(
        "life => [fathom.story.asked[life], fathom.story.born[life], fathom.story.freed[life]]", life
    )
    assert text.startswith(bytes_text(asked)) and born <= freed
    page.mouse.move(5, 5)
    assert tip.is_hidden()


def test_a_brushed_range_shows_what_stays(small, look):
    page = look(small)
    panel = brushed(page, 0.2, 0.24)
    kept = int(page.locator("[data-range=retained]").get_attribute("data-bytes"))
    first, last = page.evaluate("[fathom.state.now.rangeFrom, fathom.state.now.rangeTo]")
    expected = page.evaluate(
        """([first, last]) => { const s = fathom.story; let sum = 0;
           for (let i = 0; i < s.count; i++) {
             if (s.born[i] >= first && s.born[i] <= last && s.freed[i] > last) sum += s.block[i];
           }
           return sum; }""",
        [first, last],
    )
    assert kept == expected and f"ra={first}" in hash_of(page)
    page.locator("#timeline-canvas").press("Escape")
    panel.wait_for(state="hidden")


def test_dimensions_phases_and_steps(small, look):
    page = look(small)
    names = lambda: page.eval_on_selector_all("[data-band][data-bytes]", "all => all.map(e => e.dataset.band)")  # noqa: E731
    assert "encoder.layers" in names(), "activations lead, so the modules are shown first"
    page.get_by_role("button", name="Category", exact=True).click()
    page.wait_for_timeout(60)
    assert "activations" in names()
    page.get_by_role("button", name="Phase", exact=True).click()
    page.wait_for_timeout(60)
    assert "forward" in names() and "by=phase" in hash_of(page)
    page.get_by_role("button", name="Module", exact=True).click()
    page.wait_for_timeout(60)
    assert any(name.startswith("encoder") for name in names())
    assert page.evaluate("fathom.story.whenAt(fathom.story.header.peak_tick)").startswith("backward, step")


def test_treemap_and_flame_graph_lead_into_a_module(case, look):
    path, report, _ = case
    page = look(path)
    tiles = page.evaluate("fathom.momentView.drawn.length")
    assert tiles > 20
    page.get_by_role("button", name="Flame graph").click()
    page.wait_for_timeout(60)
    row = page.evaluate(
        """() => {
          const tile = fathom.momentView.drawn.find((tile) => tile.node.path && tile.node.list.length);
          return { ...tile, path: tile.node.path, node: null };
        }"""
    )
    page.locator("#moment-canvas").click(position={"x": row["x"] + row["width"] / 2, "y": row["y"] + row["height"] / 2})
    page.wait_for_timeout(60)
    assert page.locator("#moment-crumbs").inner_text().find(row["path"]) >= 0
    assert page.evaluate("fathom.state.now.mark") == "module:" + row["path"]
    # The mark is drawn in the timeline: its curve at the peak is what the report says.
    highest = page.evaluate("Math.max(...fathom.timeline.marked.values)")
    assert highest >= next(module["bytes"] for module in report["modules"] if module["path"] == row["path"])
    page.get_by_role("button", name="Source lines").click()
    page.wait_for_timeout(60)
    labels = page.evaluate("fathom.momentView.drawn.map(t => t.node.label).join('|')")
    assert "unet.py:30" in labels


def test_a_moment_is_chosen_by_click_and_slider(small, look):
    page = look(small)
    page.mouse.click(*at(page, 0.31))
    page.wait_for_timeout(60)
    moment = page.evaluate("fathom.state.now.moment")
    assert moment is not None
    allocated = page.evaluate("fathom.story.allocatedAt(fathom.state.now.moment)")
    assert int(page.locator("[data-moment=allocated]").get_attribute("data-bytes")) == allocated
    used = int(page.locator("[data-segments=used]").get_attribute("data-bytes"))
    assert used == allocated
    page.locator("#moment-slider").focus()
    page.keyboard.press("ArrowRight")
    page.wait_for_timeout(60)
    assert page.evaluate("fathom.state.now.moment") == moment + 1


def test_tables_are_searched_and_sorted(case, look):
    path, report, _ = case
    page = look(path)
    page.keyboard.press("/")
    page.keyboard.type("down1 conv2")
    page.wait_for_timeout(60)
    rows = page.locator("#table-body tbody tr")
    expected = [
        row for row in report["modules"] if "down1" in row["path"] and "conv2" in (row["path"] + row["class"]).lower()
    ]
    assert rows.count() == len(expected) > 2
    page.locator("#table-search").fill("")
    page.get_by_role("button", name="bytes", exact=True).click()
    page.wait_for_timeout(60)
    sizes = page.eval_on_selector_all("#table-body td[data-bytes]", "all => all.map(e => +e.dataset.bytes)")
    assert sizes == sorted(sizes, reverse=True) and sizes[0] == max(row["bytes"] for row in report["modules"])
    assert page.locator("th[aria-sort=descending]").count() == 1
    for name, key in (
        ("Lines", "lines"),
        ("Tensors", "tensors"),
        ("Operators", "operators"),
        ("Phases", "phases"),
        ("Ledger", "ledger"),
    ):
        page.get_by_role("button", name=name, exact=True).click()
        page.wait_for_timeout(60)
        assert rows.count() == min(60, len(report[key])), name
    page.get_by_role("button", name="Lines", exact=True).click()
    page.wait_for_timeout(60)
    rows.first.click()
    page.wait_for_timeout(60)
    assert page.evaluate("fathom.state.now.mark").startswith("line:examples/avatar/")
    assert "Hatched: line examples/avatar/" in page.locator("#mark-note").inner_text()


def test_the_address_restores_the_view(small, look):
    page = look(small)
    page.evaluate(
        """fathom.state.set({
             by: "line", from: 1000, to: 2000, moment: 1500, view: "flame", query: "layers.1", table: "modules",
             theme: "dark", mark: "module:encoder" })"""
    )
    page.wait_for_timeout(60)
    hash = hash_of(page)
    again = look(small, hash=hash)
    assert again.evaluate("JSON.stringify(fathom.state.now)") == page.evaluate("JSON.stringify(fathom.state.now)")
    assert window(again) == [1000, 2000]
    assert again.locator("#table-search").input_value() == "layers.1"
    broken = look(small, hash="#a=x&b=NaN&by=nonsense&t=1e99&i=7&tab=none&v=none&of=none")
    assert broken.locator("#verdict").inner_text()


def test_light_and_dark(small, look):
    page = look(small, color_scheme="dark")
    paper = lambda: page.evaluate("getComputedStyle(document.body).backgroundColor")  # noqa: E731
    pixel = lambda: page.evaluate(  # noqa: E731
        """() => {
          const { data } = document.getElementById("timeline-canvas").getContext("2d").getImageData(2, 2, 1, 1);
          return [...data].slice(0, 3).join();
        }"""
    )
    dark = paper()
    assert dark == "rgb(22, 24, 27)" and pixel() == "22,24,27"
    page.locator("#theme-button").click()
    page.wait_for_timeout(80)
    assert paper() == "rgb(255, 255, 255)" and pixel() == "255,255,255" and "theme=light" in hash_of(page)
    page.keyboard.press("d")
    page.wait_for_timeout(80)
    assert paper() == dark


def test_a_phone_has_room_for_it(case, look):
    page = look(case[0], width=390, height=844, has_touch=True, is_mobile=True, device_scale_factor=2)
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    canvas = page.locator("#timeline-canvas").bounding_box()
    assert canvas["width"] <= 390
    page.touchscreen.tap(*at(page, 0.95, 0.6))
    page.wait_for_timeout(80)
    assert page.evaluate("fathom.state.now.moment") is not None and page.locator("#tip").is_visible()


def test_it_prints(small, look):
    page = look(small, color_scheme="dark")
    page.evaluate("globalThis.dispatchEvent(new Event('beforeprint'))")
    page.emulate_media(media="print")
    assert page.locator("#timeline .controls").is_hidden() and page.locator("#theme-button").is_hidden()
    assert page.locator("#timeline-canvas").is_visible() and page.locator("#table-body").is_visible()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert len(page.pdf()) > 10_000


def test_a_timeline_without_a_story_keeps_still(small, look):
    """As long as a story is unpacked: whatever is done to the empty chart, nothing fails and the address stays."""
    page = look(small, hash="#a=100&b=900")
    before = page.evaluate(
        """() => {
          Object.assign(fathom.timeline, { story: null, scale: null, cells: null, stripScale: null });
          return JSON.stringify(fathom.state.now);
        }"""
    )
    page.locator("#timeline-canvas").focus()
    for key in ("ArrowLeft", "+", "p", "."):
        page.keyboard.press(key)
    page.mouse.move(*page.evaluate(CENTRE, "timeline-canvas"))
    page.mouse.wheel(0, -300)
    page.mouse.down()
    page.mouse.move(*page.evaluate(CENTRE, "overview-canvas"), steps=3)
    page.mouse.up()
    page.mouse.down()
    page.mouse.up()
    page.locator("#zoom-in").click()
    page.wait_for_timeout(80)
    assert page.evaluate("JSON.stringify(fathom.state.now)") == before


CENTRE = """id => {
  const box = document.getElementById(id).getBoundingClientRect();
  return [box.x + box.width / 2, box.y + box.height / 2];
}"""


def test_a_story_that_cannot_be_read_is_said(small, look):
    page = look(small)
    page.evaluate(
        """() => {
          fathom.contents.items.push({ ...fathom.contents.items[0] });
          fathom.storyOf = () => Promise.reject(new Error("damaged"));
          fathom.state.set({ item: 1 });
        }"""
    )
    page.wait_for_timeout(80)
    assert page.locator("#problem").inner_text() == "This browser could not read the page's data: damaged"


def test_a_key_may_come_from_no_element(small, look):
    page = look(small)
    page.evaluate("document.dispatchEvent(new KeyboardEvent('keydown', { key: 't' }))")
    assert page.evaluate("document.activeElement.id") == "timeline-canvas"


def saved(page, name, folder):
    with page.expect_download() as download:
        page.locator(f'[data-save="{name}"]').click()
    target = folder / name
    download.value.save_as(target)
    return target


def test_pictures_can_be_saved(case, look, tmp_path):
    page = look(case[0])
    for view in ("timeline", "moment", "segments"):
        svg = saved(page, f"{view}.svg", tmp_path)
        tree = ElementTree.parse(svg)
        texts = " ".join(tree.getroot().itertext())
        assert page.locator("#verdict").inner_text().removeprefix("✕").strip() in texts, view
        assert len(list(tree.iter("{http://www.w3.org/2000/svg}rect"))) > 5
        assert saved(page, f"{view}.png", tmp_path).read_bytes().startswith(b"\x89PNG")
    # What is on the canvas is in the drawing: the limit, the legend's bytes, the peak.
    texts = " ".join(ElementTree.parse(tmp_path / "timeline.svg").getroot().itertext())
    assert "limit " in texts and "refused " in texts
    assert page.locator("#timeline-legend b").first.inner_text() in texts
    # Names are text in there, too.
    assert "<script" not in (tmp_path / "moment.svg").read_text()


def test_a_range_can_be_saved_as_text(small, look, tmp_path):
    page = look(small)
    brushed(page, 0.2, 0.24)
    kept = int(page.locator("[data-range=retained]").get_attribute("data-bytes"))
    said, heads, *rows = saved(page, "range.txt", tmp_path).read_text().splitlines()
    assert heads.split("\t")[:2] == ["bytes", "blocks"] and bytes_text(kept) in said
    assert sum(int(row.split("\t")[0]) for row in rows) == kept


def test_tiles_name_their_tensors(case, look):
    page = look(case[0])
    labels = page.evaluate("fathom.momentView.drawn.map(({node}) => node.detail ?? node.label)")
    assert any(re.search(r"float\d+\[[\d, ]+\]", label) for label in labels), labels[:20]


def test_modules_fold(case, look):
    path, report, _ = case
    page = look(path)
    rows = page.locator("#table-body tbody tr")
    count = rows.count()
    listed = [row for row in report["modules"] if row["bytes"]]
    assert 3 < count < len(listed), "what is small is closed at first"
    tops = page.eval_on_selector_all(
        "#table-body tbody tr", "all => all.filter(e => e.dataset.depth === '0')"
        ".map(e => +e.querySelector('[data-bytes]').dataset.bytes)"
    )
    assert tops == sorted(tops, reverse=True) and sum(tops) == report["peak"]["allocated_bytes"]
    closed = page.locator(".fold[aria-expanded=false]").first
    name = closed.get_attribute("aria-label").removeprefix("what is in ")
    closed.click()
    page.wait_for_timeout(60)
    inner = [row for row in report["modules"] if row["path"].startswith(name + ".")]
    assert count < rows.count() <= count + len(inner)
    page.locator(f'.fold[aria-label="what is in {name}"]').click()
    page.wait_for_timeout(60)
    assert rows.count() == count


def test_an_axis_has_one_unit(small, look):
    page = look(small)
    for top in (1.9 * 2**30, 2.1 * 2**30, 700 * 2**20, 1.2 * 2**30, 40 * 2**30, 900 * 2**10):
        texts = page.evaluate("top => fathom.axis(top)", top)
        assert 3 <= len(texts) and len({text.split()[1] for text in texts[1:]}) == 1, texts
        # Round numbers: no line is at 204.8 MiB.
        assert all(len(text.split()[0]) <= 4 for text in texts), texts
