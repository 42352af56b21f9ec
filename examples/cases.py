"""Measures the case studies and writes what was measured into their READMEs: `make cases`.

    python examples/cases.py                  every run, then every README
    python examples/cases.py avatar stdiff    these cases only
    python examples/cases.py --jobs 1         runs at once; without it as many as there are cores
    python examples/cases.py --missing        only runs that measured.json does not have
    python examples/cases.py --write          no runs: the READMEs anew from measured.json
    python examples/cases.py --check          no runs, nothing written: exit code 1 if a README is stale

RUNS says what is run. `examples/<case>/measured.json` keeps what came out. `examples/<case>/tables.md` holds the blocks
with numbers, `<!-- table: NAME -->` … `<!-- end -->`, with Python expressions in braces instead of the numbers; the
README has the same blocks filled in, and all else in it is written by hand. The names in the expressions are those of
RUNS, of the attributes of `Measured`, and of the functions below it. A whole number is printed as a size.
"""

import json
import os
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FATHOM, PYTHON = "target/release/fathom", ".venv/bin/python"
KIB, MIB, GIB = 2**10, 2**20, 2**30
PEAK = ("allocated_bytes", "reserved_bytes", "device_bytes", "step", "phase", "module", "operator")


@dataclass(frozen=True)
class Run:
    """One line of the tables: a configuration, what is changed in it, and a card (None: as much as is wanted)."""

    name: str
    config: str
    gpu: str | None = None
    changes: tuple = ()
    steps: int = 3
    script: str = "train"
    environment: dict = field(default_factory=dict)

    def words(self, case, fathom=FATHOM, python=PYTHON):
        card = ["--gpu", self.gpu] if self.gpu else []
        steps = ["--steps", str(self.steps)] if self.steps != 3 else []
        script, config = (f"examples/{case}/{name}" for name in (f"{self.script}.py", f"{self.config}.yaml"))
        return [fathom, "run", *card, *steps, "--", python, script, "--config", config, *self.changes]


def stdiff(name, config, gpu=None, *changes, **more):
    return Run(name, config, gpu, changes, steps=2, **more)


def uni3d(name, config, gpu, *changes):
    """Changes without a dot are settings of the encoder."""
    long = [c if "." in c.split("=")[0] else f"policy.pointcloud_encoder_cfg.{c}" for c in changes]
    return Run(name, config, gpu, tuple(long), steps=2)


def dit3d(name, config, gpu, *changes):
    return Run(name, config, gpu, changes, steps=2)


SIZES = ["xs_4", "tiny_4", "s_4", "b_4", "l_4", "xl_4", "xs_2", "tiny_2", "s_2", "b_2", "l_2", "xl_2"]
FULL = "DIT_FREEZE_BACKBONE=false"
# What does not fit a T4 is run again where there is no end, to know what it needs.
TOO_LARGE = ["l_4", "xl_4", "b_2", "l_2", "xl_2"]
UNET = "STDiff.Diffusion.unet_config"
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
NO_SPLIT_LIMIT = {"PYTORCH_CUDA_ALLOC_CONF": "max_split_size_mb:100000"}

