"""Random programs for PyTorch's own allocator, and what it did with them.

Runs inside a Python with torch, on the phantom or on a card, and compares with `allocator`:

    fathom run --steps 0 --values off --gpu rtx3090 -- \
        python tests/differential/programs.py <reproduce> --programs 100 --seed 1

`<reproduce>` is the example of the crate: `cargo build --release -p allocator --example reproduce`.
A program is text: `alloc a 1000 stream 1 pool 1`, `record a stream 2`, `free a`, `empty`. A program
that differs is shrunk and printed. Exit code 1 if one differs.
"""

import argparse
import contextlib
import os
import random
import subprocess
import sys

import torch

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import convert  # noqa: E402

MIB = 1 << 20
VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])

# Name, settings, memory fraction.
CASES = [
    ("default", "", None),
    ("default, little memory", "", 0.012),
    ("expandable segments", "expandable_segments:True", None),
    ("expandable segments, little memory", "expandable_segments:True", 0.012),
    ("split size", "max_split_size_mb:32", None),
    ("split size, little memory", "max_split_size_mb:24", 0.015),
    ("round-up", "roundup_power2_divisions:4", None),
    ("round-up by size", "roundup_power2_divisions:[1:8,4:2,64:4,>:1]", None),
    ("garbage collection", "garbage_collection_threshold:0.6", 0.02),
    ("all together", "garbage_collection_threshold:0.5,max_split_size_mb:64,roundup_power2_divisions:8", 0.02),
]
if VERSION >= (2, 6):
    CASES.append(("non-split rounding", "max_split_size_mb:21,max_non_split_rounding_mb:64", 0.03))
if VERSION >= (2, 11):
    CASES.append(("large segments", "large_segment_size_mb:64", None))
    CASES.append(("large pages", "large_segment_size_mb:32,expandable_segments:True", 0.02))


def size(rng):
    kind = rng.random()
    if kind < 0.3:
        return rng.randint(1, 64 << 10)
    if kind < 0.5:
        return rng.randint(64 << 10, MIB)
    if kind < 0.75:
        return rng.randint(MIB, 10 * MIB)
    if kind < 0.9:
        return rng.randint(10 * MIB, 70 * MIB)
    edge = rng.choice([512, 1024, MIB, 2 * MIB, 10 * MIB, 20 * MIB, 32 * MIB, 64 * MIB])
    return edge + rng.choice([-512, -1, 0, 1, 512])


def program(rng, streams, pools):
    """Lines of a random program."""
    lines, live = [], []
    few = [size(rng) for _ in range(rng.randint(2, 8))]
    frees = rng.uniform(0.2, 0.6)
    for number in range(rng.randint(5, 150)):
        chance = rng.random()
        if chance < 0.03:
            lines.append(("empty",))
        elif live and chance < 0.03 + frees:
            name = live.pop(rng.randrange(len(live)))
            if streams > 1 and rng.random() < 0.3:
                lines.append(("record", name, rng.randrange(streams)))
            lines.append(("free", name))
        else:
            name = f"b{number}"
            request = rng.choice(few) if rng.random() < 0.6 else size(rng)
            pool = rng.randrange(pools + 1) if rng.random() < 0.2 else 0
            lines.append(("alloc", name, request, rng.randrange(streams), pool))
            live.append(name)
    return lines


def text(line):
    if line[0] == "alloc":
        return "alloc {} {} stream {} pool {}".format(*line[1:])
    return " ".join(["record {} stream {}".format(*line[1:])] if line[0] == "record" else line)


def can_expand():
    empty_state()
    torch.cuda.memory._set_allocator_settings("expandable_segments:True")
    try:
        torch.empty(1, device="cuda")
    except RuntimeError:
        return False
    return True


def empty_state():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history(None)
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()


