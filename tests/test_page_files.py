"""What a page is made from: runs, folders, JSON of other commands, strangers' names, a million events."""

import json
import shutil

import pytest
from conftest import PYTHON, ROOT, SCRIPTS

# Fixtures are used by their names.
from pages import browser, bytes_text, case, embedded, folder, hash_of, look, million  # noqa: F401

IS_WARM = True

GOLDEN = ROOT / "tests" / "golden" / "page"
EVIL = "<script>alert(1)</script>"
# A module with such a name, in a file whose name has quotes and a tag.
EVIL_SCRIPT = f"""
import torch
class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.add_module("{EVIL}", torch.nn.Linear(512, 512))
    def forward(self, x):
        return getattr(self, "{EVIL}")(x)
model = Model().to("cuda")
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    model(torch.randn(64, 512, device="cuda")).sum().backward()
    optimizer.step()
"""


@pytest.fixture(scope="module")
def evil(fathom, folder):
    script = folder / "we\"ird' <b>.py"
    script.write_text(EVIL_SCRIPT)
    page = folder / "evil.html"
    report, done = fathom(PYTHON, script, flags=("--page", page, "--gpu", "rtx3090"))
    assert done.returncode == 0, done.stderr
    return page, report


def test_names_cannot_inject(evil, look):
    path, report = evil
    page = look(path)
    text = path.read_text()
    assert EVIL not in text
    assert any(EVIL in row["path"] for row in report["modules"])
    assert embedded(path)["items"][0]["report"] == report
    page.locator("#table-search").fill("alert")
    page.wait_for_timeout(60)
    assert EVIL in page.locator("#table-body").inner_text()
    for view in ("treemap", "flame"):
        page.evaluate("view => fathom.state.set({ view, tree: 'line' })", view)
        page.wait_for_timeout(60)
    assert "we\"ird' <b>.py" in page.evaluate("fathom.momentView.drawn.map(t => t.node.path).join('|')")
    assert page.locator("b", has_text=".py").count() == 0 and page.locator("script").count() == 3
    # Were a script to get in all the same, the policy would not let it run.
    page.evaluate(
        """() => {
          const script = document.createElement("script");
          script.textContent = "globalThis.got = 1";
          document.body.append(script);
        }"""
    )
    page.wait_for_timeout(60)
    assert page.evaluate("globalThis.got") is None
    assert ["Content Security Policy" in trouble for trouble in look.troubles] == [True]
    look.troubles.clear()


def test_a_folder_gives_the_page_of_its_run(case, fathom, look):
    path, report, kept = case
    again = path.parent / "again.html"
    done = fathom.command("page", kept, "-o", again)
    assert done.returncode == 0 and str(again) in done.stdout, done.stderr
    contents = embedded(again)
    assert contents["items"][0]["report"] == report and contents["items"][0]["has_story"]
    page = look(again)
    assert "Does not fit" in page.locator("#verdict").inner_text()


def test_a_report_without_a_recording(case, fathom, folder, look):
    done = fathom.command("page", case[2] / "report.json", "-o", folder / "report.html")
    assert done.returncode == 0, done.stderr
    page = look(folder / "report.html")
    assert "Does not fit" in page.locator("#verdict").inner_text()
    assert page.locator("#timeline").is_hidden() and page.locator("#moment").is_hidden()
    assert 0 < page.locator("#table-body tbody tr").count() < 60, "modules are folded"
    page.get_by_role("button", name="bytes", exact=True).click()
    page.locator("#table-body tbody tr").nth(59).wait_for()
    assert page.locator("#table-body tbody tr").count() == 60


def test_several_files_on_one_page(case, fathom, folder, look):
    path = folder / "several.html"
    snapshot = ROOT / "tests/recorded/kdr2-t2-None_fwd-eager_bwd.pickle"
    done = fathom.command("page", case[2], snapshot, "-o", path)
    assert done.returncode == 0, done.stderr
    page = look(path)
    choice = page.locator("#item-select")
    assert choice.is_visible() and choice.locator("option").all_inner_texts() == ["case", snapshot.name]
    assert "Does not fit" in page.locator("#verdict").inner_text()
    choice.select_option("1")
    page.wait_for_timeout(200)
    assert page.locator("#verdict").inner_text().find("Peaks at") >= 0 and page.locator("#timeline").is_visible()
    peak = embedded(path)["items"][1]["report"]["peak"]["allocated_bytes"]
    assert int(page.locator("[data-moment=allocated]").get_attribute("data-bytes")) == peak


