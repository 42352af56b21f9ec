"""What `bench/cards.py` publishes: rows by card and source, bounds, and a reason for each row that is off."""

import dataclasses
import statistics

from result import Table
from score import error, summary

MIB = 1 << 20

TITLE = "Published peaks, by card and source"
ABOUT = """Peaks that others published, of programs that were written anew (`bench/data/published/README.md`), beside those
that PyTorch reaches on a phantom card of the same kind. Operators: the allocated peak, which must be equal to 0.01 MB. MLPs
and bert-large: the whole card under nvidia-smi, so that what a machine shows beside PyTorch is in it. That was measured once on
each machine and is taken from there, as `fathom calibrate` would; a further column has our error without it, and whether the
margin that a verdict states has the truth in it. Nothing of PyTorch's part was fitted to these rows."""

# An operator's peak is equal if it is as near as this, in MB of 2^20 bytes.
EQUAL = 0.01
# MLPs: so many MiB, in so many rows. nvidia-smi counts pages of 2 MiB.
NEAR, SHARE = 2, 0.95
# What the margin of a verdict is of PyTorch's memory (`crates/study/src/judgement.rs`), and how often it must hold.
MARGIN, HELD = 0.021, 0.95
MEDIAN = 0.01

TOO_SLOW = "Not run: NVIDIA's assembler worked for minutes on one size of this kernel and was stopped"
TWICE = """Published equal to the rows of `torch`, to the byte and in each size: the same function was measured twice. With
the kernel of the commit it is what is shown here"""
WORKSPACES = """The cuDNN of that torch cannot be asked for the workspace of a convolution without a card; the one that is
asked is newer"""
REASONS = {
    ("multi_token_attention", "liger"): TOO_SLOW,
    ("multi_token_attention", "torch"): WORKSPACES,
    ("sparsemax", "liger"): TWICE,
}
# What the guide about bert-large says that kernels and context take on its machine.
BERT_CONSTANT = 1343
# What came after the guide, one by one; each is what a run with a torch of today has.
AGES = {
    "division of today": ["--division", "new"],
    "gradients dropped": ["--division", "new", "--gradients", "dropped"],
    "attention of today": ["--division", "new", "--gradients", "dropped", "--attention", "sdpa"],
}
HALF = """12 MiB for each layer and sample are missing, not explained: in fp16 without checkpointing, and nowhere else"""


@dataclasses.dataclass
class Found:
    """Operators: (row, MiB). MLPs and bert-large: rows, what their script found, and the report. Ages: the same rows of
    bert-large for each of `AGES`."""

    operators: list
    mlps: list
    bert: list
    ages: list


def has_reason(row):
    return REASONS.get((row["kernel"], row["provider"]))


def is_equal(row, peak):
    return abs(peak - float(row["peak_mb"])) <= EQUAL


def of_operators(found):
    """By kernel, provider and card."""
    columns = {"operator": "text", "by": "text", "card": "text", "published": "count", "run": "count", "equal": "count"}
    columns |= {"furthest off": "error", "why": "text"}
    groups = {}
    for row, peak in found.operators:
        groups.setdefault((row["kernel"], row["provider"], row["gpu"]), []).append((row, peak))
    rows = []
    for (kernel, provider, gpu), group in groups.items():
        ran = [(row, peak) for row, peak in group if peak is not None]
        errors = [error(peak, float(row["peak_mb"])) for row, peak in ran]
        equal = sum(is_equal(row, peak) for row, peak in ran)
        why = " ".join((has_reason(group[0][0]) or "").split()) if equal < len(group) else ""
        why = why or ("" if ran else "Not run: needs `--liger`")
        rows.append([kernel, provider, gpu, len(group), len(ran), equal, max(errors, key=abs, default=None), why])
    total = [sum(row[at] for row in rows) for at in (3, 4, 5)]
    rows.append(["all", "", "", *total, None, ""])
    notes = [f"linkedin/Liger-Kernel, `max_memory_allocated`; equal: to {EQUAL} MB of 2^20 bytes, the published precision."]
    return Table("Operators of Liger-Kernel", columns, sorted(rows, key=lambda row: row[0] == "all"), notes)


@dataclasses.dataclass
class Card:
    """What a machine shows, row by row, and what is said of it."""

    measured: list
    reserved: list
    constant: float
    context: float
    # How far what is said of the context may be off.
    unsure: float

    @property
    def calibrated(self):
        return [reserved + self.constant for reserved in self.reserved]

    @property
    def assumed(self):
        return [reserved + self.context for reserved in self.reserved]

    def is_held(self, at):
        """Whether the margin of a verdict on a card that nobody has calibrated has the truth in it."""
        return abs(self.assumed[at] - self.measured[at]) <= self.unsure + MARGIN * self.reserved[at]


