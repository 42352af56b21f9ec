"""What a run has shown: the command's JSON, `fathom.report/1`, as plain objects.

Only what people look at has a name here. Everything is in `Report.json`, also what later versions add.
"""

from __future__ import annotations

import dataclasses
import html
import os
import subprocess
from dataclasses import dataclass, field
from typing import Any

from . import binary


def part(of: type | None = None) -> Any:
    """A field that is an object of its own, or a tuple of them."""
    return field(metadata={"of": of})


@dataclass(frozen=True)
class Gpu:
    name: str
    title: str
    memory_bytes: int
    used_bytes: int
    context_bytes: int
    context_known: str
    compute_capability: str


@dataclass(frozen=True)
class Software:
    torch: str
    cuda: str
    cudnn: str
    python: str
    workspaces: str


@dataclass(frozen=True)
class Peak:
    """All measured by PyTorch's own allocator; `device_bytes` has the context, too."""

    requested_bytes: int
    allocated_bytes: int
    reserved_bytes: int
    device_bytes: int
    step: int
    phase: str
    module: str | None
    operator: str | None
    file: str | None
    line: int | None


@dataclass(frozen=True)
class Category:
    name: str
    bytes: int


@dataclass(frozen=True)
class Module:
    path: str
    class_: str
    bytes: int
    saved_bytes: int
    own_bytes: int


@dataclass(frozen=True)
class Line:
    file: str | None
    line: int | None
    function: str | None
    bytes: int
    count: int


@dataclass(frozen=True)
class Tensor:
    bytes: int
    shape: list[int] | None
    dtype: str | None
    category: str
    name: str | None
    module: str | None
    operator: str | None
    file: str | None
    line: int | None


@dataclass(frozen=True)
class Remedy:
    id: str
    label: str
    change: str


@dataclass(frozen=True)
class Finding:
    """A cause of the peak. The bytes of those that are `counted` add up."""

    id: str
    title: str
    bytes: int
    of: str
    counted: bool
    explanation: str
    remedies: tuple[Remedy, ...] = part(Remedy)


@dataclass(frozen=True)
class OutOfMemory:
    tried_bytes: int
    free_bytes: int | None
    step: int
    phase: str
    module: str | None
    operator: str | None
    file: str | None
    line: int | None
    message: str
    reason: str | None


@dataclass(frozen=True)
class Need:
    """The smallest GPU on which the run goes through, context included; `known` is `run`, `enough`, `replay` or `taken`."""

    bytes: int
    known: str
    error_bytes: int


@dataclass(frozen=True)
class Report:
    """A run. `fits`, `verdict` and `headline` first, then what they rest on."""

    verdict: str
    judgement: str
    exit_code: int
    headline: str
    steps: int
    wall_seconds: float
    floor_bytes: int | None
    budget_bytes: int | None
    failure: str | None
    growth_bytes_per_step: int | None
    gpu: Gpu | None = part(Gpu)
    software: Software = part(Software)
    peak: Peak | None = part(Peak)
    need: Need | None = part(Need)
    categories: tuple[Category, ...] = part(Category)
    modules: tuple[Module, ...] = part(Module)
    lines: tuple[Line, ...] = part(Line)
    tensors: tuple[Tensor, ...] = part(Tensor)
    findings: tuple[Finding, ...] = part(Finding)
    out_of_memory: OutOfMemory | None = part(OutOfMemory)
    notes: tuple[str, ...] = ()
    json: dict[str, Any] = field(default_factory=dict, compare=False)
    output: str = ""
    folder: str = ""

    @classmethod
    def of(cls, data: dict[str, Any], output: str = "", folder: str = "") -> Report:
        """From the JSON, what was printed, and the folder of the run's files."""
        report: Report = view(cls, data)
        printed = output.removesuffix(report.headline + "\n")
        notes = tuple(data.get("notes") or ())
        return dataclasses.replace(report, json=data, output=printed, folder=folder, notes=notes)

    @property
    def fits(self) -> bool:
        """Whether it runs on the card, within the budget and the baseline."""
        return self.verdict == "fits"

    def page(self, path: str | os.PathLike[str] | None = None) -> Page:
        """The full report as one HTML file; in a notebook it is shown."""
        target = os.path.abspath(path if path is not None else os.path.join(self.folder, "fathom-page.html"))
        program = binary.find() or "fathom"
        done = subprocess.run([program, "page", self.folder, "-o", target], capture_output=True, encoding="utf-8", check=False)
        if done.returncode != 0:
            from .api import refusal

            raise refusal(done.stderr)
        return Page(target, self)

    def __repr__(self) -> str:
        return f"<fathom.Report {self.headline}>"

    def _repr_html_(self) -> str:
        from . import notebook

        return notebook.summary(self)


@dataclass(frozen=True)
class Page:
    """A page on disk, for `open`, for a browser, and for a notebook."""

    path: str
    report: Report = field(repr=False)  # its folder is gone when it is

    def __fspath__(self) -> str:
        return self.path

    def __str__(self) -> str:
        return self.path

    def _repr_html_(self) -> str:
        with open(self.path, encoding="utf-8") as file:
            text = html.escape(file.read())
        return f'<iframe srcdoc="{text}" style="width:100%;height:720px;border:0" sandbox="allow-scripts"></iframe>'


def view(kind: Any, data: dict[str, Any]) -> Any:
    """An object of a kind from JSON; what it does not know is left out, what is missing is None."""
    known = {}
    for its in dataclasses.fields(kind):
        if its.name in ("json", "output", "folder", "notes"):
            continue
        value, of = data.get(its.name.rstrip("_")), its.metadata.get("of")
        if of is not None and isinstance(value, list):
            value = tuple(view(of, one) for one in value)
        elif of is not None and isinstance(value, dict):
            value = view(of, value)
        known[its.name] = value
    return kind(**known)
