"""`fathom diff`: what grew and what shrank, between two commits, two configurations, two snapshots.

The texts are reviewed line by line in tests/golden/diff; refreshed with UPDATE_GOLDEN=1.
"""

import json
import os
import re
import shutil
from pathlib import Path

import pytest
from conftest import PYTHON, ROOT, WIDTH

# Fixtures are used by their names.
from pages import SCREENSHOTS, browser, bytes_text, embedded, hash_of, look  # noqa: F401

IS_WARM = True

GOLDEN = ROOT / "tests" / "golden" / "diff"
RECORDED = ROOT / "tests" / "recorded"
SNAPSHOTS = Path(os.environ.get("FATHOM_SNAPSHOTS", ROOT.parent / "shared" / "data" / "snapshots"))
DIMENSIONS = ("categories", "modules", "operators", "lines", "tensors")
BEFORE, AFTER = "uni3d-dp3/stated", "uni3d-dp3/optimised"
MIB = 2**20

# A commit before and after: the second adds an average of the weights, and with it lines above what was there.
COMMIT = """\
import torch
from torch import nn

class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.up, self.down = nn.Linear(512, 2048), nn.Linear(2048, 512)

    def forward(self, x):
        return x + self.down(self.up(x).relu())

def train():
    model = nn.Sequential(*(Block() for _ in range(4))).cuda()
    optimizer = torch.optim.AdamW(model.parameters())
    for step in range(2):
        loss = model(torch.randn(256, 512, device="cuda")).square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()

train()
"""
WITH_EMA = COMMIT.replace("import torch\n", "import copy\n\nimport torch\n", 1).replace(
    "    optimizer =", "    # An average of the weights.\n    average = copy.deepcopy(model).requires_grad_(False)\n    optimizer ="
)
# The same model in a wrapper, under other names.
WRAPPED = (
    COMMIT.replace("self.up, self.down", "self.first, self.second")
    .replace("self.down(self.up(x)", "self.second(self.first(x)")
    .replace("def train", """class Wrapper(nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, x):
        return self.module(x)

def train""")
    .replace("model = nn.Sequential(*(Block() for _ in range(4)))", "model = Wrapper(nn.Sequential(*(Block() for _ in range(4))))")
)
PARAMETERS = 4 * (512 * 2048 * 2 + 512 + 2048)


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    """The width of the golden texts."""
    monkeypatch.setitem(WIDTH, "COLUMNS", "100")


@pytest.fixture(scope="module")
def commits(fathom, tmp_path_factory):
    """Runs of one file, whose text is another each time; in the end there is none."""
    folder = tmp_path_factory.mktemp("commits")
    script = folder / "train.py"
    for name, text in (("before", COMMIT), ("ema", WITH_EMA), ("wrapped", WRAPPED)):
        script.write_text(text)
        _, done = fathom(PYTHON, "train.py", flags=("--gpu", "rtx3090", "--out", folder / name), cwd=folder)
        assert done.returncode == 0, done.stderr
        recording = next((folder / name).glob("*.fathom"))
        fathom.command("explain", recording, "--snapshot", folder / f"{name}.pickle")
    script.unlink()
    return folder


@pytest.fixture
def diff(fathom, tmp_path):
    """`fathom diff A B --json --markdown`: the answer, the text and the Markdown; every dimension sums up."""

    def run(a, b, **options):
        paths = tmp_path / "diff.json", tmp_path / "diff.md"
        done = fathom.command("diff", a, b, "--json", paths[0], "--markdown", paths[1], **options)
        assert done.returncode == 0, done.stderr
        answer = json.loads(paths[0].read_text())
        check_sums(answer)
        return answer, done.stdout, paths[1].read_text()

    return run


def check_sums(answer):
    assert answer["schema"] == "fathom.diff/1"
    delta = answer["b"]["allocated_bytes"] - answer["a"]["allocated_bytes"]
    assert answer["peak_delta_bytes"] == delta
    for dimension in DIMENSIONS:
        for side in "ab":
            whole = answer[side]["allocated_bytes"]
            assert sum(row[f"{side}_bytes"] for row in answer[dimension]) == whole, (dimension, side)
        assert sum(row["delta_bytes"] for row in answer[dimension]) == delta, dimension


