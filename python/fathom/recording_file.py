"""Writes a recording while the script runs; the form is described in `crates/recording/src/file.rs`.

Everything is interned: an event is one row of 24 bytes. Rows are written in chunks with a checksum, so that
what a killed process has written can still be read.
"""

import json
import linecache
import struct
import zlib

from .stacks import is_library

MAGIC = b"fathom-recording" + struct.pack("<I", 1)
ROW = struct.Struct("<BBHIQQ")

ALLOC, FREE_REQUESTED, FREE_COMPLETED, SEGMENT_ALLOC, SEGMENT_FREE, SEGMENT_MAP, SEGMENT_UNMAP, OOM = range(8)
PHASE, NAME, TENSOR, OWNER, HOLDER, DEFERRED, IDLE, AREA = 8, 9, 10, 11, 12, 13, 14, 15

ACTIONS = {
    "alloc": ALLOC,
    "free_requested": FREE_REQUESTED,
    "free": FREE_REQUESTED,
    "free_completed": FREE_COMPLETED,
    "segment_alloc": SEGMENT_ALLOC,
    "segment_free": SEGMENT_FREE,
    "segment_map": SEGMENT_MAP,
    "segment_unmap": SEGMENT_UNMAP,
    "oom": OOM,
}

PHASES = ("construction", "forward", "backward", "before_optimizer", "optimizer", "evaluation", "saving", "after_training")
CATEGORIES = ("unknown", "weights", "gradients", "optimizer", "activations", "inputs", "buffers", "model_copies",
              "casts", "temporaries", "workspace", "unsharded_weights", "communication")  # fmt: skip

# Of a line of source this much is kept.
LONGEST_LINE = 200

BLOCK_STATES = {"active_allocated": 0, "active_pending_free": 1, "active_awaiting_free": 1, "inactive": 2}


class Writer:
    def __init__(self, path):
        self.file = open(path, "wb")
        self.file.write(MAGIC)
        self.pending = {tag: bytearray() for tag in (b"TEXT", b"FRAM", b"SRCE", b"STAC", b"OWNR", b"MODU", b"PLAC")}
        self.texts, self.frames, self.stacks, self.owners, self.places = {"": 0}, {}, {}, {}, {}
        self.place(0, (0, 0))
        self.owner("", "", "", 0)

    # -- tables: each gives the number of what it is given, new or known ---------------------------

    def text(self, text):
        number = self.texts.get(text)
        if number is None:
            number = self.texts[text] = len(self.texts)
            encoded = text.encode("utf-8", "replace")
            self.pending[b"TEXT"] += struct.pack("<I", len(encoded)) + encoded
        return number

    def stack(self, file, function, line, caller):
        """A frame on top of a stack; 0 is the empty stack, which is not written."""
        key = (file, function, line, caller)
        number = self.stacks.get(key)
        if number is None:
            number = self.stacks[key] = len(self.stacks) + 1
            self.pending[b"STAC"] += struct.pack("<II", self._frame(file, function, line), caller)
        return number

    @staticmethod
    def source_of(file, line):
        """What stands on a line of the user's own: two commits are compared by it, when the file is long gone."""
        return "" if is_library(file) else linecache.getline(file, line).strip()[:LONGEST_LINE]

    def _frame(self, file, function, line):
        key = (file, function, line)
        number = self.frames.get(key)
        if number is None:
            number = self.frames[key] = len(self.frames)
            line = max(line or 0, 0)
            self.pending[b"FRAM"] += struct.pack("<III", self.text(file), self.text(function), line)
            source = self.source_of(file, line)
            if source:
                self.pending[b"SRCE"] += struct.pack("<II", number, self.text(source))
        return number

    def owner(self, module, operator, node, stack):
        key = (module, operator, node, stack)
        number = self.owners.get(key)
        if number is None:
            number = self.owners[key] = len(self.owners)
            row = (self.text(module), self.text(operator), self.text(node), stack)
            self.pending[b"OWNR"] += struct.pack("<IIII", *row)
        return number

    def module(self, path, kind):
        self.pending[b"MODU"] += struct.pack("<II", self.text(path), self.text(kind))

    def place(self, stream, pool):
        key = (stream, *pool)
        number = self.places.get(key)
        if number is None:
            number = self.places[key] = len(self.places)
            self.pending[b"PLAC"] += struct.pack("<QII", *key)
        return number

    # -- events -----------------------------------------------------------------------------------

    def flush(self, rows=b""):
        """Rows of events, and before them the tables: an event only names what stands before it."""
        for tag, payload in self.pending.items():
            self._chunk(tag, payload)
            self.pending[tag] = bytearray()
        self._chunk(b"EVNT", rows)
        self.file.flush()

    def about(self, facts):
        self._chunk(b"ABOU", json.dumps(facts).encode())

    def finish(self, segments):
        """The last state, as PyTorch's snapshot lists it."""
        payload = bytearray()
        for segment in segments:
            place = self.place(segment["stream"], segment.get("segment_pool_id", (0, 0)))
            flags = (segment["segment_type"] == "large") | (bool(segment.get("is_expandable")) << 1)
            blocks = segment["blocks"]
            payload += struct.pack("<QQHBBI", segment["address"], segment["total_size"], place, flags, 0, len(blocks))
            for block in blocks:
                state = BLOCK_STATES[block["state"]]
                row = (block["address"], block["size"], block.get("requested_size", 0), state)
                payload += struct.pack("<QQQB7x", *row)
        self.flush()
        self._chunk(b"FINI", payload)
        self._chunk(b"DONE", b"", always=True)
        self.file.close()

    def _chunk(self, tag, payload, always=False):
        if payload or always:
            check = zlib.crc32(payload, zlib.crc32(tag))
            self.file.write(tag + struct.pack("<II", len(payload), check) + payload)
