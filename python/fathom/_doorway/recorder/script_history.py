"""The memory history that a script records itself: what it gets to see is what it would see without us.

Ours is recorded all the time, and cleared after each step. So from the moment that the script asks for a history, what
is cleared is kept for it (as bytes, which Python's collector does not count); its snapshots are put together from that,
with as many events, as many frames, and the texts that it asked for, and with nothing of ours.
"""

import os
import pickle

import torch

from .. import border, native
from ..file_owner import is_ours

# What PyTorch keeps if only the state is wanted.
STATE = 1

# What names of files of our libraries begin with.
LIBRARIES = ("libfathom_", "fathom_recorder.")

FRAMES = ("frames", "forward_frames")

SETTERS = ("_cuda_record_memory_history", "_cuda_record_memory_history_legacy")


class ScriptHistory:
    def __init__(self, history):
        self.history = history
        self.party = border.Party("the script's own memory history may be incomplete")
        self.is_on = False
        self.has_asked = False
        self.settings = {}
        self.most = 0  # events that it wants to see
        self.chunks = {}  # device -> [(events, their pickle)]
        self.seen = {}  # device -> events of the running history that are kept
        self.framed = set()  # addresses of blocks and segments that were allocated while frames were wanted
        self.snapshots = []  # whether each snapshot that is still to be seen in the history is the script's
        self.watch()

    def watch(self):
        self.party.instead(torch._C, SETTERS[0], lambda inner: lambda *args: self.ask(inner, args, is_legacy=False))
        self.party.instead(torch._C, SETTERS[1], lambda inner: lambda *args: self.ask(inner, args, is_legacy=True))
        self.party.instead(torch._C, "_cuda_memorySnapshot", lambda inner: lambda *args: self.show(inner(*args)))
        if hasattr(torch._C, "_cuda_setMemoryMetadata"):
            note_taker = self.history.note_taker
            self.party.instead(torch._C, "_cuda_setMemoryMetadata", lambda inner: note_taker.set_text)
            self.party.instead(torch._C, "_cuda_getMemoryMetadata", lambda inner: note_taker.text)
        if hasattr(torch._C, "_cuda_allocationTraceback"):
            self.party.instead(torch._C, "_cuda_allocationTraceback", lambda inner: lambda at: self.traceback(inner(at), at))

    # -- what the script asks for --------------------------------------------------------------------------

    def ask(self, inner, args, is_legacy):
        """The script turns its history on or off."""
        asked = legacy(args) if is_legacy else self.history.record.read(args)
        if not is_known(asked):
            return inner(*args)  # which refuses it
        if not asked.get("record_cuda", True):
            return inner(*args)  # about pinned memory alone
        self.has_asked = True
        if not self.history.is_ended:
            self.history.drain()  # what was before is not the script's
        was_on, self.is_on = self.is_on, asked["enabled"] is not None
        if not self.is_on or not was_on or asked.get("clear_history"):
            self.chunks.clear()
        self.settings = asked
        self.most = 0 if not self.is_on else STATE if asked["enabled"] == "state" else asked["max_entries"]
        if not self.history.is_ended:
            self.history.begin()
        else:
            inner(*args)
            if not self.is_on or asked.get("clear_history"):  # PyTorch begins anew
                self.seen, self.snapshots = {}, []
        return None

    def wanted(self, ours):
        """What has to be recorded for both."""
        if not self.is_on:
            return ours
        asked, ours = self.settings, {name: value for name, value in ours.items() if name != "skip_actions"}
        passed = ("compile_context", "global_record_annotations", "record_pinned_host_memory")
        more = {name: asked[name] for name in passed if name in asked and name in self.history.record.names}
        context = asked["context"] if asked["context"] == "all" else ours["context"]
        return {**ours, **more, "context": context, "stacks": asked["stacks"]}

    # -- what happened -------------------------------------------------------------------------------------

    def keep(self, traces, is_cleared):
        """We have taken the history, and cleared it or not."""
        if self.has_asked:
            self.absorb(traces)
            self.snapshots = [] if is_cleared else [*self.snapshots, False]
        self.seen = {} if is_cleared else {device: len(trace) for device, trace in enumerate(traces)}

    def absorb(self, traces):
        """Keeps events that are new."""
        labels = self.snapshots
        for device, trace in enumerate(traces):
            labels, fresh = list(self.snapshots), []
            for event in trace[self.seen.get(device, 0) :]:
                self.follow(event)
                if event["action"] == "snapshot" and not (labels and labels.pop(0)):
                    continue
                fresh.append(event)
            skipped = self.settings.get("skip_actions") or ()
            self.add(device, [event for event in fresh if event["action"] not in skipped])
        self.snapshots = labels

    def add(self, device, events):
        if not self.is_on or not events:
            return
        chunks = self.chunks.setdefault(device, [])
        chunks.append((len(events), pickle.dumps([self.cleaned(event) for event in events])))
        while sum(count for count, _ in chunks[1:]) >= self.most:
            del chunks[0]

    def follow(self, event):
        """Which blocks and segments have frames that the script asked for."""
        action = event["action"]
        if action in ("alloc", "segment_alloc", "segment_map"):
            known = self.framed.add if self.is_on and self.settings["context"] is not None else self.framed.discard
            known((action == "alloc", event["addr"]))
        elif action in ("free_completed", "segment_free", "segment_unmap"):
            self.framed.discard((action == "free_completed", event["addr"]))

    def cleaned(self, event):
        event = dict(event)
        hide_text(event)
        for key in FRAMES:
            if key in event:
                event[key] = without_ours(event[key])
        if self.settings["context"] in (None, "state"):
            event.pop("frames", None)
            event.pop("forward_frames", None)
        return event

    # -- what the script gets to see -----------------------------------------------------------------------

    def show(self, snapshot):
        """A snapshot that the script has taken."""
        traces = snapshot["device_traces"]
        self.absorb(traces)
        self.snapshots.append(self.is_on)
        self.seen.update({device: len(trace) for device, trace in enumerate(traces)})
        snapshot["device_traces"] = [self.events(device) for device in range(len(traces))]
        for segment in snapshot["segments"]:
            self.strip(segment, is_block=False)
            for block in segment["blocks"]:
                self.strip(block, is_block=True)
        return snapshot

    def events(self, device):
        found = [event for _, chunk in self.chunks.get(device, ()) for event in pickle.loads(chunk)]
        return found[-self.most :] if self.most else []

    def strip(self, place, is_block):
        has_frames = (is_block, place["address"]) in self.framed
        for key in FRAMES:
            if key in place:
                place[key] = without_ours(place[key]) if has_frames else []

    def traceback(self, frames, address):
        return without_ours(frames) if frames is not None and (True, address) in self.framed else None