def test_findings_plans_and_sweeps(case, fathom, folder, look):
    _, report, kept = case
    run = folder / "with-findings"
    shutil.copytree(kept, run)
    finding = json.loads((GOLDEN / "finding.json").read_text())
    (run / "report.json").write_text(json.dumps({**report, "findings": [finding]}))
    path = folder / "all.html"
    done = fathom.command("page", run, GOLDEN / "fit.json", GOLDEN / "sweep.json", "-o", path)
    assert done.returncode == 0, done.stderr
    page = look(path)
    finding = page.locator("[data-finding=kept-outputs]")
    finding.locator("summary").first.click()
    for text in (
        "Outputs are kept",
        "3.0 MiB",
        "A list keeps every output.",
        "Grows with steps.",
        "3.0 MiB 12 ×",
        "keep numbers, not graphs · exact",
    ):
        assert text in finding.inner_text(), text
    finding.get_by_role("button").nth(1).click()
    page.wait_for_timeout(80)
    down1 = next(row["bytes"] for row in report["modules"] if row["path"] == "down1")
    assert page.evaluate("Math.max(...fathom.timeline.marked.values)") >= down1
    plans = page.locator("#plans")
    for text in (
        "amp-bf16 + accumulate 4 chosen",
        "too much by 1.00 GiB",
        "checkpoint a, b, c and 2 more",
        "33 % more operations (modelled)",
        "lora: no linear layers",
        "<b>autocast</b>",
    ):
        assert text in plans.text_content(), text
    sweeps = page.locator("#sweeps")
    assert sweeps.locator("td.heat").count() == 6 and sweeps.locator("td.heat.not").all_inner_texts() == [
        "✕ ~ 1.00 GiB"
    ]
    assert sweeps.locator("polyline").count() == 2 and sweeps.locator("circle.open").count() == 1
    assert (
        "with size 256: the largest batch that fits is 2" in sweeps.inner_text()
        and "no size fits" in sweeps.inner_text()
    )


def test_plans_alone(fathom, tmp_path, look):
    done = fathom.command("page", GOLDEN / "fit.json", "-o", tmp_path / "fit.html")
    assert done.returncode == 0, done.stderr
    page = look(tmp_path / "fit.html")
    assert (
        page.locator("#plans").is_visible()
        and page.locator("#summary").is_hidden()
        and page.locator("#tables").is_hidden()
    )
    assert page.locator("#plans h1").inner_text() == "✓Fits rtx3060-12g with amp-bf16 + accumulate 4"
    assert "Needs 8.00 GiB of 12.00 GiB (run)" in page.locator("#plans .answer").inner_text()
    # What is drawn is what the table says: lower needs lower, what is dearer further to the right.
    dots = page.eval_on_selector_all(
        "#plans circle", "all => all.map(e => [e.classList.contains('fits'), +e.getAttribute('cx'), +e.getAttribute('cy')])"
    )
    line = float(page.locator("#plans line.limit").get_attribute("y1"))
    assert [fits for fits, *_ in dots] == [False, True, False] == [line < y for *_, y in dots]
    assert dots[0][1] == dots[1][1] < dots[2][1]
    # As wide as there is room, with texts of one size.
    page.set_viewport_size({"width": 390, "height": 800})
    page.wait_for_function("document.querySelector('#plans svg').viewBox.baseVal.width <= 390")
    assert page.evaluate("document.querySelector('#plans svg').getBoundingClientRect().width") <= 390


def test_a_sweep_alone(fathom, tmp_path, look):
    answer = json.loads((GOLDEN / "sweep.json").read_text())
    (tmp_path / "none.json").write_text(json.dumps({**answer, "largest": [{**answer["largest"][0], "value": None}]}))
    assert fathom.command("page", GOLDEN / "sweep.json", "-o", tmp_path / "sweep.html").returncode == 0
    page = look(tmp_path / "sweep.html")
    assert page.locator("#sweeps h1").inner_text() == "✓Largest batch that fits: 2 on rtx3090, size 256"
    assert page.locator("#sweeps circle.ring").count() == 1
    assert "3 of 6 were run" in page.locator("#sweeps .answer").inner_text()
    assert fathom.command("page", tmp_path / "none.json", "-o", tmp_path / "none.html").returncode == 0
    assert look(tmp_path / "none.html").locator("#sweeps h1").inner_text() == "✕No batch fits"