def run(lines, conf, fraction, streams):
    """What PyTorch's allocator did: snapshot, statistics before and after."""
    with_default = "expandable_segments:False" if "expandable_segments" not in conf else ""
    large = "large_segment_size_mb:20" if VERSION >= (2, 11) and "large_seg" not in conf else ""
    conf = ",".join(filter(None, [large, with_default, conf]))
    empty_state()
    torch.cuda.memory._set_allocator_settings(conf)
    torch.cuda.set_per_process_memory_fraction(fraction or 1.0)
    empty_state()
    before = torch.cuda.memory_stats()
    assert before["reserved_bytes.all.current"] == 0, "a program begins with nothing"
    torch.cuda.memory._record_memory_history(context=None, stacks="python")
    live, pools = {}, {}
    for line in lines:
        if line[0] == "empty":
            torch.cuda.empty_cache()
        elif line[0] == "alloc":
            _, name, request, stream, pool = line
            scope = contextlib.nullcontext()
            if pool:
                if pool not in pools:
                    pools[pool] = torch.cuda.MemPool()
                scope = torch.cuda.use_mem_pool(pools[pool])
            with scope, torch.cuda.stream(streams[stream]), contextlib.suppress(torch.cuda.OutOfMemoryError):
                live[name] = torch.empty(request, dtype=torch.uint8, device="cuda")
        elif line[0] == "record" and line[1] in live:
            live[line[1]].record_stream(streams[line[2]])
        elif line[0] == "free":
            live.pop(line[1], None)
    snapshot = torch.cuda.memory._snapshot()
    after = torch.cuda.memory_stats()
    live.clear()
    pools.clear()
    return conf, snapshot, before, after


def differences(lines, conf, fraction, streams, reproduce):
    """What our allocator did otherwise, as lines; and the recording's text."""
    conf, snapshot, before, after = run(lines, conf, fraction, streams)
    recording = list(convert.lines(snapshot, 0, torch.__version__, conf))
    total = torch.cuda.get_device_properties(0).total_memory
    recording.insert(1, f"memory {total}")
    # Without a call there is no limit; 1.0 is one up to 2.9.
    command = [reproduce, str(fraction or 1.0)]
    done = subprocess.run(command, input="\n".join(recording), capture_output=True, text=True, timeout=60)
    found = [line for line in done.stdout.splitlines() if not line.startswith(("stat ", "same "))]
    if done.returncode != 0 and not found:
        found.append(f"exit code {done.returncode}: {done.stderr[-500:]}")
    if not found:
        for line in done.stdout.splitlines():
            kind, *rest = line.split(" ")
            if kind == "stat":
                name, value = rest[0], int(rest[1])
                if name not in after:
                    continue
                expected = after[name] - (before[name] if name.startswith("num_") else 0)
                if value != expected:
                    found.append(f"{name}: PyTorch {expected}, ours {value}")
    return found, recording


def shrink(lines, differs):
    """Leaves out lines as long as the program still differs."""
    step = max(1, len(lines) // 2)
    while True:
        at = 0
        while at < len(lines):
            shorter = lines[:at] + lines[at + step :]
            if shorter and differs(shorter):
                lines = shorter
            else:
                at += step
        if step == 1:
            return lines
        step = max(1, step // 2)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("reproduce")
    parser.add_argument("--programs", type=int, default=20, help="per case")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--case", default="", help="only cases whose name contains this")
    parser.add_argument("--pools", type=int, default=0, help="private pools to allocate from")
    options = parser.parse_args()
    torch.cuda.init()
    streams = [torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    failed = 0
    for name, conf, fraction in CASES:
        if options.case not in name:
            continue
        if "expandable" in conf and not can_expand():
            print(f"torch {torch.__version__}, {name}: not possible on this device")
            continue
        same = 0
        for number in range(options.programs):
            rng = random.Random(f"{options.seed} {name} {number}")
            lines = program(rng, rng.choice([1, 1, 3]), options.pools)
            found, recording = differences(lines, conf, fraction, streams, options.reproduce)
            if not found:
                same += 1
                continue
            failed += 1
            if failed <= 3:
                again = lambda lines: bool(differences(lines, conf, fraction, streams, options.reproduce)[0])  # noqa: E731, B023
                short = shrink(lines, again)
                found, recording = differences(short, conf, fraction, streams, options.reproduce)
                print(f"--- {name} {number}, shrunk:", *map(text, short), "recording:", *recording, sep="\n")
            print(f"DIFFERS {name} {number}:", *found[:5], sep="\n  ")
        print(f"torch {torch.__version__}, {name}: {same} of {options.programs} programs agree", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