RUNS = {
    "uni3d-dp3": [
        uni3d("dp3", "dp3", "rtx3070"),
        uni3d("stated", "uni3d-128x64", "rtx3090"),
        uni3d("stated_12", "uni3d-128x64", "rtx3060-12g"),
        uni3d("stated_naive", "uni3d-128x64", "rtx3090", "fused_attention=false"),
        uni3d("stated_frozen", "uni3d-128x64", "rtx3070", "freeze_weights=true"),
        uni3d("optimised", "uni3d-32x32-frozen", "rtx3070"),
        uni3d("ultra_low", "uni3d-16x16-ultra-low", "rtx3070"),
        uni3d("committed", "uni3d-64x256-committed", "rtx3090"),
        uni3d("groups_256", "uni3d-128x256", "h200"),
        uni3d("groups_256_48", "uni3d-128x256", "rtx-a6000"),
        uni3d("groups_512", "uni3d-128x512", "h200"),
        uni3d("groups_512_48", "uni3d-128x512", "rtx-a6000"),
        uni3d("groups_512_80", "uni3d-128x512", "a100-80g"),
        uni3d("blocks", "uni3d-128x512", "h200", "checkpoint_blocks=true"),
        uni3d("encoder", "uni3d-128x512", "h200", "checkpoint_encoder=true"),
        uni3d("cache", "uni3d-128x512", "h200", "empty_cache=true"),
        uni3d("naive", "uni3d-128x512", "h200", "fused_attention=false"),
        uni3d("amp", "uni3d-128x512", "h200", "training.amp=true"),
        uni3d("frozen", "uni3d-128x512", "h200", "freeze_weights=true"),
        uni3d("base", "uni3d-128x64", "h200", "uni3d_size=base"),
        uni3d("base_blocks", "uni3d-128x64", "h200", "uni3d_size=base", "checkpoint_blocks=true"),
    ],
    "stdiff": [
        stdiff("document", "document", "a100-80g"),
        stdiff("document_48", "document", "rtx-a6000"),
        stdiff("expandable", "document", "a100-80g", environment=EXPANDABLE),
        stdiff("expandable_48", "document", "rtx-a6000", environment=EXPANDABLE),
        stdiff("splits", "document", "a100-80g", environment=NO_SPLIT_LIMIT),
        stdiff("ten", "ten-frames"),
        stdiff("naive", "naive-attention"),
        stdiff("naive_80", "naive-attention", "a100-80g"),
        stdiff("naive_64", "naive-attention", None, f"{UNET}.attention_head_dim=[null,64,64,64,64]"),
        stdiff("two", "checkpointing", "rtx-a6000"),
        stdiff("every", "checkpointing-every-level", "rtx3090"),
        stdiff("fp32", "document", None, "Training.mixed_precision=no"),
        stdiff("no_accumulation", "document", "a100-80g", "Training.gradient_accumulation_steps=1"),
        stdiff("no_ema", "document", "a100-80g", "Training.use_ema=false"),
    ],
    "bev-graph": [
        Run("before", "before", "v100-32g-pcie"),
        Run("before_endless", "before"),
        Run("before_256", "before-256", "v100-32g-pcie"),
        Run("before_256_endless", "before-256"),
        Run("before_256_two", "before-256", "v100-32g-pcie", ("training.batch_size=2",)),
        Run("after", "after", "v100-32g-pcie"),
        Run("after_endless", "after"),
        Run("after_512", "after-512", "v100-32g-pcie"),
        Run("after_256", "after-256", "v100-32g-pcie"),
        Run("conv_graph", "conv-graph", "v100-32g-pcie"),
        Run("lidar", "lidar", "v100-32g-pcie"),
    ],
    "dit3d": [
        dit3d("document", "document", "t4"),
        *(dit3d(size, size.replace("_", "-"), "t4") for size in SIZES if size != "tiny_4"),
        *(dit3d(f"{size}_full", size.replace("_", "-"), "t4", FULL) for size in SIZES),
        *(dit3d(f"{size}_endless", size.replace("_", "-"), None, FULL) for size in TOO_LARGE),
        dit3d("patches", "document", "t4", "DIT_PATCH_SIZE=[2,16,16]"),
        dit3d("checkpointed", "document", "t4", "GRADIENT_CHECKPOINTING=true"),
        dit3d("before", "before", None),
        dit3d("before_fused", "before", "t4", "FUSED_ATTENTION=true"),
        dit3d("s_2_fused", "s-2", "t4", FULL, "FUSED_ATTENTION=true"),
        dit3d("s_2_checkpointed", "s-2", "t4", FULL, "GRADIENT_CHECKPOINTING=true"),
        dit3d("b_2_fused", "b-2", "t4", FULL, "FUSED_ATTENTION=true"),
        dit3d("b_2_checkpointed", "b-2", "t4", FULL, "GRADIENT_CHECKPOINTING=true"),
        dit3d("l_2_both", "l-2", "t4", FULL, "FUSED_ATTENTION=true", "GRADIENT_CHECKPOINTING=true"),
    ],
    "avatar": [
        Run("document", "document", "a10g"),
        Run("benchmark", "cudnn-benchmark", "a10g"),
        Run("half_batch", "half-batch", "a10g"),
        Run("autocast", "autocast", "a10g"),
        Run("count", "document", "a10g", script="count"),
    ],
}  # fmt: skip

