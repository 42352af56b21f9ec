"""PyTorch's own allocator as a service: random programs come in as text, what it did goes out as text.

    fathom run --steps 0 --values off --record off --memory 4GiB -- python tests/differential/server.py

Started by the test `differential` of the crate `allocator`, whose `program.rs` describes the text of a program;
each ends with `run`. The answer has what the card had, then the final segments and the trace as lines of a
recording, then `memory_stats` as `stat NAME NUMBER`, then `end`. One process answers many programs: each begins with
nothing reserved, PyTorch's default settings and counters at zero.
"""

import contextlib
import ctypes
import sys
import traceback
import warnings

import torch

VERSION = tuple(int(part) for part in torch.__version__.split(".")[:2])
CUDART = ctypes.CDLL(None)

# Keys that keep their value when a later text does not name them.
DEFAULTS = ["large_segment_size_mb:20"] if VERSION >= (2, 11) else []
DEFAULTS += ["throw_on_cudamalloc_oom:False", "per_process_memory_fraction:1.0"] if VERSION >= (2, 12) else []
DEFAULTS += ["expandable_segments:False"]


class Program:
    """One program, as far as it has run."""

    def __init__(self, streams):
        self.streams = streams
        self.pools = {}
        self.live = []
        self.occupied = []
        self.expanded = False

    def occupy(self, size):
        """Memory of the card that is not PyTorch's."""
        address = ctypes.c_void_p()
        if CUDART.cudaMalloc(ctypes.byref(address), ctypes.c_size_t(size)) != 0:
            raise RuntimeError(f"the card has no {size} bytes to occupy")
        self.occupied.append(address)

    def pool(self, number):
        if number == 0:
            return contextlib.nullcontext()
        if number not in self.pools:
            self.pools[number] = torch.cuda.MemPool()
        return torch.cuda.use_mem_pool(self.pools[number])

    def pool_lines(self):
        return [f"pool {number} {pool.id[1]}" for number, pool in sorted(self.pools.items())]

    def alloc(self, size, stream, pool):
        with self.pool(pool), torch.cuda.stream(self.streams[stream]):
            with contextlib.suppress(torch.cuda.OutOfMemoryError):
                self.live.append(torch.empty(size, dtype=torch.uint8, device="cuda"))

    def step(self, line):
        key, _, rest = line.partition(" ")
        words = rest.split()
        if key == "alloc":
            self.alloc(int(words[0]), int(words[2]), int(words[4]))
        elif key == "free" and self.live:
            self.live.pop(int(words[0]) % len(self.live))
        elif key == "record" and self.live:
            self.live[int(words[0]) % len(self.live)].record_stream(self.streams[int(words[2])])
        elif key == "synchronize":
            torch.cuda.synchronize()
        elif key == "empty_cache":
            torch.cuda.empty_cache()
        elif key == "settings":
            torch.cuda.memory._set_allocator_settings(rest)
            self.expanded |= "expandable_segments:True" in rest
        elif key == "fraction":
            torch.cuda.set_per_process_memory_fraction(float(rest))
        elif key == "occupied":
            self.occupy(int(rest))

    def close(self):
        self.live.clear()
        self.pools.clear()
        for address in self.occupied:
            CUDART.cudaFree(address)
        reset()
        if self.expanded:
            self.use_up()
            reset()

    def use_up(self):
        """A range that was reserved and never mapped, because there was no room, stays for the next program. PyTorch
        gives ranges back when their pages are unmapped, so each gets some."""
        torch.cuda.memory._set_allocator_settings("expandable_segments:True")
        for stream in self.streams:
            with torch.cuda.stream(stream):
                for size in (1, 2 << 20):
                    torch.empty(size, dtype=torch.uint8, device="cuda")


def reset():
    torch.cuda.synchronize()
    torch.cuda.empty_cache()
    torch.cuda.memory._record_memory_history(None)
    torch.cuda.memory._set_allocator_settings(",".join(DEFAULTS))
    torch.cuda.set_per_process_memory_fraction(1.0)
    torch.cuda.reset_peak_memory_stats()
    torch.cuda.reset_accumulated_memory_stats()


def stats():
    """`torch.cuda.memory_stats()`, without what it keeps of every pool there ever was: that would grow for ever."""
    found = {}

    def flatten(name, value):
        if isinstance(value, dict):
            for key, inner in value.items():
                flatten(f"{name}.{key}" if name else key, inner)
        else:
            found[name] = value

    nested = torch.cuda.memory_stats_as_nested_dict()
    nested.pop("reserved_bytes_by_private_pools", None)
    flatten("", nested)
    return found


def pool_text(pool):
    return "" if tuple(pool) == (0, 0) else f" pool {pool[0]}.{pool[1]}"


def state_lines(segments):
    """Segments, each with its blocks."""
    for segment in segments:
        expandable = " expandable" if segment["is_expandable"] else ""
        yield (
            f"segment {segment['address']:#x} {segment['total_size']} {segment['segment_type']}"
            f" stream {segment['stream']}{pool_text(segment['segment_pool_id'])}{expandable}"
        )
        for block in segment["blocks"]:
            yield f"block {block['address']:#x} {block['size']} {block['state']} requested {block['requested_size']}"


def event_lines(trace):
    for entry in trace:
        action, size, stream = entry["action"], entry["size"], entry["stream"]
        pool = pool_text(entry.get("pool_id", (0, 0)))
        if action == "oom":
            yield f"oom {size} free {entry['device_free']} stream {stream}{pool}"
        elif action.startswith("free"):
            yield f"{action} {entry['addr']:#x} {size}"
        elif action != "snapshot":
            yield f"{action} {entry['addr']:#x} {size} stream {stream}{pool}"


def answer(lines, streams):
    """What a program did, line by line."""
    program = Program(streams)
    try:
        before = stats()
        head = [line for line in lines if line.startswith("occupied")]
        for line in head:
            program.step(line)
        free, total = torch.cuda.mem_get_info()
        yield f"card {total} {free}"
        torch.cuda.memory._record_memory_history(context=None)
        for line in lines:
            if line not in head:
                program.step(line)
        yield from program.pool_lines()
        snapshot = torch.cuda.memory._snapshot()
        yield from state_lines(snapshot["segments"])
        yield from event_lines(snapshot["device_traces"][0])
        for name, value in stats().items():
            # Some counters are never set back.
            yield f"stat {name} {value - before[name] if name.startswith('num_') else value}"
    finally:
        program.close()


def main():
    # The call that sets settings at run time is deprecated by name only.
    warnings.simplefilter("ignore")
    torch.cuda.init()
    streams = [torch.cuda.default_stream(), torch.cuda.Stream(), torch.cuda.Stream()]
    reset()
    print("torch", torch.__version__)
    print("streams", *(stream.cuda_stream for stream in streams), flush=True)
    lines = []
    for line in map(str.strip, sys.stdin):
        if line != "run":
            lines.append(line)
            continue
        try:
            print(*answer(lines, streams), sep="\n")
        except Exception:
            print("failed", traceback.format_exc().replace("\n", " | "))
        print("end", flush=True)
        lines = []


if __name__ == "__main__":
    main()
