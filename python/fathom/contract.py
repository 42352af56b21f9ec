"""What the processes of a run tell each other: variables, names of files, and what is in them.

Generated from `crates/contract` (`UPDATE_GOLDEN=1 cargo test -p contract`): do not edit. Each function gives a
dictionary as the command reads it; what is a file by itself says its schema.
"""

from __future__ import annotations

# Variables of the environment: docs/reference/environment.md.
GPU = "FATHOM_GPU"
MEMORY = "FATHOM_MEMORY"
USED = "FATHOM_USED"
DEVICES = "FATHOM_DEVICES"
TIMEOUT = "FATHOM_TIMEOUT"
BUDGET = "FATHOM_BUDGET"
BASELINE = "FATHOM_BASELINE"
MARGIN = "FATHOM_MARGIN"
JOBS = "FATHOM_JOBS"
WORLD_SIZE = "FATHOM_WORLD_SIZE"
RANK = "FATHOM_RANK"
LETTERS = "FATHOM_LETTERS"
CUDA = "FATHOM_CUDA"
CUDNN = "FATHOM_CUDNN"
CUDNN_VERSION = "FATHOM_CUDNN_VERSION"
CACHE = "FATHOM_CACHE"
RUN = "FATHOM_RUN"
STEPS = "FATHOM_STEPS"
VALUES = "FATHOM_VALUES"
VALUE_SECONDS = "FATHOM_VALUE_SECONDS"
VALUE_BYTES = "FATHOM_VALUE_BYTES"
ASSUME = "FATHOM_ASSUME"
SEED = "FATHOM_SEED"
EVENTS = "FATHOM_EVENTS"
RECORD = "FATHOM_RECORD"
VERIFY = "FATHOM_VERIFY"
WHOLE_RUN = "FATHOM_WHOLE_RUN"
WHOLE = "FATHOM_WHOLE"
CONFINED = "FATHOM_CONFINED"
SOURCES = "FATHOM_SOURCES"
LEVERS = "FATHOM_LEVERS"
FLOPS = "FATHOM_FLOPS"
STRICT = "FATHOM_STRICT"
TRACE = "FATHOM_TRACE"
DOORWAY = "FATHOM_DOORWAY"
RECORDER = "FATHOM_RECORDER"
PYTEST_OUTCOME = "FATHOM_PYTEST_OUTCOME"

# A folder that goes with its process.
OWNER_FILE = "owner"
FOLDER_SCHEMA = "fathom.folder/1"

# Why a run could not be confined.
UNCONFINED_FILE = "unconfined"

# What a trial sees, a line of JSON each: docs/reference/files.md.
SOURCES_SCHEMA = "fathom.sources/1"

Process = dict[str, object]
Device = dict[str, object]
Moment = dict[str, object]
Site = dict[str, object]
Loader = dict[str, object]
Refusal = dict[str, object]
Decided = dict[str, object]
Generation = dict[str, object]
Fault = dict[str, object]
End = dict[str, object]
Early = dict[str, object]
Levers = dict[str, object]
Lever = dict[str, object]
Setting = dict[str, object]
Edit = dict[str, object]
Flops = dict[str, object]
Waits = dict[str, object]
Unanswered = dict[str, object]


def sources_file(pid: int) -> str:
    return f"sources.{pid}"


def process_file(pid: int) -> str:
    return f"process.{pid}.json"


def process(
    *,
    pid: int,
    python: str,
    torch: str,
    cuda: str | None = None,
    cudnn: int,
    architectures: list[str],
    steps: int,
    steps_of_all: int,
    backward_passes: int,
    step_milliseconds: int,
    devices: list[Device],
    refusals: list[Refusal],
    refusal_count: int,
    decisions: list[Decided],
    generations: list[Generation],
    rounds: str | None = None,
    faults: list[Fault],
    loaders: list[Loader],
    unreached: list[Site],
    refused: list[str],
    end: End | None = None,
) -> Process:
    """What was seen of one process."""
    return {
        "schema": "fathom.process/1",
        "pid": pid,
        "python": python,
        "torch": torch,
        "cuda": cuda,
        "cudnn": cudnn,
        "architectures": architectures,
        "steps": steps,
        "steps_of_all": steps_of_all,
        "backward_passes": backward_passes,
        "step_milliseconds": step_milliseconds,
        "devices": devices,
        "refusals": refusals,
        "refusal_count": refusal_count,
        "decisions": decisions,
        "generations": generations,
        "rounds": rounds,
        "faults": faults,
        "loaders": loaders,
        "unreached": unreached,
        "refused": refused,
        "end": end,
    }


def device(
    *,
    device: int,
    allocated: Moment | None = None,
    reserved: Moment | None = None,
    requested: Moment | None = None,
    total_bytes: int,
    flushes: int,
) -> Device:
    """A card as PyTorch saw it."""
    return {
        "device": device,
        "allocated": allocated,
        "reserved": reserved,
        "requested": requested,
        "total_bytes": total_bytes,
        "flushes": flushes,
    }


def moment(
    *,
    bytes: int,
    phase: str,
    step: int,
) -> Moment:
    """A peak and when it was."""
    return {
        "bytes": bytes,
        "phase": phase,
        "step": step,
    }


def site(
    *,
    file: str,
    line: int,
) -> Site:
    """A line of the user's."""
    return {
        "file": file,
        "line": line,
    }


