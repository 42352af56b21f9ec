"""Writes a synthetic memory snapshot: python3 make_snapshot.py EVENTS OUT [PROTOCOL]

Shaped like a long training run: one dict per frame, shared; a new list of 20 to 60 frames for
each allocation and each free, as torch makes one per captured stack; 1,500 places that allocate.
"""

import pickle
import random
import sys


def stacks(rng):
    frames = [
        {"name": f"function_{i}", "filename": f"/env/site-packages/package/module_{i % 97}.py", "line": 10 + i % 900}
        for i in range(2500)
    ]
    spine = frames[:40]
    places = []
    for _ in range(1500):
        depth = rng.randint(20, 60)
        outer = rng.randint(5, min(35, depth - 1))
        places.append(rng.choices(frames[40:], k=depth - outer) + spine[40 - outer :])
    return places


def trace(events, rng):
    places = stacks(rng)
    base, live, out, time_us = 0x7F0000000000, [], [], 1_760_000_000_000_000

    def add(action, address, size, frames):
        nonlocal time_us
        time_us += rng.randint(1, 90)
        out.append(
            {
                "action": action,
                "addr": address,
                "size": size,
                "stream": 0,
                "time_us": time_us,
                "compile_context": "N/A",
                "user_metadata": "",
                "frames": frames,
            }
        )

    while len(out) + 3 <= events:
        place = rng.randrange(len(places))
        address, size = base + 512 * len(out), 512 * rng.randint(1, 200_000)
        add("alloc", address, size, list(places[place]))
        live.append((address, size))
        if len(live) > 300:
            address, size = live.pop(rng.randrange(len(live)))
            frames = list(places[rng.randrange(len(places))])
            add("free_requested", address, size, frames)
            add("free_completed", address, size, frames)
    return out, live, places


def main():
    events, path = int(sys.argv[1]), sys.argv[2]
    protocol = int(sys.argv[3]) if len(sys.argv) > 3 else 4
    rng = random.Random(0)
    entries, live, places = trace(events, rng)
    segments = [
        {
            "device": 0,
            "address": address,
            "total_size": size,
            "allocated_size": size,
            "active_size": size,
            "requested_size": size,
            "stream": 0,
            "segment_type": "large",
            "segment_pool_id": (0, 0),
            "is_expandable": False,
            "frames": [],
            "blocks": [
                {
                    "address": address,
                    "size": size,
                    "requested_size": size,
                    "state": "active_allocated",
                    "frames": places[index % len(places)],
                }
            ],
        }
        for index, (address, size) in enumerate(live)
    ]
    snapshot = {"segments": segments, "device_traces": [entries], "external_annotations": []}
    with open(path, "wb") as file:
        pickle.dump(snapshot, file, protocol)


main()
