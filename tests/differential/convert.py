"""A memory snapshot of PyTorch as the text form of a recording, without executing anything in it.

    python convert.py snapshot.pickle [device] > recording.txt
"""

import pickle
import sys


class Reader(pickle.Unpickler):
    """Snapshots hold lists, dicts, texts and numbers only: every other class is refused."""

    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"a snapshot holds no {module}.{name}")


def load(path):
    with open(path, "rb") as file:
        return Reader(file).load()


def guess_version(snapshot):
    """The oldest version that writes these keys: section 10.6 of the specification."""
    if isinstance(snapshot, list):
        return "1.13"
    entries = [entry for trace in snapshot.get("device_traces", []) for entry in trace]
    settings = snapshot.get("allocator_settings")
    if "host_segments" in snapshot:
        return "2.14"
    if settings is not None and "max_round_threshold" in settings:
        return "2.13"
    if any("pool_id" in entry for entry in entries):
        return "2.12"
    if any("user_metadata" in entry for entry in entries):
        return "2.10"
    if settings is not None and "graph_capture_record_stream_reuse" in settings:
        return "2.9"
    if any("compile_context" in entry for entry in entries):
        return "2.8"
    if "external_annotations" in snapshot:
        return "2.5"
    if settings is not None:
        return "2.3"
    return "2.2" if any("time_us" in entry for entry in entries) else "2.1"


def pool_text(pool):
    return "" if tuple(pool) == (0, 0) else f" pool {pool[0]}.{pool[1]}"


def segment_lines(segment):
    """A segment, then its blocks."""
    pool = segment.get("segment_pool_id", (0, 0))
    expandable = " expandable" if segment.get("is_expandable") else ""
    yield (
        f"segment {segment['address']:#x} {segment['total_size']} {segment['segment_type']}"
        f" stream {segment['stream']}{pool_text(pool)}{expandable}"
    )
    address = segment["address"]
    for block in segment["blocks"]:
        state = block["state"].replace("active_awaiting_free", "active_pending_free")
        yield f"block {address:#x} {block['size']} {state} requested {block['requested_size']}"
        address += block["size"]


def pools(trace, segments):
    """The pool of each entry. Before 2.12 traces do not name pools: what lies in a final segment of
    a private pool is of that pool, back to where the segment was made; what was freed before the
    end cannot be known."""
    ranges = {
        segment["address"]: (segment["address"] + segment["total_size"], segment["segment_pool_id"])
        for segment in segments
        if tuple(segment.get("segment_pool_id", (0, 0))) != (0, 0)
    }
    found = []
    for entry in reversed(trace):
        address = entry.get("addr", 0)
        inside = (pool for start, (end, pool) in ranges.items() if start <= address < end)
        found.append(entry.get("pool_id") or next(inside, (0, 0)))
        if entry["action"] == "segment_alloc":
            ranges.pop(address, None)
    return reversed(found)


def event_lines(trace, segments):
    for entry, pool in zip(trace, pools(trace, segments)):
        action, size, stream = entry["action"], entry["size"], entry["stream"]
        if action in ("snapshot", "annotate"):
            continue
        if action == "oom":
            yield f"oom {size} free {entry['device_free']} stream {stream}{pool_text(pool)}"
            continue
        address = entry["addr"]
        if action in ("free_requested", "free_completed"):
            yield f"{action} {address:#x} {size}"
            continue
        owner = " owner 0" if action == "alloc" else ""
        yield f"{action} {address:#x} {size} stream {stream}{owner}{pool_text(pool)}"


def lines(snapshot, device=0, torch=None, settings=None):
    """The text form, line by line."""
    yield f"torch {torch or guess_version(snapshot)}"
    segments = snapshot if isinstance(snapshot, list) else snapshot["segments"]
    segments = [segment for segment in segments if segment["device"] == device]
    if settings is None and not isinstance(snapshot, list):
        settings = snapshot.get("allocator_settings", {}).get("PYTORCH_CUDA_ALLOC_CONF", "")
    # Settings made before the text was kept: the flag alone says it.
    if (settings is None or settings == "") and any(segment.get("is_expandable") for segment in segments):
        settings = "expandable_segments:True"
    if settings:
        yield f"settings {settings}"
    for segment in segments:
        yield from segment_lines(segment)
    if isinstance(snapshot, dict) and device < len(snapshot["device_traces"]):
        yield from event_lines(snapshot["device_traces"][device], segments)


def busiest_device(snapshot):
    traces = snapshot["device_traces"]
    return max(range(len(traces)), key=lambda device: len(traces[device])) if traces else 0


if __name__ == "__main__":
    loaded = load(sys.argv[1])
    number = int(sys.argv[2]) if len(sys.argv) > 2 else busiest_device(loaded)
    for line in lines(loaded, number):
        print(line)
