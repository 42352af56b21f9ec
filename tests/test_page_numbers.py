"""The numbers of the HTML page are those of the report and of the recording, to the byte."""

import pytest
from conftest import PYTHON, ROOT

# Fixtures are used by their names.
from pages import browser, bytes_text, case, embedded, folder, look, small  # noqa: F401

IS_WARM = True


def test_figures_are_those_of_the_json(case, look):
    path, report, _ = case
    page = look(path)
    assert embedded(path)["items"][0]["report"] == report
    assert page.locator("#verdict").inner_text().endswith("Does not fit on NVIDIA GeForce RTX 3060")
    seen = 0
    for figure in page.locator("[data-field]").all():
        value = report
        for key in figure.get_attribute("data-field").split("."):
            value = value[key]
        assert figure.get_attribute("data-bytes") == str(value)
        assert figure.inner_text() == bytes_text(value)
        seen += 1
    assert seen >= 4
    # The bar is the card where memory ran out: its parts sum to it.
    parts = page.eval_on_selector_all(
        "[data-part]", "all => all.map(e => [e.dataset.part, +e.dataset.bytes, e.textContent])"
    )
    card = next(row["bytes"] for row in report["out_of_memory"]["held"]["ledger"] if row["name"] == "card")
    assert sum(size for _, size, _ in parts) == card
    assert all(text == bytes_text(size) for _, size, text in parts)


def test_a_rank_has_what_is_not_pytorchs_and_what_is_shared(fathom, folder, look):
    code = """
import torch
torch.distributed.init_process_group("nccl", device_id=torch.device("cuda:0"))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, 1024).cuda())
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
batch = torch.ones(2, 1024, device="cuda")
model(batch).sum().backward()
batch.record_stream(torch.cuda.Stream())
del batch
optimizer.step()
"""
    path = folder / "rank.html"
    report, done = fathom(PYTHON, "-c", code, flags=("--gpu", "rtx3090", "--world-size", "4", "--page", path))
    assert done.returncode == 0, done.stderr
    page = look(path)
    parts = page.eval_on_selector_all("[data-part]", "all => all.map(e => [e.dataset.part, +e.dataset.bytes])")
    assert sum(size for _, size in parts) == report["gpu"]["memory_bytes"]
    assert dict(parts)["NCCL (modelled)"] == report["peak"]["nccl_bytes"] > 0
    late = page.locator("[data-field='deferred_frees.late.reserved_bytes']").get_attribute("data-bytes")
    assert int(late) == report["deferred_frees"]["late"]["reserved_bytes"]
    page.locator("#table-tabs [data-value=areas]").click()
    page.locator("[data-table=areas] td[data-bytes]").first.wait_for()
    rows = page.eval_on_selector_all("[data-table=areas] td[data-bytes]", "all => all.map(e => +e.dataset.bytes)")
    assert rows == [row["bytes"] for row in report["areas"]] != []


def by_category(page):
    """A timeline whose activations lead opens by module."""
    page.get_by_role("button", name="Category", exact=True).click()
    page.wait_for_timeout(60)


def test_the_story_sums_to_the_report(case, look):
    path, report, _ = case
    page = look(path)
    by_category(page)
    bands = dict(
        page.eval_on_selector_all("[data-band][data-bytes]", "all => all.map(e => [e.dataset.band, +e.dataset.bytes])")
    )
    expected = {row["name"].replace("_", " "): row["bytes"] for row in report["categories"] if row["bytes"]}
    assert bands == expected
    assert int(page.locator("[data-moment=allocated]").get_attribute("data-bytes")) == report["peak"]["allocated_bytes"]
    # Every node of the tree of modules has the bytes that the report gives the module.
    nodes = page.evaluate(
        """() => {
          const all = {};
          const walk = (node) => {
            if (node.path && node.path !== "?") all[node.path] = node.bytes;
            node.list.forEach(walk);
          };
          walk(fathom.momentView.tree.root);
          return all;
        }"""
    )
    assert nodes == {row["path"]: row["bytes"] for row in report["modules"] if row["path"] and row["bytes"]}
    reserved = int(page.locator("[data-segments=reserved]").get_attribute("data-bytes"))
    assert reserved == next(row["bytes"] for row in report["peak_ledger"] if row["name"] == "reserved")
    ledger = {row["name"]: row["bytes"] for row in report["peak_ledger"]}
    used = {
        name: int(page.locator(f"[data-segments={name}]").get_attribute("data-bytes"))
        for name in ("used", "pieces", "whole")
    }
    assert used == {
        "used": ledger["tensors"] + ledger["rounding"],
        "pieces": ledger["cached_fragments"],
        "whole": ledger["cached_segments"],
    }


