"""The types that the page's scripts are checked with are those of the data: field by field, and both ways."""

import base64
import json
import re
import zlib

import pytest
from conftest import PYTHON, ROOT, SCRIPTS
from page_types import Result, Types

# Fixtures are used by their names.
from pages import embedded, folder  # noqa: F401
from test_whole import LENGTHS

IS_WARM = True

# Gradients of this size are not known, and so what is chosen by them.
UNKNOWN = """
import torch
layer = torch.nn.Linear(1000, 1000).cuda()
layer(torch.randn(200000, 1000, device="cuda")).square().sum().backward()
rows = torch.randn(60000, 1000, device="cuda")
kept = rows[layer.weight.grad.sum() * torch.arange(60000, device="cuda") > 0]
"""
# A rank of several, and a free that waits for another stream.
RANK = """
import torch
torch.distributed.init_process_group("nccl", device_id=torch.device("cuda:0"))
model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(1024, 1024).cuda())
batch = torch.ones(2, 1024, device="cuda")
model(batch).sum().backward()
batch.record_stream(torch.cuda.Stream())
del batch
torch.ones(1, device="cuda")
"""
BLOCKS = (PYTHON, SCRIPTS / "blocks_flags.py", "--batch-size", "8", "--depth", "8")
SNAPSHOT = ROOT / "tests/recorded/kdr2-t2-None_fwd-eager_bwd.pickle"
# Null or empty in the runs below: they need a signal, a failure, a rename, a knob as a lever, a sweep of ranks, a package.
SELDOM = """
Against.need Against.remarks Answer.tried Baseline.failure BatchOrder.device_bytes BatchOrder.largest_batch
BatchOrder.peak_allocated_bytes BatchOrder.peak_step BatchOrder.ran_out BatchOrder.seed Beyond.allocated_bytes
Beyond.cause Beyond.failure Beyond.need Beyond.phase Beyond.raised_by Beyond.step ChangedLine.was ChangedModule.was
ChangedTensor.was Decided.library_file Decided.library_line Difference.notes Difference.renamed Evidence.library_file
Evidence.library_line Explanation.answers Fewest.gpu Fewest.is_assumed Fewest.others Fewest.ranks Finding.note
FitAnswer.notes FitAnswer.proposed FitAnswer.unfinished FitAnswer.unknown_places Largest.failure Lever.gpus Lever.like
Lever.name Lever.parts Lever.set Lever.value LibraryLine.bytes LibraryLine.count LibraryLine.function
LibraryLine.library_file LibraryLine.library_line Line.library MostNeeded.failure Place.library_file
Place.library_line Plan.in_the_way Point.failure Report.beyond Report.full_after_steps Report.unattributed
Report.unfinished Shortage.remedy SweepAnswer.fewest SweepAnswer.notes SweepAnswer.unfinished
SweepAnswer.unknown_places Tried.after_allocated_bytes Tried.after_reserved_bytes Tried.before_allocated_bytes
Tried.before_reserved_bytes Unattributed.bytes Unattributed.why Unfinished.after_seconds Unfinished.reason
Unfinished.signal Whole.orders Whole.refused Whole.unreached Whole.unseen Whole.why Workspace.calls
Workspace.largest_bytes
"""


@pytest.fixture(scope="module")
def types():
    return Types.of_page()