# The runs whose reports are shown.
SHOWN = {"uni3d-dp3": "stated", "stdiff": "document", "bev-graph": "before", "dit3d": "document", "avatar": "document"}

# Of these modules, wherever they stand, what is saved is summed up.
PARTS = {"stdiff": ("resnet", "motion", "attention")}

# -- measuring ------------------------------------------------------------------------------------------


def measure(case, run):
    """Runs it and keeps what the tables need: nothing that changes from one run to the next, such as times."""
    words = run.words(case)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "report.json"
        words[2:2] = ["--json", str(path)]
        done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=environment(run.environment))
        if not path.exists():
            sys.exit(f"{case}, {run.name}: no report\n{done.stdout}{done.stderr}")
        report = json.loads(path.read_text())
    if report["verdict"] not in ("fits", "does_not_fit"):
        sys.exit(f"{case}, {run.name}: {report['verdict']}\n{done.stdout}{done.stderr}")
    return kept(report, done.stdout, case, run)


def environment(changes):
    """This environment without settings of Fathom, CUDA and PyTorch."""
    settings = ("FATHOM_", "PYTORCH_", "CUDA_")
    clean = {n: v for n, v in os.environ.items() if not n.startswith(settings) or n == "FATHOM_CACHE"}
    # One run each: what it needs is by replay.
    return {**clean, "COLUMNS": "100", "FATHOM_VERIFY": "off", "FATHOM_WHOLE_RUN": "off", **changes}


def kept(report, output, case, run):
    text = output.splitlines()
    start = next(number for number, line in enumerate(text) if re.match("(FITS|TIGHT|NEEDS|DEPENDS|NOT MEASURED|DOES NOT FIT)  ", line))
    peak, gpu, failure = report["peak"], report["gpu"] or {}, report["out_of_memory"]
    result = {
        "command": " ".join([f"{name}={value}" for name, value in run.environment.items()] + run.words(case)[2:]),
        "software": {name: report["software"][name] for name in ("torch", "cudnn", "workspaces")},
        "gpu": {name: gpu.get(name) for name in ("title", "memory_bytes", "context_bytes", "context_known")},
        "verdict": report["verdict"],
        "steps": report["steps"],
        "peak": {name: peak[name] for name in PEAK},
        "floor_bytes": report["floor_bytes"],
        "parameters": report["parameters"],
        "categories": {row["name"]: row["bytes"] for row in report["categories"] if row["bytes"]},
        "modules": [[m["path"], m["bytes"], m["saved_bytes"]] for m in modules(report)],
        "lines": [[f"{row['file']}:{row['line']}", row["bytes"]] for row in report["lines"][:3]],
        "operators": {row["name"]: row["bytes"] for row in report["operators"][:6]},
        "ledger": {row["name"]: row["bytes"] for row in report["peak_ledger"]},
        "saved": report["saved"],
        "parts": {part: saved_in(report, part) for part in PARTS.get(case, ())},
        "findings": [[row["id"], row["title"], row["bytes"]] for row in report["findings"] if row["counted"]],
        "out_of_memory": failure and {n: failure[n] for n in ("tried_bytes", "free_bytes", "phase", "step", "message")},
        "printed": [line for line in text[:start] if not line.startswith("step ")],
    }
    if SHOWN[case] == run.name:
        result["report"] = [re.sub(r" · [\d.]+ s · ", " · ", line) for line in text[start:]]
    return result


