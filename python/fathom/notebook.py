"""A report in a notebook: the verdict and a small table, with its styles inline and every name as text."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .report import Report

GOOD, BAD, BAR = "#1a7f37", "#cf222e", "#4c78a8"
CELL = "padding:1px 10px 1px 0;text-align:left;border:0"
FINDINGS = 3


def size(number: int) -> str:
    """As the command prints it: binary units."""
    for unit, name, digits in ((1 << 30, "GiB", 2), (1 << 20, "MiB", 1), (1 << 10, "KiB", 1)):
        if unit <= number:
            return f"{number / unit:.{digits}f} {name}"
    return f"{number} B"


def summary(report: Report) -> str:
    """Under the verdict: peaks, categories with bars, the first causes."""
    colour = GOOD if report.fits else BAD
    word, _, sentence = report.headline.partition("  ")
    parts = [
        '<div style="font-family:system-ui,sans-serif;font-size:13px;line-height:1.5;max-width:60em">',
        f'<div><b style="color:{colour}">{escape(word)}</b> {escape(sentence)}</div>',
    ]
    if report.out_of_memory is not None and report.out_of_memory.file:
        place = f"{report.out_of_memory.file}:{report.out_of_memory.line}"
        parts.append(f"<div>tried {size(report.out_of_memory.tried_bytes)} at <code>{escape(place)}</code></div>")
    if report.peak is not None:
        peak = report.peak
        rows = [
            ("allocated", f"{size(peak.allocated_bytes)} in {escape(peak.phase)}, step {peak.step}"),
            ("reserved", f"{size(peak.reserved_bytes)}, with the context {size(peak.device_bytes)}"),
        ]
        parts.append(table(rows))
    parts.append(table(categories(report)))
    causes = [finding for finding in report.findings if finding.counted][:FINDINGS]
    parts.append(table([(size(finding.bytes), escape(finding.title)) for finding in causes]))
    said = "kernels are simulated; ignore printed losses; <code>.page()</code> shows the whole report"
    parts.append(f'<div style="opacity:.7">{said}</div></div>')
    return "".join(parts)


def categories(report: Report) -> list[tuple[str, str]]:
    """Largest first, each with a bar."""
    held = sorted((row for row in report.categories if row.bytes), key=lambda row: -row.bytes)
    rows = []
    for row in held[:6]:
        width = max(1, round(160 * row.bytes / held[0].bytes))
        bar = f'<span style="display:inline-block;height:.7em;width:{width}px;background:{BAR}"></span>'
        rows.append((escape(row.name.replace("_", " ")), f"{bar} {size(row.bytes)}"))
    return rows


def table(rows: list[tuple[str, str]]) -> str:
    """Two columns of HTML; nothing without rows."""
    if not rows:
        return ""
    cells = "".join(f'<tr><td style="{CELL}">{name}</td><td style="{CELL}">{text}</td></tr>' for name, text in rows)
    return f'<table style="margin:4px 0;border:0;border-collapse:collapse">{cells}</table>'
