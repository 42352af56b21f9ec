"""Which versions of torch Fathom runs: installs each, tries it, and writes `results.json` and `docs/reference/versions.md`.

    python3 tests/versions/run.py [--folder DIR] [--keep] [VERSION…]

Each is installed without NVIDIA's packages into a folder of its own below DIR, which is removed afterwards unless it is
to be kept. A version that is not named keeps its row.
"""

import argparse
import json
import re
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
ROOT = HERE.parent.parent
FATHOM = ROOT / "target" / "release" / "fathom"
RESULTS = HERE / "results.json"
PAGE = ROOT / "docs" / "reference" / "versions.md"

# The last of each release.
VERSIONS = "2.1.2 2.2.2 2.3.1 2.4.1 2.5.1 2.6.0 2.7.1 2.8.0 2.9.1 2.10.0 2.11.0 2.12.0 2.13.0 2.14.1 2.15.0".split()
# By column: the script, and what `fathom run` is told besides.
CHECKS = {
    "train": ("train.py", []),
    "ranks": ("ranks.py", ["--world-size", "2"]),
    "Triton": ("kernel.py", []),
    "compile": ("compiled.py", []),
}
WORKS = "works"
STEPS = 3


def pip(python, *words):
    quiet = ["--quiet", "--disable-pip-version-check", "--no-deps"]
    subprocess.run([sys.executable, "-m", "pip", "--python", str(python), "install", *quiet, *words], check=True)


def triton_of(folder):
    """What its torch wants: `triton==3.6.0`, of newer ones `triton~=3.8.0`."""
    [metadata] = folder.glob("lib/python3*/site-packages/torch-*.dist-info/METADATA")
    wanted = [line.removeprefix("Requires-Dist: ") for line in metadata.read_text().splitlines()]
    return next(line.split(";")[0].strip() for line in wanted if re.match(r"triton *[=~]=", line))


def install(version, folder):
    python = folder / "bin" / "python"
    if not (folder / "done").exists():
        venv.create(folder, clear=True)
        pip(python, f"torch=={version}", "-r", str(ROOT / "requirements" / "runtime.txt"))
        pip(python, triton_of(folder))
        (folder / "done").touch()
    return python


def check(python, script, flags, folder):
    """`works`, or the first line that says what does not."""
    report = folder / "report.json"
    report.unlink(missing_ok=True)
    flags = ["--quiet", "--gpu", "rtx3090", "--steps", "0", "--verify", "off", "--whole", "off", "--json", str(report), *flags]
    command = [str(FATHOM), "run", *flags, "--", str(python), str(HERE / script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    said = done.stdout + done.stderr
    if not report.exists():
        return next((line for line in said.splitlines() if line.startswith("error: ")), "no report").replace(str(python), "python")
    answer = json.loads(report.read_text())
    if answer["verdict"] != "fits":
        return f"{answer['verdict']}: {answer['headline']}"
    warned = [line for line in said.splitlines() if line.startswith("fathom: ")]
    if warned:
        return warned[0]
    printed = [int(line.split()[1]) for line in said.splitlines() if line.startswith("PEAK")]
    if answer["steps"] != STEPS or not (answer["categories"] and answer["tensors"]):
        return f"{answer['steps']} of {STEPS} steps were seen, {len(answer['categories'] or [])} categories"
    recorded = answer["peak"]["allocated_bytes"]
    return WORKS if printed == [recorded] else f"PyTorch's peak is {printed}, the recorder's {recorded}"


def tried(version, folder):
    python = install(version, folder)
    row = {name: check(python, script, flags, folder) for name, (script, flags) in CHECKS.items()}
    print(version, row, flush=True)
    return row


def render(results):
    lines = [
        "# Versions of PyTorch",
        "",
        "Written by `make test-versions`; do not edit it by hand. Each version was installed as PyPI has it, without NVIDIA's",
        "packages, and ran four scripts on a phantom RTX 3090. *works*: the script goes through, its tensors are recorded, and",
        "the recorder's peak is PyTorch's own. *train*: a conv net; *ranks*: one rank of two under FSDP; *Triton*: a kernel of",
        "the Triton that this torch pins; *compile*: `torch.compile`.",
        "",
        "| torch | " + " | ".join(CHECKS) + " |",
        "| --- |" + " --- |" * len(CHECKS),
    ]
    for version in sorted(results, key=number):
        row = results[version]
        is_refused = all("is too old" in row[name] for name in CHECKS)
        cells = ["refused: too old"] * len(CHECKS) if is_refused else [row[name].replace("|", "\\|") for name in CHECKS]
        lines.append(f"| {version} | " + " | ".join(cells) + " |")
    refused = next((row["train"] for row in results.values() if "is too old" in row["train"]), None)
    lines += ["", f"An older torch is refused before anything runs: `{refused.removeprefix('error: ')}`"] if refused else []
    untried = [version for version in VERSIONS if version not in results]
    lines += ["", f"Not tried yet: {', '.join(untried)}."] if untried else []
    return "\n".join(lines).replace("`python`", "python") + "\n"


def number(version):
    return [int(part) for part in version.split(".")]


def main(asked):
    results = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    for version in asked.versions or VERSIONS:
        folder = Path(asked.folder, version)
        results[version] = tried(version, folder)
        if not asked.keep:
            shutil.rmtree(folder)
        RESULTS.write_text(json.dumps(results, indent=1) + "\n")
    PAGE.write_text(render(results))
    is_clear = all(cell == WORKS or cell.startswith("error: ") for row in results.values() for cell in row.values())
    raise SystemExit(0 if is_clear else "error: a version neither works nor is refused")


if __name__ == "__main__":
    assert sysconfig.get_platform() == "linux-x86_64"
    parser = argparse.ArgumentParser()
    parser.add_argument("versions", nargs="*")
    parser.add_argument("--folder", default=str(ROOT / ".venvs" / "versions"))
    parser.add_argument("--keep", action="store_true")
    main(parser.parse_args())