def modules(report, deepest=4, most=16):
    """The largest modules that are not nested too deeply: what they hold at the peak, and what of it is saved."""
    outer = [m for m in report["modules"] if m["path"] and m["path"].count(".") < deepest]
    return sorted(outer, key=lambda m: (-m["saved_bytes"], -m["bytes"], m["path"]))[:most]


def saved_in(report, name):
    """What all modules of this name have saved at the peak."""
    return sum(m["saved_bytes"] for m in report["modules"] if m["path"].endswith(f".{name}"))


def measure_case(case, only_missing=False, jobs=1):
    path = ROOT / "examples" / case / "measured.json"
    before = json.loads(path.read_text()) if only_missing and path.exists() else {}
    results = {}

    def result_of(run):
        return before.get(run.name) or measure(case, run)

    with ThreadPoolExecutor(jobs) as pool:
        for run, result in zip(RUNS[case], pool.map(result_of, RUNS[case])):
            results[run.name] = result
            if run.name not in before:
                needed = size(result["peak"]["device_bytes"])
                print(f"{case:10} {run.name:18} {result['verdict']:13} {needed}", flush=True)
                path.write_text(as_text({**before, **results}), encoding="utf-8")
    path.write_text(as_text(results), encoding="utf-8")


def as_text(results):
    """JSON with one line for each item of a run."""
    runs = []
    for name, result in results.items():
        lines = [f"    {json.dumps(key)}: {json.dumps(value, ensure_ascii=False)}" for key, value in result.items()]
        runs.append(f"  {json.dumps(name)}: {{\n" + ",\n".join(lines) + "\n  }")
    return "{\n" + ",\n".join(runs) + "\n}\n"


# -- writing --------------------------------------------------------------------------------------------


class Measured:
    """A run in the expressions of tables.md."""

    def __init__(self, result):
        self.result = result
        peak, failure, gpu = result["peak"], result["out_of_memory"] or {}, result["gpu"]
        self.allocated, self.reserved, self.device = (peak[f"{n}_bytes"] for n in ("allocated", "reserved", "device"))
        self.card, self.context, self.title = gpu["memory_bytes"], gpu["context_bytes"], gpu["title"]
        self.floor = result["floor_bytes"]
        self.tried, self.free = failure.get("tried_bytes"), failure.get("free_bytes")
        self.failed_in = failure and f"{failure['phase']}, step {failure['step']}"
        self.fits = result["verdict"] == "fits"
        self.verdict = "fits" if self.fits else f"out of memory: {size(self.tried)} wanted, {size(self.free)} free"
        self.short, self.answer = ("fits", "yes") if self.fits else ("does not fit", "**no**")
        self.at = f"`{peak['module']}`, {peak['phase']}" if peak["module"] else peak["phase"]
        self.phase = peak["phase"]
        self.kept, self.hooks = (result["saved"][f"{name}_bytes"] for name in ("saved", "module_outputs"))
        self.parameters = f"{result['parameters']['total']:,}"
        self.trained = f"{result['parameters']['trainable']:,}"
        self.torch, self.cudnn, self.workspaces = result["software"].values()

    def held(self, category):
        """What a category holds at the peak."""
        return self.result["categories"].get(category, 0)

    def module(self, path):
        """What a module holds at the peak."""
        return next(row[1] for row in self.result["modules"] if row[0] == path)

    def saved(self, path):
        """What a module has saved for backward at the peak."""
        return next(row[2] for row in self.result["modules"] if row[0] == path)

    def part(self, name):
        """What all modules of a name have saved at the peak."""
        return self.result["parts"][name]

    def explained(self):
        """Bytes of the peak that findings explain."""
        return sum(row[2] for row in self.result["findings"])

    def ledger(self, row):
        return self.result["ledger"][row]

    def by(self, operator):
        return self.result["operators"][operator]

    def number(self, pattern):
        """A number that the script printed, in the pattern's group."""
        return int(re.search(pattern, "\n".join(self.result["printed"]))[1].replace(",", ""))

    def report(self):
        """The command, and the report without the next command."""
        command = self.result["command"].replace(PYTHON, "python")
        lines = self.result["report"]
        end = next((number for number, line in enumerate(lines) if line.startswith("next ")), len(lines))
        return "\n".join(["```console", f"$ fathom run {command}", *lines[:end], "```"])