def golden(name, text, *folders):
    """Compares with what was reviewed; folders of this run are named by their order."""
    for number, folder in enumerate(folders):
        text = text.replace(str(folder), "AB"[number])
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN") == "1":
        path.write_text(text, encoding="utf-8")
    wanted = path.read_text(encoding="utf-8")
    versions = [set(re.findall(r"torch \S+", one)) for one in (wanted, text)]
    if versions[0] != versions[1]:
        pytest.skip(f"NOT COMPARED: {name} was made with {versions[0]}, here is {versions[1]}")
    # Lines are as long as the folders' names are here: words count, not where a line ends.
    assert text.split() == wanted.split(), "intended? then look at each line, and run with UPDATE_GOLDEN=1"


# -- two commits ----------------------------------------------------------------------------------------


def test_a_commit_that_adds_an_average(commits, diff):
    answer, text, markdown = diff("before", "ema", cwd=commits)
    golden("ema.txt", text)
    golden("ema.md", markdown)
    assert text in (ROOT / "docs" / "reference" / "diff.md").read_text(encoding="utf-8"), "the manual shows this answer"
    assert text.splitlines()[0].startswith("B needs 32.0 MiB more than A at its peak")
    assert answer["peak_delta_bytes"] == pytest.approx(4 * PARAMETERS, rel=0.01)
    changed = {row["name"]: row for row in answer["categories"] if row["delta_bytes"]}
    assert changed["model_copies"] == {
        "name": "model_copies", "a_bytes": 0, "b_bytes": 4 * PARAMETERS, "delta_bytes": 4 * PARAMETERS, "status": "new",
    }  # fmt: skip
    new = [row for row in answer["lines"] if row["status"] == "new"]
    assert [(row["source"], row["line"]) for row in new] == [
        ("average = copy.deepcopy(model).requires_grad_(False)", 17)
    ]
    # Everything else stands two or four lines further down, and is known again.
    moved = {row["source"]: (row["was"]["line"], row["line"]) for row in answer["lines"] if row["was"]}
    assert moved["optimizer.step()"] == (18, 22) and moved["return x + self.down(self.up(x).relu())"] == (10, 12)
    assert not [row for row in answer["lines"] if row["status"] == "gone"]
    assert [row["id"] for row in answer["findings"] if row["status"] == "new"] == ["model-copies"]


def test_the_other_way_round_has_the_other_sign(commits, diff):
    there, _, _ = diff("before", "ema", cwd=commits)
    back, text, _ = diff("ema", "before", cwd=commits)
    assert back["peak_delta_bytes"] == -there["peak_delta_bytes"] and "B needs 32.0 MiB less than A" in text
    for dimension in DIMENSIONS:
        deltas = [sorted(row["delta_bytes"] for row in answer[dimension]) for answer in (there, back)]
        assert deltas[0] == sorted(-delta for delta in deltas[1]), dimension


def test_nothing_differs_from_itself(commits, diff):
    answer, text, _ = diff("ema", "ema", cwd=commits)
    assert text.splitlines()[0].startswith("B needs as much as A at its peak: ")
    assert not [row for dimension in DIMENSIONS for row in answer[dimension] if row["status"] != "same"]
    assert len(text.splitlines()) == 7 and not answer["renamed"]


def test_renamed_modules_are_known_by_their_shapes(commits, diff):
    answer, text, _ = diff("before", "wrapped", cwd=commits)
    # Gradients have the names of their parameters from the first step on: all is where it was.
    assert not [row["path"] for row in answer["modules"] if row["delta_bytes"]]
    was = {row["path"]: row["was"] for row in answer["modules"] if row["was"]}
    layers = (("first", "up"), ("second", "down"))
    renamed = {f"module.{n}.{new}": f"{n}.{old}" for n in range(4) for new, old in layers}
    assert was == {"module": "Sequential", **{f"module.{n}": str(n) for n in range(4)}, **renamed}
    assert answer["renamed"] == [
        "5 modules known again without `module`",
        "`module.{0-3}.first` was `{0-3}.up`: 4 modules known again by class and shapes",
        "`module.{0-3}.second` was `{0-3}.down`: 4 modules known again by class and shapes",
    ]
    assert "note     `module.{0-3}.first` was" in text
    assert not [row for row in answer["tensors"] if row["delta_bytes"] and row["category"] == "weights"]