@pytest.mark.parametrize(
    "words, error, hint",
    [
        (["nowhere.fathom"], "`nowhere.fathom` was not found", "hint:"),
        ([SCRIPTS], "holds no recording and no `report.json`", "fathom run --out"),
        (["other.json"], "its schema is `fathom.oom/1`", "fathom.fit/1"),
        (["broken.json"], "is not whole JSON", "--json"),
        (["same.json", "-o", "same.json"], "is both read and written", "-o"),
    ],
)
def test_bad_input_is_named(fathom, tmp_path, words, error, hint):
    (tmp_path / "other.json").write_text('{"schema": "fathom.oom/1"}')
    (tmp_path / "broken.json").write_text('{"schema": ')
    (tmp_path / "same.json").write_text('{"schema": "fathom.fit/1"}')
    done = fathom.command("page", *words, cwd=tmp_path)
    assert done.returncode == 2 and error in done.stderr and hint in done.stderr, done.stderr
    assert "panicked" not in done.stderr and not (tmp_path / "report.html").exists()


def test_a_million_events(million, look):
    """Generous bounds, for machines that are busy; `bench/page.py` has the strict ones."""
    size = million.stat().st_size
    assert size < 15_000_000
    page = look(million)
    ready = float(page.evaluate("document.documentElement.dataset.ready"))
    frames = page.evaluate(
        """async () => {
          const gaps = [];
          fathom.state.set({ from: fathom.story.ticks * 0.2, to: fathom.story.ticks * 0.6 });
          let last = await new Promise(requestAnimationFrame);
          for (let i = 0; i < 60; i++) {
            fathom.gestures.pan(0.005);
            const now = await new Promise(requestAnimationFrame);
            gaps.push(now - last);
            last = now;
          }
          return gaps.sort((a, b) => a - b);
        }"""
    )
    print(f"a million events: {size / 2**20:.1f} MiB, ready after {ready:.0f} ms")
    print(f"frames of {frames[30]:.1f} ms, 95 % of them within {frames[57]:.1f} ms")
    assert ready < 10_000 and frames[30] < 100


def test_ranks_and_files_stand_side_by_side(case, fathom, folder, look):
    _, report, kept = case
    several = folder / "several.html"
    ranks = [
        {
            "rank": rank, "asked": True, "verdict": "fits", "steps": 3, "peak_allocated_bytes": bytes_,
            "peak_reserved_bytes": bytes_, "device_bytes": bytes_, "phase": "backward", "step": 2,
            "categories": [{"name": "weights", "bytes": bytes_}], "wall_seconds": 1.0,
        }
        for rank, bytes_ in ((0, 2 << 30), (3, 3 << 30))
    ]  # fmt: skip
    (folder / "ranked.json").write_text(json.dumps({**report, "ranks": ranks}))
    assert fathom.command("page", folder / "ranked.json", "-o", several).returncode == 0
    page = look(several)
    assert page.locator("#sides-title").inner_text() == "rank 3 needs most: 3.00 GiB, 50 % more than rank 0"
    files = sorted((ROOT / "tests" / "recorded").glob("*.p*kl*"))[:2]
    assert fathom.command("page", *files, "-o", several).returncode == 0
    page = look(several)
    peaks = [item["report"]["peak"]["allocated_bytes"] for item in embedded(several)["items"]]
    shown = page.eval_on_selector_all("#sides [data-bytes]", "all => all.map(e => +e.dataset.bytes)")
    assert shown == peaks and "needs most" in page.locator("#sides-title").inner_text()
    most = peaks.index(max(peaks))
    assert most == int(page.locator("#item-select").input_value()), "the one that needs most is seen first"
    assert bytes_text(peaks[most]) in page.locator("#verdict").inner_text()
    assert fathom.command("page", *reversed(files), "-o", several).returncode == 0
    page = look(several)
    assert bytes_text(peaks[most]) in page.locator("#verdict").inner_text()
    page.locator("#sides button").nth(most).click()
    page.wait_for_function(f"fathom.state.now.item === {most}")
    again = look(several, hash=hash_of(page))
    assert again.locator("#item-select").input_value() == str(most)


def changed(case, folder, name, **changes):
    """The run of a case with another report."""
    _, report, kept = case
    run = folder / name
    shutil.copytree(kept, run)
    (run / "report.json").write_text(json.dumps({**report, **changes}))
    return run