def test_coarse_and_exact_curves_agree(small, look):
    page = look(small)
    for name in ("category", "module", "phase", "line"):
        wrong = page.evaluate(
            """name => {
              const { story } = fathom;
              fathom.state.set({ by: name });
              return new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => {
                const { cells } = fathom.timeline, banding = story.banding(name), wrong = [];
                for (let cell = 0; cell < cells.count; cell += 37) {
                  const sums = new Array(cells.bands).fill(0), tick = cells.shown[cell];
                  story.forAlive(tick, life => {
                    sums[banding.band[life]] += banding.bytes[life];
                    if (banding.rounding >= 0) sums[banding.rounding] += story.block[life] - banding.bytes[life];
                  });
                  const drawn = cells.sums.subarray(cell * cells.bands);
                  sums.forEach((sum, band) => sum !== drawn[band] && wrong.push([tick, band]));
                }
                done({ wrong, count: cells.count });
              })));
            }""",
            name,
        )
        assert wrong["wrong"] == [] and wrong["count"] > 100, name


@pytest.mark.parametrize(
    "path", [*sorted((ROOT / "tests/recorded").glob("*.p*kl*")), "case"], ids=lambda path: str(path)[-12:]
)
def test_every_view_agrees_at_the_peak(path, case, fathom, folder, look):
    """Snapshots of real cards, and the case study: what the page sums up is what the report says, to the byte."""
    page = case[0]
    if path != "case":
        page = folder / f"{path.name}.html"
        done = fathom.command("page", path, "-o", page)
        assert done.returncode == 0, done.stderr
    report = embedded(page)["items"][0]["report"]
    opened = look(page)
    ledger = {row["name"]: row["bytes"] for row in report["peak_ledger"]}
    story = opened.evaluate(
        """() => { const { story } = fathom, { header } = story;
           const sum = name => +document.querySelector(`[data-segments=${name}]`).dataset.bytes;
           const peaks = [story.allocatedAt(header.peak_tick), story.reservedAt(header.reserved_peak_tick)];
           return [...peaks, ...["reserved", "used", "pieces", "whole"].map(sum)]; }"""
    )
    peak = report["peak"]
    held = ledger["tensors"] + ledger["rounding"]
    assert story == [
        peak["allocated_bytes"],
        peak["reserved_bytes"],
        ledger["reserved"],
        held,
        ledger["cached_fragments"],
        ledger["cached_segments"],
    ]
    if path != "case":
        assert (
            opened.locator("#verdict")
            .inner_text()
            .endswith(f"Peaks at {bytes_text(peak['allocated_bytes'])} allocated")
        )
        assert opened.evaluate("fathom.state.now.by") == "category", "inferred names tell more than lines"


@pytest.mark.parametrize("window", [None, (2000, 5000), (7000, 7060)], ids=str)
def test_a_mark_has_the_bytes_of_its_lives(window, small, look):
    page = look(small)
    wrong = page.evaluate(
        """async (window) => {
          const [from, to] = window ?? [null, null], { story, state, timeline } = fathom;
          state.set({ mark: "module:encoder.layers.3", from, to });
          for (let frame = 0; frame < 3; frame++) await new Promise(requestAnimationFrame);
          const { cells, marked } = timeline, wrong = [];
          for (let cell = 0; cell < cells.count; cell += 11) {
            let sum = 0;
            story.forAlive(cells.shown[cell], (life) => {
              if (story.about(story.kind[life]).module === "encoder.layers.3") sum += story.block[life];
            });
            if (sum !== marked.values[cell]) wrong.push([cells.shown[cell], sum, marked.values[cell]]);
          }
          return [wrong, Math.max(...marked.values)];
        }""",
        window,
    )
    assert wrong[0] == [] and wrong[1] > 16 << 20


def test_the_block_under_the_pointer_is_the_one_that_is_outlined(small, look):
    """In every band, at every height: what lies below a life, and its own bytes, enclose the place."""
    page = look(small)
    by_category(page)
    wrong = page.evaluate(
        """() => {
          const { story, timeline } = fathom, { cells, scale } = timeline, wrong = [];
          let seen = 0;
          for (let x = 0.03; x < 1; x += 0.06) for (let y = 0.02; y < 1; y += 0.05) {
            const [px, py] = [scale.left + x * scale.plotWidth, scale.head + y * scale.plotHeight];
            const under = timeline.under(px, py);
            if (!under || under.life < 0) continue;
            seen++;
            const cell = Math.floor(scale.tick(px) / cells.size) - cells.first, bands = story.banding("category");
            const lower = cells.sums.slice(cell * cells.bands, cell * cells.bands + under.band);
            const bottom = lower.reduce((sum, bytes) => sum + bytes, 0);
            const inBand = scale.bytes(py) - bottom;
            let below = 0;
            const isTall = new Set(story.columns.tall);
            story.forAlive(under.tick, (other) => {
              if (bands.band[other] !== under.band || other === under.life) return;
              const isLower = isTall.has(other) === isTall.has(under.life) ? other < under.life : isTall.has(other);
              if (isLower) below += bands.bytes[other];
            });
            if (!(below <= inBand && inBand < below + bands.bytes[under.life])) wrong.push([x, y]);
          }
          return [wrong, seen];
        }"""
    )
    assert wrong[0] == [] and wrong[1] > 50