def loader(
    *,
    is_evaluation: bool,
    batches: int | None = None,
    given: int,
    passes: int,
    looked_at: int,
    varies: str | None = None,
    smallest: list[int],
    largest: list[int],
    was_largest_given: bool,
    sizes_given: list[list[int]],
    grows_bytes: int,
) -> Loader:
    """A loader of batches, in a training that was shortened."""
    return {
        "is_evaluation": is_evaluation,
        "batches": batches,
        "given": given,
        "passes": passes,
        "looked_at": looked_at,
        "varies": varies,
        "smallest": smallest,
        "largest": largest,
        "was_largest_given": was_largest_given,
        "sizes_given": sizes_given,
        "grows_bytes": grows_bytes,
    }


def refusal(
    *,
    device: int,
    tried_bytes: int,
    free_bytes: int,
    phase: str,
    step: int,
    steps_done: int,
    file: str | None = None,
    line: int | None = None,
) -> Refusal:
    """A request that could not be met."""
    return {
        "device": device,
        "tried_bytes": tried_bytes,
        "free_bytes": free_bytes,
        "phase": phase,
        "step": step,
        "steps_done": steps_done,
        "file": file,
        "line": line,
    }


def decided(
    *,
    operator: str,
    why: str,
    assumed: str,
    file: str | None = None,
    line: int | None = None,
    library_file: str | None = None,
    library_line: int | None = None,
    count: int,
) -> Decided:
    """Something that the script decided by values which are not known."""
    return {
        "operator": operator,
        "why": why,
        "assumed": assumed,
        "file": file,
        "line": line,
        "library_file": library_file,
        "library_line": library_line,
        "count": count,
    }


def generation(
    *,
    tokens: int,
    file: str | None = None,
    line: int | None = None,
) -> Generation:
    """Texts that one line samples."""
    return {
        "tokens": tokens,
        "file": file,
        "line": line,
    }


def fault(
    *,
    loss: str,
    error: str,
    place: str,
    phase: str | None = None,
    step: int | None = None,
) -> Fault:
    """An error of ours."""
    return {
        "loss": loss,
        "error": error,
        "place": place,
        "phase": phase,
        "step": step,
    }


def end(
    *,
    kind: str,
    message: str | None = None,
    type: str | None = None,
    file: str | None = None,
    line: int | None = None,
) -> End:
    """How a process ended."""
    return {
        "kind": kind,
        "message": message,
        "type": type,
        "file": file,
        "line": line,
    }


def early_file(pid: int) -> str:
    return f"early.{pid}.json"


def early(
    *,
    end: End,
) -> Early:
    """The end of a process that no other file speaks of."""
    return {
        "schema": "fathom.early/1",
        "end": end,
    }


def levers_file(pid: int) -> str:
    return f"levers.{pid}.json"


def levers(
    *,
    levers: list[Lever],
) -> Levers:
    """What became of all that were asked for."""
    return {
        "schema": "fathom.levers/1",
        "levers": levers,
    }


def lever(
    *,
    lever: str,
    applied: bool,
    reason: str | None = None,
    sites: list[str],
    places: list[str],
    meets_batch_norm: bool,
    means_of_means: bool,
    change: str,
    batch: int | None = None,
    edits: list[Edit],
    in_the_way: list[str],
    words: list[str],
    settings: list[Setting],
) -> Lever:
    """One lever."""
    return {
        "lever": lever,
        "applied": applied,
        "reason": reason,
        "sites": sites,
        "places": places,
        "meets_batch_norm": meets_batch_norm,
        "means_of_means": means_of_means,
        "change": change,
        "batch": batch,
        "edits": edits,
        "in_the_way": in_the_way,
        "words": words,
        "settings": settings,
    }


def setting(
    *,
    name: str,
    like: str,
    shown: str,
    parts: int,
    batch: int | None = None,
    words: list[str],
    edits: list[Edit],
) -> Setting:
    """A setting that the script has already: a flag, a key of its config file, a constant."""
    return {
        "name": name,
        "like": like,
        "shown": shown,
        "parts": parts,
        "batch": batch,
        "words": words,
        "edits": edits,
    }


def edit(
    *,
    file: str,
    begin: int,
    end: int,
    text: str,
) -> Edit:
    """What stands in a file instead of some of its bytes."""
    return {
        "file": file,
        "begin": begin,
        "end": end,
        "text": text,
    }


def flops_file(pid: int) -> str:
    return f"flops.{pid}.json"


def flops(
    *,
    flops: dict[str, int],
    changing: list[str],
) -> Flops:
    """Counts of one process."""
    return {
        "schema": "fathom.flops/1",
        "flops": flops,
        "changing": changing,
    }


def waits_file(pid: int) -> str:
    return f"waits.{pid}.json"


def waits(
    *,
    rank: int,
    sender: int,
    letter: str,
    call: str,
) -> Waits:
    """A rank that needs what only another knows, which has not run yet."""
    return {
        "schema": "fathom.waits/1",
        "rank": rank,
        "sender": sender,
        "letter": letter,
        "call": call,
    }


def unanswered_file(pid: int) -> str:
    return f"unanswered.{pid}.json"


def unanswered(
    *,
    message: str,
) -> Unanswered:
    """A call that only other ranks could answer."""
    return {
        "schema": "fathom.unanswered/1",
        "message": message,
    }