def test_what_a_run_needs_that_had_no_room(case, fathom, folder, look):
    report = case[1]
    limit = report["gpu"]["memory_bytes"] - report["gpu"]["context_bytes"]
    line = f"DOES NOT FIT  {report['gpu']['title']}: needs 20.00 ± 0.40 GiB, 8.24 GiB more than its 11.76 GiB; ran out of memory"
    for name, need in (("near", limit + (1 << 30)), ("far", limit * 9)):
        need += report["gpu"]["context_bytes"]
        beyond = {"need": {"bytes": need, "error_bytes": 1 << 20, "known": "run"}, "allocated_bytes": need}
        beyond |= {"phase": "backward", "step": 2, "raised_by": None, "cause": None, "failure": None}
        run = changed(case, folder, name, beyond=beyond, headline=line)
        assert fathom.command("page", run, "-o", folder / "needs.html").returncode == 0
        page = look(folder / "needs.html")
        reason = page.locator("#reason").inner_text()
        assert reason.startswith("Needs 20.00 ± 0.40 GiB, 8.24 GiB more than its 11.76 GiB") and "tried to allocate" in reason
        assert page.evaluate("fathom.timeline.needed") == need - report["gpu"]["context_bytes"]
        # A need that is near belongs into the picture; one that is far would leave no room for what was.
        assert (page.evaluate("fathom.timeline.scale.top") > need) == (name == "near")


@pytest.mark.parametrize(
    ("changes", "verdict", "reason"),
    [
        (
            {"verdict": "fits_if", "judgement": "depends", "full_after_steps": 3692, "out_of_memory": None, "failure": None,
             "headline": "DEPENDS  needs 2.00 GiB; every step keeps 4.0 MiB more: full after 3,692 steps"},
            "Fits on NVIDIA GeForce RTX 3060 for 3,692 steps only",
            "Needs 2.00 GiB; every step keeps 4.0 MiB more: full after 3,692 steps.",
        ),
        (
            {"verdict": "grew", "judgement": "grew", "out_of_memory": None, "failure": None,
             "headline": "GREW  needs 2.00 GiB, the baseline 1.00 GiB"},
            "Needs more than its baseline allows",
            "Needs 2.00 GiB, the baseline 1.00 GiB.",
        ),
        (
            {"verdict": "timed_out", "judgement": "timed_out", "out_of_memory": None, "failure": None,
             "headline": "TIMED OUT  after 8 s, needs at least 2.00 GiB"},
            "Timed out",
            "After 8 s, needs at least 2.00 GiB.",
        ),
    ],
)  # fmt: skip
def test_the_first_screen_says_no_less_than_the_headline(case, fathom, folder, look, changes, verdict, reason):
    path = folder / "said.json"
    path.write_text(json.dumps({**case[1], **changes}))
    assert fathom.command("page", path, "-o", folder / "said.html").returncode == 0
    page = look(folder / "said.html")
    assert page.locator("#verdict").inner_text().split("\n")[-1].endswith(verdict)
    assert page.locator("#reason").inner_text().startswith(reason)


def test_a_whole_path_is_shown_by_its_end(fathom, folder, look):
    snapshot = ROOT / "tests/recorded/kdr2-t2-None_fwd-eager_bwd.pickle"
    path = folder / "paths.html"
    assert fathom.command("page", snapshot, "-o", path).returncode == 0
    whole = next(f"{row['file']}:{row['line']}" for row in embedded(path)["items"][0]["report"]["lines"] if row["file"][:1] == "/")
    page = look(path, hash="#tab=lines")
    cell = page.locator(f"td[title='{whole}']").first
    assert cell.inner_text() == "/".join(whole.split("/")[-3:]) != whole
    page.locator("#table-search").fill(whole)
    page.wait_for_timeout(80)
    assert page.locator("#table-body tbody tr").count() >= 1 and cell.is_visible()


def test_what_is_explained_can_be_a_page(fathom, tmp_path, look):
    file = ROOT / "tests" / "recorded" / "kdr2-t2-None_fwd-eager_bwd.pickle"
    page, target = tmp_path / "page.html", tmp_path / "explained.html"
    assert fathom.command("page", file, "-o", page).returncode == 0
    assert fathom.command("explain", file, "--page", target).returncode == 0
    assert target.read_text() == page.read_text()
    log = tmp_path / "train.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.")
    done = fathom.command("explain", log, "--page", tmp_path / "no.html")
    assert done.returncode == 2 and "`--page` needs a recording" in done.stderr and "hint:" in done.stderr