@pytest.fixture(scope="module")
def pages(fathom, folder):
    """Runs, files and answers of every kind, on as few pages as can be."""

    def write(name, *words, **options):
        done = fathom.command(*words, timeout=300, **options)
        assert (folder / name).exists(), done.stderr
        return folder / name

    run, baseline = folder / "blocks", folder / "leak-baseline.json"
    leak = (PYTHON, SCRIPTS / "leak.py")
    leaks = write("leak.json", "run", "--json", folder / "leak.json", "--save-baseline", baseline, "--", *leak)
    unknown = ("run", "--baseline", baseline, "--json", folder / "unknown.json")
    (folder / "unknown.py").write_text(UNKNOWN)
    unknowns = write("unknown.json", *unknown, "--", PYTHON, folder / "unknown.py")
    short = ("run", "--memory", "700MiB", "--ask", "checkpoint blocks", "--out", run, "--page", folder / "blocks.html")
    rank = ("run", "--gpu", "rtx3090", "--world-size", "4", "--budget", "100MiB", "--json", folder / "ranks.json")
    ranks = write("ranks.json", *rank, "--", PYTHON, "-c", RANK)
    (folder / "lengths.py").write_text(LENGTHS)
    lengths = ("run", "--json", folder / "lengths.json", "--", PYTHON, folder / "lengths.py")
    lengths = write("lengths.json", *lengths, env={"FATHOM_WHOLE_RUN": "on"})
    plans = ("--json", folder / "fit.json", "--page", folder / "fit.html")
    fit = write("fit.json", "fit", "--memory", "700MiB", *plans, "--", *BLOCKS)
    knobs = ("--vary", "batch-size=4,8,16", "--vary", "depth=1..2", "--gpu", "rtx3090")
    points = ("--json", folder / "sweep.json", "--page", folder / "sweep.html")
    sweep = write("sweep.json", "sweep", *knobs, *points, "--", *BLOCKS)
    return [
        folder / "fit.html",
        folder / "sweep.html",
        write("blocks.html", *short, "--", *BLOCKS),
        write("sides.html", "diff", unknowns, ranks, "--page", folder / "sides.html"),
        write(
            "answers.html",
            *("page", fit, sweep, leaks, unknowns, lengths, *run.glob("*.fathom"), SNAPSHOT),
            *("-o", folder / "answers.html"),
        ),
    ]


@pytest.fixture(scope="module")
def headers(pages):
    """What every story of these pages begins with."""
    packed = [text for page in pages for text in re.findall(r'id="fathom-story-\d+">(.*?)</script>', page.read_text())]
    return [header_of(zlib.decompress(base64.b64decode(text), wbits=-zlib.MAX_WBITS)) for text in packed]


def header_of(data):
    return json.loads(data[4 : 4 + int.from_bytes(data[:4], "little")])


@pytest.fixture(scope="module")
def result(types, pages, headers):
    result = Result()
    for page in pages:
        result.add(types.check(embedded(page), "PageContents", page.stem))
    for number, header in enumerate(headers):
        result.add(types.check(header, "Header", f"header {number}"))
    return result


def test_pages_have_the_fields_of_their_types(result):
    assert result.problems == []


def test_types_have_no_field_that_pages_lack(types, result):
    seldom = set(SELDOM.split())
    assert seldom <= types.all_fields(), "a field is gone: leave it out here too"
    assert types.all_fields() - result.seen - seldom == set()


def rounded(value):
    """Fractions lose their last digit where they are read again."""
    return json.loads(json.dumps(value), parse_float=lambda text: round(float(text), 9))


def test_a_page_of_trials_says_its_command(pages):
    for name in ("fit", "sweep"):
        page = next(page for page in pages if page.stem == name)
        [document] = embedded(page)["documents"]
        answer = json.loads(page.with_suffix(".json").read_text())
        words = document.pop("command").split()
        assert rounded(document) == rounded(answer) and words[:2] == ["fathom", name] and words[-4:] == list(BLOCKS[-4:])


def test_every_story_has_all_columns(types, headers):
    assert len(headers) == 3
    for header in headers:
        assert {f'"{column["name"]}"' for column in header["columns"]} == set(types.options("ColumnName"))


SMALL = """
export interface Run extends Part {
  peak: Peak | null;
  rows: Part[];
  why?: string;
}
export interface Part {
  name: string;
}
export type Peak = "high" | "low";
"""


@pytest.mark.parametrize(
    "change, problem",
    [
        ({}, None),
        ({"peak": None, "why": "so"}, None),
        ({"more": 1}, "run.more is not in Run"),
        ({"peak": "other"}, "run.peak is 'other', not \"high\""),
        ({"rows": [{"name": 1}]}, "run.rows[0].name is '1', not string"),
        ({"rows": [{}]}, "run.rows[0] has no name, which Part has"),
        ({"rows": {}}, "run.rows is '{}', not Part[]"),
    ],
    ids=str,
)
def test_a_difference_is_found(change, problem):
    data = {"name": "a", "peak": "high", "rows": [{"name": "b"}], **change}
    result = Types(SMALL).check(data, "Run", "run")
    assert result.problems == ([problem] if problem else [])
    if not change:
        assert Types(SMALL).all_fields() - result.seen == {"Run.why"}