def test_snapshots_have_no_texts_but_an_order(commits, diff):
    answer, text, _ = diff("before.pickle", "ema.pickle", cwd=commits)
    golden("ema-snapshots.txt", text)
    new = [row for row in answer["lines"] if row["status"] == "new"]
    assert [(row["file"], row["line"]) for row in new] == [("train.py", 17)]


def test_a_report_is_a_side_too(commits, diff):
    answer, text, _ = diff("before/report.json", "ema", cwd=commits)
    whole, _, _ = diff("before", "ema", cwd=commits)
    assert answer["categories"] == whole["categories"] and answer["findings"] == whole["findings"]
    assert [row["delta_bytes"] for row in answer["lines"]] == [row["delta_bytes"] for row in whole["lines"]]
    assert "A is a report, which lists its largest tensors" in text
    copies = [row for row in answer["tensors"] if row["category"] == "model_copies"]
    assert sum(row["delta_bytes"] for row in copies) == 8 * 512 * 2048 * 4


# -- on a page ----------------------------------------------------------------------------------------------


def test_a_page_of_two_runs(commits, fathom, tmp_path, look):
    path = tmp_path / "diff.html"
    done = fathom.command("diff", "before", "ema", "--page", path, cwd=commits)
    assert done.returncode == 0, done.stderr
    (answer,) = embedded(path)["documents"]
    assert [item["name"] for item in embedded(path)["items"]] == ["A · before", "B · ema"]
    page = look(path)
    section = page.locator("#differences")
    assert section.locator(".answer").inner_text().startswith(done.stdout.splitlines()[0])
    assert section.locator("canvas").count() == 2
    # Activations are gone at both peaks, but drawn.
    assert {"activations", "model copies", "reserved"} <= set(section.locator(".legend li").all_inner_texts())
    colours = """canvas => new Set(new Uint32Array(
        canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data.buffer)).size"""
    assert all(canvas.evaluate(colours) > 8 for canvas in section.locator("canvas").all()), "both timelines are drawn"
    for name in ("Causes", "Modules", "Lines", "Tensors", "Operators", "Phases", "Categories"):
        section.get_by_role("button", name=name, exact=True).click()
        page.wait_for_timeout(60)
        cells = section.locator(".controls + .scroll [data-delta]")
        deltas = cells.evaluate_all("all => all.map(e => +e.dataset.delta)")
        assert deltas and deltas == sorted(deltas, key=lambda delta: -abs(delta)), name
        if name not in ("Causes", "Phases"):
            assert sum(deltas) == answer["peak_delta_bytes"], name
        assert cells.first.inner_text() == ("+" if deltas[0] > 0 else "−") + bytes_text(abs(deltas[0]))
    section.get_by_role("button", name="Lines", exact=True).click()
    again = look(path, hash=hash_of(page), color_scheme="dark")
    assert "average = copy.deepcopy(model)" in again.locator("#differences").inner_text()
    SCREENSHOTS.mkdir(parents=True, exist_ok=True)
    again.screenshot(path=SCREENSHOTS / "diff-dark.png")
    phone = look(path, width=390, height=844)
    assert phone.evaluate("document.documentElement.scrollWidth") <= 390


def test_an_answer_alone_on_a_page(commits, fathom, tmp_path, look):
    words = ("diff", "before", "ema", "--json", tmp_path / "diff.json")
    assert fathom.command(*words, cwd=commits).returncode == 0
    done = fathom.command("page", tmp_path / "diff.json", "-o", tmp_path / "diff.html")
    assert done.returncode == 0, done.stderr
    page = look(tmp_path / "diff.html")
    assert page.locator("#differences").is_visible() and page.locator("#differences canvas").count() == 0
    assert page.locator("#summary").is_hidden()


# -- two configurations ------------------------------------------------------------------------------------