def size(count):
    """Bytes as Fathom prints them."""
    for unit, name in ((GIB, "GiB"), (MIB, "MiB"), (KIB, "KiB")):
        if abs(count) >= unit:
            return f"{count / unit:.{2 if unit == GIB else 1}f} {name}"
    return f"{count} B"


def mib(count):
    return f"{count / MIB:,.0f}"


def gb(count):
    return f"{count / 1e9:.1f} GB"


def percent(part, whole):
    return f"{100 * part / whole:.0f} %"


def less(after, before):
    return f"{100 * (1 - after / before):.0f} %"


def times(more, fewer):
    return f"{more / fewer:.1f}"


HELPERS = {f.__name__: f for f in (size, mib, gb, percent, less, times, min, max, sum)} | {"MIB": MIB, "GIB": GIB}
FLAGS = {"--jobs", "--missing", "--write", "--check"}
BLOCK = re.compile(r"<!-- table: (\S+) -->\n(.*?)<!-- end -->", re.S)


def filled(case):
    """The blocks of a case with its numbers in them."""
    folder = ROOT / "examples" / case
    runs = {name: Measured(result) for name, result in json.loads((folder / "measured.json").read_text()).items()}

    def value(found):
        result = eval(found[1], {"__builtins__": {}}, {**HELPERS, **runs})  # our own file, as trusted as this one
        return size(result) if type(result) is int else str(result)

    blocks = BLOCK.findall((folder / "tables.md").read_text(encoding="utf-8"))
    return {name: re.sub(r"\{([^{}]+)\}", value, text) for name, text in blocks}


def written(case):
    """The README as it should be, and as it is."""
    now = (ROOT / "examples" / case / "README.md").read_text(encoding="utf-8")
    blocks = filled(case)
    used = [found[0] for found in BLOCK.findall(now)]
    if sorted(used) != sorted(blocks):
        sys.exit(f"examples/{case}: README.md has the blocks {used}, tables.md {list(blocks)}")
    return BLOCK.sub(lambda found: f"<!-- table: {found[1]} -->\n{blocks[found[1]]}<!-- end -->", now), now


def cores():
    """Those that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()


def take_jobs(words):
    """`--jobs N`, and the words without it."""
    if "--jobs" not in words:
        return cores(), words
    at = words.index("--jobs")
    number = words[at + 1] if at + 1 < len(words) else ""
    if not number.isdecimal() or int(number) == 0:
        sys.exit(f"`--jobs {number}` is no number of runs\nhint: a whole number from 1 on, as `--jobs 2`")
    return int(number), words[:at] + words[at + 2 :]


def main(words):
    jobs, words = take_jobs(words)
    flags = {word for word in words if word.startswith("--")}
    cases = [word for word in words if word not in flags] or list(RUNS)
    unknown = [case for case in cases if case not in RUNS] + sorted(flags - FLAGS)
    if unknown:
        sys.exit(f"`{unknown[0]}` is no case and no flag\nhint: {', '.join([*RUNS, *sorted(FLAGS)])}")
    stale = []
    for case in cases:
        if not flags & {"--check", "--write"}:
            measure_case(case, "--missing" in flags, jobs)
        wanted, now = written(case)
        if "--check" in flags:
            stale += [case] if wanted != now else []
        elif wanted != now:
            (ROOT / "examples" / case / "README.md").write_text(wanted, encoding="utf-8")
    if stale:
        sys.exit(f"stale: {', '.join(f'examples/{case}/README.md' for case in stale)}\nhint: make cases")


if __name__ == "__main__":
    main(sys.argv[1:])