def card(measured, found, report, constant):
    context, need = report["gpu"]["context_bytes"] / MIB, report["need"]
    part = MARGIN * (need["bytes"] / MIB - context)
    return Card(measured, [each["reserved"] / MIB for each in found], constant, context, need["error_bytes"] / MIB - part)


def mlps(found):
    """The constant is that of the first row; the others are compared."""
    rows, peaks, report = found.mlps
    measured = [int(row["measured_mib"]) for row in rows]
    constant = measured[0] - peaks[0]["reserved"] / MIB
    return card(measured[1:], peaks[1:], report, constant)


def bert(found):
    rows, peaks, report = found.bert
    return card([int(row["nvidia_smi_mb"]) for row in rows], peaks, report, BERT_CONSTANT)


def errors(said, measured):
    return [error(one, other) for one, other in zip(said, measured, strict=True)]


def of_whole_cards(found):
    columns = {"source": "text", "card": "text", "rows": "count", "beside PyTorch, MiB": "count", "within 2 MiB": "count"}
    columns |= {"median": "percent", "9 of 10 within": "percent", "worst": "percent", "median, not calibrated": "percent"}
    columns |= {"margin holds": "count"}
    rows = []
    named = [("itu-rad/GPUMemNet, MLPs", "a100-40g", mlps(found)), ("Hugging Face's guide, bert-large", "v100-16g", bert(found))]
    for source, gpu, seen in named:
        median, _, ninetieth, worst = summary(errors(seen.calibrated, seen.measured))
        rows.append([source, gpu, len(seen.measured), round(seen.constant), near(seen), median, ninetieth, worst])
        rows[-1] += [summary(errors(seen.assumed, seen.measured))[0], sum(map(seen.is_held, range(len(seen.measured))))]
    notes = [
        "MLPs: what the machine shows beside PyTorch is taken from the first row, which is not counted. bert-large: the guide says it.",
        "*Not calibrated*: with the context of the catalogue. *Margin holds*: rows in which the truth is within the `±` of a "
        "verdict that nobody calibrated. Its part for the context comes from these very machines (`crates/gpus/beside.txt`), so "
        "that it shows something of PyTorch's part alone: on another machine nobody knows.",
    ]
    return Table("Whole cards under nvidia-smi", columns, rows, notes)


def near(seen):
    return sum(abs(said - measured) <= NEAR for said, measured in zip(seen.calibrated, seen.measured, strict=True))


def of_bert(found):
    """Row by row, and by what came after the guide."""
    rows, _, _ = found.bert
    columns = {"setting": "text", "measured, MB": "count", "as then": "error"} | dict.fromkeys(AGES, "error")
    columns |= {"why": "text"}
    seen = bert(found)
    lines = []
    for at, row in enumerate(rows):
        today = [error(ages[at]["reserved"] / MIB + BERT_CONSTANT, seen.measured[at]) for ages in found.ages]
        is_half = row["fp16"] == "yes" and row["checkpointing"] == "no"
        said = error(seen.calibrated[at], seen.measured[at])
        lines.append([row["setting"], seen.measured[at], said, *today, HALF if is_half else ""])
    notes = [
        "*As then*: torch before 1.11. A division kept its numerator for the backward pass, 16 MiB for each layer and sample; "
        "gradients were zeroed in place and lived through the next forward pass; attention was spelled out.",
        "Each further column has one more of the things that came later: a training of today takes that much less.",
    ]
    return Table("bert-large on a V100, and what the age of the guide amounts to", columns, lines, notes)


def all_of(found):
    return [of_operators(found), of_whole_cards(found), of_bert(found)]


def broken_bounds(found):
    """What does not hold, in words."""
    broken = [
        f"{row['kernel']} of {row['provider']} at {row['x_value']}: {peak} MB, published {row['peak_mb']}"
        for row, peak in found.operators
        if peak is not None and has_reason(row) is None and not is_equal(row, peak)
    ]
    seen = [mlps(found)] + ([bert(found)] if found.bert else [])
    if near(seen[0]) < SHARE * len(seen[0].measured):
        broken.append(f"MLPs: only {near(seen[0])} of {len(seen[0].measured)} are within {NEAR} MiB")
    medians = [statistics.median(map(abs, errors(each.calibrated, each.measured))) for each in seen]
    broken += [f"the median error is {median:.2%}, wanted is {MEDIAN:.0%}" for median in medians if MEDIAN < median]
    held = [each.is_held(at) for each in seen for at in range(len(each.measured))]
    if sum(held) < HELD * len(held):
        broken.append(f"the margin holds in {sum(held)} of {len(held)} rows")
    return broken
