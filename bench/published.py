"""Published memory snapshots, and what the same program does on the phantom, event by event."""

import dataclasses
import os
import subprocess

from result import FATHOM, ROOT, Table

DATA = ROOT / "bench" / "data" / "snapshots"
SCRIPT = ROOT / "bench" / "real_cards" / "programs.py"

# By program: who published it, and a card of the generation that its workspaces show.
PROGRAMS = {
    "linear": ("shreyansh26/MLSys-Experiments: a linear layer, three times", "h100-80g"),
    "attention": ("silmont2000/assignment2-systems: attention, spelled out, forward and backward", "rtx3090"),
    "transformer": ("NiuHuangxiaozi/assignment2-systems: three steps of a transformer", "rtx3090"),
}


@dataclasses.dataclass
class Trace:
    """Events, and the peaks they add up to. A block is its request in whole 512 bytes."""

    events: list
    allocated: int = 0
    reserved: int = 0

    def __post_init__(self):
        allocated = reserved = 0
        for kind, size in self.events:
            block = -(-size // 512) * 512
            allocated += {"alloc": block, "free_completed": -block}.get(kind, 0)
            reserved += {"segment_alloc": size, "segment_free": -size}.get(kind, 0)
            self.allocated = max(self.allocated, allocated)
            self.reserved = max(self.reserved, reserved)


def read(path):
    words = (line.split() for line in path.read_text().splitlines())
    return Trace([(kind, int(size)) for kind, size in words])


def equal_events(ours, theirs):
    """How many events are the same before the first that is not."""
    pairs = zip(ours.events, theirs.events)  # what is longer has no partner
    return next((at for at, (one, other) in enumerate(pairs) if one != other), min(len(ours.events), len(theirs.events)))


def run(program, python, folder):
    """The events of a program on the phantom, from the folder if they are there."""
    path = folder / f"published-{program}.txt"
    if not path.exists():
        flags = ["--quiet", "--steps", "0", "--record", "off", "--gpu", PROGRAMS[program][1]]
        words = [FATHOM, "run", *flags, "--", python, SCRIPT, program, path]
        done = subprocess.run(list(map(str, words)), cwd=ROOT, env=os.environ, capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise SystemExit(f"error: the run of {program} failed\n{done.stdout}{done.stderr}")
    return read(path)


def compare(python, folder, programs=PROGRAMS):
    """Rows of the table: a program, its events, how many are equal, both peaks of both."""
    rows = []
    for program in programs:
        ours, theirs = run(program, python, folder), read(DATA / f"{program}.txt")
        peaks = [theirs.allocated, ours.allocated, theirs.reserved, ours.reserved]
        rows.append([PROGRAMS[program][0], len(theirs.events), equal_events(ours, theirs), *peaks])
        print(f"{program}: {rows[-1][2]} of {rows[-1][1]} events are equal", flush=True)
    return rows


def table(rows):
    columns = {"snapshot": "text", "events": "count", "equal": "count"}
    columns |= dict.fromkeys(["allocated there", "here", "reserved there", "reserved here"], "bytes")
    notes = ["Equal: of the same kind and the same bytes, in the same place of the sequence, up to the first that is not."]
    return Table("Published snapshots, their programs run again", columns, rows, notes)


def broken(rows):
    """Programs that do not do the same, in words."""
    return [f"{row[0]}: only {row[2]} of {row[1]} events are equal" for row in rows if row[1] != row[2]]
