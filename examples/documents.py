"""Writes the documents of the examples with `fathom report`: `make documents`.

    python examples/documents.py              all of them
    python examples/documents.py avatar       this one
    python examples/documents.py --check      nothing is run: exit code 1 if one is stale

A document is stale if a file that it is about has changed since, or if examples/<case>/measured.json, which a test
compares with a run, has other peaks for the same command. Beside each MEMORY.md stands its JSON and its picture;
`documents.json` keeps the digests.
"""

import hashlib
import json
import re
import subprocess
import sys
from pathlib import Path

import cases

ROOT = Path(__file__).resolve().parent.parent
DIGESTS = ROOT / "examples" / "documents.json"


def of_case(case, config, *flags):
    script = [cases.PYTHON, f"examples/{case}/train.py", "--config", f"examples/{case}/{config}.yaml"]
    return [*flags, "--", *script]


def configs(case, *names):
    return "config=" + ",".join(f"examples/{case}/{name}.yaml" for name in names)


# For each example what `fathom report` is asked, and the run of cases.py with the same command, if there is one.
DOCUMENTS = {
    "first": (["--gpu", "rtx3090", "--", cases.PYTHON, "examples/first/train.py"], None),
    "uni3d-dp3": (
        of_case(
            "uni3d-dp3", "uni3d-128x64", "--gpu", "rtx3090,rtx3060-12g", "--compare",
            f"{cases.PYTHON} examples/uni3d-dp3/train.py --config examples/uni3d-dp3/dp3.yaml", "--vary",
            configs("uni3d-dp3", "uni3d-128x64", "uni3d-128x512", "uni3d-32x32-frozen", "uni3d-16x16-ultra-low"),
        ),
        "stated",
    ),
    "stdiff": (
        of_case(
            "stdiff", "document", "--gpu", "rtx-a6000", "--steps", "2", "--vary",
            configs("stdiff", "document", "ten-frames", "checkpointing", "checkpointing-every-level"),
        ),
        None,
    ),
    "bev-graph": (
        of_case(
            "bev-graph", "before", "--gpu", "v100-32g-pcie", "--vary",
            "voxel_size=[0.1,0.1,8.0],[0.2,0.2,8.0],[0.4,0.4,8.0]", "--vary",
            configs("bev-graph", "before", "after", "after-512", "after-256"),
        ),
        None,
    ),
    "dit3d": (
        of_case(
            "dit3d", "document", "--gpu", "t4", "--steps", "2", "--vary",
            configs("dit3d", "document", "s-2", "b-2", "l-2", "xl-2"),
        ),
        "document",
    ),
    "avatar": (of_case("avatar", "document", "--gpu", "a10g"), "document"),
}  # fmt: skip

SIZE = re.compile(r"(?<![\w.,])\d+(?:\.\d+)? (?:[KMG]iB|B)\b")


def digest(case):
    """Of all files that the document is about, and of how it was asked for."""
    folder = ROOT / "examples" / case
    files = sorted([*folder.glob("*.py"), *folder.glob("*.yaml"), *(ROOT / "examples" / "common").glob("*.py")])
    whole = hashlib.sha256(json.dumps(DOCUMENTS[case][0]).encode())
    for path in files:
        whole.update(path.name.encode() + b"\0" + path.read_bytes())
    return whole.hexdigest()


def written():
    """The examples that have a document."""
    return sorted(json.loads(DIGESTS.read_text(encoding="utf-8"))) if DIGESTS.exists() else []


def stale(case):
    """Why the document is to be written again; empty if it is not."""
    folder = ROOT / "examples" / case
    if not (folder / "MEMORY.json").exists():
        return [f"{case}: there is no document"]
    document = json.loads((folder / "MEMORY.json").read_text(encoding="utf-8"))
    why = []
    if json.loads(DIGESTS.read_text(encoding="utf-8")).get(case) != digest(case):
        why.append(f"{case}: a file has changed since")
    run = DOCUMENTS[case][1]
    if run:
        peak = json.loads((folder / "measured.json").read_text(encoding="utf-8"))[run]["peak"]
        # Without `--steps` the document's run goes on to a shortened training, whose peak may be a little higher.
        beyond = 0 if "--steps" in DOCUMENTS[case][0] else 0.01
        for name in ("allocated_bytes", "reserved_bytes", "device_bytes"):
            if not peak[name] <= document["anatomy"][name] <= peak[name] * (1 + beyond):
                why.append(f"{case}: {name} is {document['anatomy'][name]}, measured.json has {peak[name]}")
    return why


def sizes_of(value):
    """Every whole number, and every size that a text has."""
    if isinstance(value, dict):
        for inner in value.values():
            yield from sizes_of(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from sizes_of(inner)
    elif isinstance(value, str):
        yield from SIZE.findall(value)
    elif isinstance(value, int) and not isinstance(value, bool):
        yield cases.size(value)


def differences(document):
    """What the text subtracts: before and after, A and B."""
    change = document["change"]
    if change:
        for name in change["before"]:
            yield cases.size(abs(change["before"][name] - change["after"][name]))
    compared = document["compared"]
    if compared:
        pairs = [row["bytes"] for row in compared["components"]]
        pairs += [compared[name] for name in ("allocated_bytes", "reserved_bytes", "device_bytes")]
        yield from (cases.size(abs(a - b)) for a, b in pairs)


def unknown_sizes(text, document):
    """Sizes of a text that its JSON does not have. Element sizes of arithmetic (`× 4 B`) are no sizes of memory."""
    known = {*sizes_of(document), *differences(document)}
    text = re.sub(r"× \d+ B", "", text)
    return sorted({size for size in SIZE.findall(text) if size not in known})


def write(case):
    folder = ROOT / "examples" / case
    words = [cases.FATHOM, "report", "--quiet", "-o", f"examples/{case}/MEMORY.md", *DOCUMENTS[case][0]]
    environment = {k: v for k, v in cases.environment({}).items() if k not in ("FATHOM_VERIFY", "FATHOM_WHOLE_RUN")}
    done = subprocess.run(words, cwd=ROOT, capture_output=True, text=True, env=environment)
    if done.returncode != 0:
        sys.exit(f"{case}: {done.stdout}{done.stderr}")
    # The page can be made again, and is large.
    (folder / "MEMORY.html").unlink()
    digests = json.loads(DIGESTS.read_text(encoding="utf-8")) if DIGESTS.exists() else {}
    digests[case] = digest(case)
    DIGESTS.write_text(json.dumps(digests, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    print(f"{case}: {done.stdout.splitlines()[0]}", flush=True)


def main(words):
    named = [word for word in words if word != "--check"]
    wanted = named or (written() if "--check" in words else list(DOCUMENTS))
    unknown = [case for case in wanted if case not in DOCUMENTS]
    if unknown:
        sys.exit(f"`{unknown[0]}` is no example\nhint: {', '.join(DOCUMENTS)}")
    if "--check" in words:
        why = [reason for case in wanted for reason in stale(case)]
        sys.exit("\n".join([*why, "hint: make documents"]) if why else 0)
    for case in wanted:
        write(case)


if __name__ == "__main__":
    main(sys.argv[1:])