def hide_ours(party):
    """Where nothing is recorded, the script's history is its own but for frames of ours, and for texts that a recording
    which broke off has left in autograd's threads."""

    def hidden(snapshot):
        blocks = [block for segment in snapshot["segments"] for block in (segment, *segment["blocks"])]
        events = [event for trace in snapshot["device_traces"] for event in trace]
        for place in (*blocks, *events):
            for key in FRAMES:
                if key in place:
                    place[key] = without_ours(place[key])
        for event in events:
            hide_text(event)
        return snapshot

    party.instead(torch._C, "_cuda_memorySnapshot", lambda inner: lambda *args: hidden(inner(*args)))


def hide_text(event):
    """Of the text of an event, only what the script has set stays."""
    if "user_metadata" in event and event["action"] != "annotate":
        event["user_metadata"] = native.NoteTaker.own_text(event["user_metadata"])


def without_ours(frames):
    return [frame for frame in frames if not is_of_ours(frame)]


def is_of_ours(frame):
    """A frame of our Python, or of our library if frames of C++ are wanted."""
    file, name = frame["filename"], frame["name"]
    return is_ours(file) or os.path.basename(file).startswith(LIBRARIES) or "pyo3::" in name or "fathom_recorder" in name


def is_known(asked):
    """Whether these are settings that PyTorch takes."""
    return (
        asked["enabled"] in (None, "state", "all")
        and asked["context"] in (None, "state", "alloc", "all")
        and asked["stacks"] in ("python", "all")
        and isinstance(asked["max_entries"], int)
    )


def legacy(args):
    """The older form: (enabled, with frames of blocks, events, with frames of events, with frames of C++, …)."""
    enabled, of_blocks, most, of_events, with_cpp, *rest = (*args, *5 * [None])[: max(5, len(args))]
    names = ("clear_history", "compile_context", "global_record_annotations", "skip_actions", "record_pinned_host_memory", "record_cuda")
    return {
        "enabled": "all" if enabled else None,
        "context": "alloc" if of_events else "state" if of_blocks else None,
        "stacks": "all" if with_cpp else "python",
        "max_entries": most,
        **dict(zip(names, rest)),
    }
