"""What every benchmark leaves behind: `bench/results/NAME.json`, with the date, the machine, the versions, the command.

A benchmark calls `save`; `bench/publish.py` writes `docs/benchmarks.md` from these files and nothing else.
"""

import dataclasses
import datetime
import json
import os
import platform
import subprocess
from pathlib import Path

# One run each: what is measured here is the run itself.
os.environ.update({"FATHOM_VERIFY": "off", "FATHOM_WHOLE_RUN": "off"})

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "bench" / "results"
FATHOM = ROOT / "target" / "release" / "fathom"
PYTHON = ROOT / ".venv" / "bin" / "python"

# How a column's numbers are written for people; in the JSON they are plain numbers.
UNITS = {
    "text": str,
    "count": lambda value: f"{value:,}",
    "bytes": lambda value: f"{value / 2**30:.2f} GiB" if value >= 2**30 else f"{value / 2**20:.1f} MiB",
    "seconds": lambda value: f"{value:.2f} s" if value >= 0.1 else f"{value * 1000:.1f} ms",
    "percent": lambda value: f"{value:.1%}",
    "error": lambda value: f"{value:+.2%}",
    "ratio": lambda value: f"{value:,.1f} ×" if value < 100 else f"{value:,.0f} ×",
    "number": lambda value: f"{value:.2f}",
}


@dataclasses.dataclass
class Table:
    """Rows under columns; `columns` maps each name to a unit of `UNITS`. `None` in a row is shown as a dash."""

    title: str
    columns: dict
    rows: list
    notes: list = dataclasses.field(default_factory=list)

    def __post_init__(self):
        assert all(unit in UNITS for unit in self.columns.values()), self.columns
        assert all(len(row) == len(self.columns) for row in self.rows), "a row for each column"


def save(name, title, about, command, tables, packages=("torch",), python=PYTHON):
    """Writes `bench/results/NAME.json`; `about` says how it was measured, `packages` whose versions matter."""
    document = {
        "title": title,
        "about": about,
        "command": command,
        "date": datetime.date.today().isoformat(),
        "machine": machine(),
        "versions": versions(packages, python),
        "tables": [dataclasses.asdict(table) for table in tables],
    }
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.json").write_text(json.dumps(document, indent=1, ensure_ascii=False) + "\n")


def machine():
    """The processor, its cores and the memory; no name of a host."""
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    model = next((line.split(":")[1].strip() for line in lines if line.startswith("model name")), platform.machine())
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    return {"processor": model, "cores": os.cpu_count(), "memory_bytes": memory, "system": platform.system()}


def versions(packages, python=PYTHON):
    """Versions of fathom, Python and the packages in the environment that was measured."""
    ask = "import json, sys; from importlib import metadata; print(json.dumps({p: metadata.version(p) for p in sys.argv[1:]}))"
    found = subprocess.run([str(python), "-c", ask, *packages], capture_output=True, text=True, check=True).stdout
    fathom = subprocess.run([str(FATHOM), "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    version = subprocess.run([str(python), "--version"], capture_output=True, text=True, check=True).stdout.split()[1]
    return {"fathom": fathom, "python": version, **json.loads(found)}
