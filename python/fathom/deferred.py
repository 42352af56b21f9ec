"""Frees that wait for work of other streams, and when a card would have had to be done with it.

PyTorch asks an event whether a stream is done with a block. The phantom notes in which part of the script the event
was recorded, and in which part the host had waited for it; a real card's events do not say.
"""

import ctypes


class Wait(ctypes.Structure):
    _fields_ = [("recorded", ctypes.c_uint64), ("done", ctypes.c_uint64)]


def take():
    """(part in which an event was recorded, part in which it was done at the latest), since the last call; `None` on a real card."""
    fill = getattr(ctypes.CDLL(None), "fathom_waits", None)
    if fill is None:
        return None
    fill.restype = ctypes.c_uint64
    taken, rows = [], (Wait * 4096)()
    while True:
        count = fill(rows, ctypes.c_uint64(len(rows)))
        taken.extend((row.recorded, row.done) for row in rows[:count])
        if count < len(rows):
            return taken


class Deferred:
    """Numbers the deferred frees of one card."""

    def __init__(self):
        self.of_serial = {}  # part in which they were requested -> their numbers
        self.count = 0
        self.settled = set()  # those that were done at some time

    def find(self, trace, serials):
        """Indices of events that request a deferred free: its completion does not follow in the same part."""
        found = set()
        actions = [entry["action"] for entry in trace]
        for index, (action, after) in enumerate(zip(actions, [*actions[1:], ""])):
            if action != "free_requested":
                continue
            is_same = after == "free_completed" and trace[index + 1]["addr"] == trace[index]["addr"]
            if not (is_same and serials[index + 1] == serials[index]):
                found.add(index)
                self.of_serial.setdefault(serials[index], []).append(self.count)
                self.count += 1
        return found

    def idle(self, waits):
        """(part, number of a free) for each free whose stream was done then."""
        for recorded, done in waits:
            for number in self.of_serial.get(recorded, ()):
                self.settled.add(number)
                yield done, number

    def rest(self):
        """Numbers of the frees that no stream was seen to be done with: they are at the end of the process."""
        return [number for number in range(self.count) if number not in self.settled]