def test_what_the_optimised_configuration_saves(shared, fathom, diff):
    for name in (BEFORE, AFTER):
        report, done = shared("case", name)
        assert report, done.stderr
    folders = [fathom.folder_of(name) for name in (BEFORE, AFTER)]
    answer, text, markdown = diff(*folders)
    golden("uni3d.txt", text, *folders)
    golden("uni3d.md", markdown, *folders)
    assert answer["peak_delta_bytes"] < -6 * 2**30
    gone = [row["id"] for row in answer["findings"] if row["status"] == "gone"]
    assert gone[0] == "feature-maps" and "the card differs" in text


# -- two snapshots -----------------------------------------------------------------------------------------


def test_two_snapshots_of_one_script(diff):
    """One author's model in two sizes, forward and backward: published snapshots, too large for the repository."""
    names = ("cliffkai-result_memory_snapshot_small_fwd.pickle", "cliffkai-result_memory_snapshot_medium_bwd.pickle")
    if not all((SNAPSHOTS / name).exists() for name in names):
        pytest.skip(f"NOT COMPARED: `{SNAPSHOTS.name}` does not hold {names[0]}; FATHOM_SNAPSHOTS names a folder")
    answer, text, _ = diff(*names, cwd=SNAPSHOTS)
    golden("snapshots.txt", text)
    assert {"weights", "activations", "gradients", "optimizer"} <= {row["name"] for row in answer["categories"]}


def test_snapshots_that_have_nothing_in_common(diff):
    a, b = (RECORDED / name for name in ("kdr2-t2-None_fwd-eager_bwd.pickle", "shreyansh26-model_memory_usage_profile_grad.pkl"))
    answer, _, _ = diff(a, b)
    assert not [row for row in answer["lines"] if row["file"] and row["status"] not in ("new", "gone")]


# -- what is no side ------------------------------------------------------------------------------------------

REPORT = {"schema": "fathom.report/1", "peak": {"allocated_bytes": 10, "reserved_bytes": 20}}


@pytest.mark.parametrize(
    ("contents", "error", "hint"),
    [
        (None, "`bad` was not found", "hint: "),
        ("not a pickle", "not a pickle", "hint: "),
        ({"schema": "fathom.sweep/1"}, "its schema is `fathom.sweep/1`", "compare recordings"),
        ({**REPORT, "peak": None}, "`bad` cannot be compared: it has no peak", "--json FILE"),
        ({**REPORT, "categories": [{"name": "weights", "bytes": 11}]}, "sum to 11 bytes, its peak is 10", "--json FILE"),
        ({**REPORT, "peak": {"allocated_bytes": 2**63}}, "are no size of memory", "--json FILE"),
        ({**REPORT, "lines": [{"bytes": -1}]}, "invalid value: integer `-1`", "--json FILE"),
    ],
    ids=["missing", "text", "schema", "no peak", "sums", "size", "negative"],
)
def test_bad_input_is_named(fathom, tmp_path, contents, error, hint):
    if contents is not None:
        (tmp_path / "bad").write_text(contents if isinstance(contents, str) else json.dumps(contents))
    (tmp_path / "good").write_text(json.dumps(REPORT))
    for words in (("bad", "good"), ("good", "bad")):
        done = fathom.command("diff", *words, cwd=tmp_path)
        assert done.returncode == 2 and error in done.stderr and hint in done.stderr, done.stderr
        assert "panicked" not in done.stderr and not done.stdout


def test_a_folder_without_a_run_is_named(fathom, tmp_path):
    done = fathom.command("diff", tmp_path, tmp_path)
    assert done.returncode == 2 and "holds no recording and no `report.json`" in done.stderr
    shutil.copytree(RECORDED, tmp_path / "recorded")
    done = fathom.command("diff", tmp_path / "recorded", tmp_path)
    assert done.returncode == 2 and "fathom run --out" in done.stderr


def test_what_is_read_is_not_written_over(fathom, tmp_path):
    report = tmp_path / "a.json"
    report.write_text(json.dumps(REPORT))
    done = fathom.command("diff", report, report, "--json", report)
    assert done.returncode == 2 and "is both read and written" in done.stderr
    assert json.loads(report.read_text()) == REPORT
