"""Tables of `bench/data/kept_apart.csv`: what decided how the runs are repeated, and how other conv nets fare."""

import statistics

from accuracy_tables import MODELLED, NEWEST, OLDEST, estimate, reserved
from result import Table
from score import error

MIB = 1 << 20

# A conv net whose memory hardly depends on the workspaces of convolutions: most of it are matrix products.
PROBE = "ConvNeXtTiny"


def off(bytes, row):
    return round((bytes - row.truth) / MIB)


def of_transformers(apart, untold):
    """What cuBLAS was told."""
    columns = {"run": "text", "card": "text", "measured": "bytes"}
    columns |= {"MiB off, cuBLAS told as theirs": "count", "MiB off, not told": "count"}
    rows = [
        [row.name, row.gpu, row.truth, off(estimate(row, reports), row), off(peak, row)]
        for (row, reports), peak in zip(apart, untold, strict=True)
    ]
    notes = [
        "Their script sets `CUBLAS_WORKSPACE_CONFIG=:0:0` before anything else: cuBLAS gets no workspace. What is then missing is "
        "the same in every row: kernels that are loaded and handles, which libraries take beside PyTorch.",
        "Not told, a workspace may come to lie in a large block, which then cannot be used again.",
    ]
    return Table("Rows kept apart: transformers, and what cuBLAS was told", columns, rows, notes)


def of_probe(apart):
    """What their monitor saw first."""
    columns = {"run": "text", "card": "text", "measured": "bytes", "weights": "bytes"}
    columns |= {"MiB off, weights taken off": "count", "MiB off, not taken off": "count"}
    rows = []
    for row, reports in apart:
        ours, before = estimate(row, reports), reports[NEWEST]["before_bytes"]
        rows.append([row.name, row.gpu, row.truth, before, off(ours, row), off(ours + before, row)])
    notes = [
        "Their loop for conv nets starts the monitor, a thread, and moves the model to the card at once; their loop for "
        "transformers waits two seconds between the two. ConvNeXt needs next to no workspaces, so that little else is unknown. "
        "What sets those rows apart that are not like the others is not known.",
    ]
    return Table("Rows kept apart: ConvNeXt, and what their monitor saw first", columns, rows, notes)


def of_nets(apart):
    """All conv nets of the file, by net and card."""
    versions = {"newest cuDNN": NEWEST, OLDEST: OLDEST, MODELLED: MODELLED}
    columns = {"net": "text", "card": "text", "runs": "count"}
    columns |= {f"median, {name}": "percent" for name in versions} | {"worst, newest cuDNN": "error"}
    groups = {}
    for row, reports in apart:
        groups.setdefault((row.model, row.gpu), []).append((row, reports))
    rows = [[*key, len(group), *medians(group, versions), worst(group)] for key, group in sorted(groups.items())]
    rows.append(["all", "", len(apart), *medians(apart, versions), worst(apart)])
    notes = [
        "Every run of these nets that was to be had and that fit; none is in another table. Which version is closest to 9.1.0 "
        "changes with the net and the card.",
        f"All, newest cuDNN, weights not taken off: a median of {statistics.median(not_taken_off(apart)):.1%}.",
    ]
    return Table("Rows kept apart: conv nets, by net and card", columns, rows, notes)


def medians(group, versions):
    for version in versions.values():
        yield statistics.median(abs(error(estimate(row, reports, version), row.truth)) for row, reports in group)


def worst(group):
    return max((error(estimate(row, reports), row.truth) for row, reports in group), key=abs)


def not_taken_off(group):
    return [abs(error(reserved(row, reports), row.truth)) for row, reports in group]


def all_of(apart, untold):
    transformers = [(row, reports) for row, reports in apart if row.is_transformer]
    conv_nets = [(row, reports) for row, reports in apart if not row.is_transformer]
    probe = [(row, reports) for row, reports in conv_nets if row.model == PROBE]
    return [of_transformers(transformers, untold), of_probe(probe), of_nets(conv_nets)]
