"""Counts what memory snapshots hold, one line each, with an unpickler that refuses all globals.

    python3 count.py FILE… > counts.txt
"""

import os
import pickle
import sys
from collections import Counter


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")


def count(path):
    with open(path, "rb") as file:
        snapshot = Plain(file).load()
    segments, traces = snapshot["segments"], snapshot["device_traces"]
    blocks = [block for segment in segments for block in segment["blocks"]]
    events = [event for trace in traces for event in trace]
    lists = [x["frames"] for x in segments + blocks + events if "frames" in x]
    line = lambda frame: frame["line"] if frame["line"] < 2**32 else 0
    unique = {id(x): tuple((f["name"], f["filename"], line(f)) for f in x) for x in lists}
    total = lambda things, key: sum(thing.get(key, 0) for thing in things)
    states, actions = Counter(b["state"] for b in blocks), Counter(e["action"] for e in events)
    fields = {
        "segments": len(segments),
        "reserved": total(segments, "total_size"),
        "allocated": total(segments, "allocated_size"),
        "active": total(segments, "active_size"),
        "requested": total(segments, "requested_size"),
        "blocks": len(blocks),
        "block_bytes": total(blocks, "size"),
        "block_requested": total(blocks, "requested_size"),
        "block_addresses": total(blocks, "address"),
        "states": "/".join(str(states[s]) for s in ("active_allocated", "active_pending_free", "inactive")),
        "events": "/".join(str(len(trace)) for trace in traces),
        "actions": ",".join(f"{name}={n}" for name, n in sorted(actions.items())),
        "addresses": total(events, "addr"),
        "sizes": total(events, "size"),
        "streams": total(events, "stream"),
        "times": total(events, "time_us"),
        "device_free": total(events, "device_free"),
        "stacks": len(set(unique.values())),
        "frames": len({frame for stack in unique.values() for frame in stack}),
        "frames_in_events": sum(len(event.get("frames", ())) for event in events),
        "annotations": len(snapshot.get("external_annotations", ())),
        "conf": repr(snapshot.get("allocator_settings", {}).get("PYTORCH_CUDA_ALLOC_CONF", "")),
    }
    return os.path.basename(path) + " " + " ".join(f"{key}={value}" for key, value in fields.items())


for path in sys.argv[1:]:
    print(count(path))
