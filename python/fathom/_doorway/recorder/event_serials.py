"""Says which part of the script an event of PyTorch's memory history belongs to.

Every part (a module, a function, a node of the backward pass) gets a serial number when it begins. Where torch
can attach a text to its events (2.10 and newer) the number goes there. Elsewhere PyTorch's count of allocations
is read at the beginning of each part: slower, and as exact.
"""

import bisect

import torch


class ByText:
    is_text = True  # and exact: the numbers of frees, too

    def __init__(self, devices):
        self.announce = torch._C._cuda_setMemoryMetadata

    def begun(self):
        return 0

    def serials(self, traces):
        """They are in the events."""
        return None

    def forget(self, begun):
        pass


class ByCount:
    is_text = False  # a free is only known to lie between two allocations

    def __init__(self, devices):
        self.numbers = []  # serial numbers of the parts that began
        self.counts = {device: [] for device in range(devices)}
        self.seen = dict.fromkeys(self.counts, 0)  # allocations that were handed out before the history

    def announce(self, serial):
        self.numbers.append(serial)
        for device, counts in self.counts.items():
            counts.append(torch._C._cuda_memoryStats(device)["allocation"]["all"]["allocated"])

    def begun(self):
        """How many parts have begun that are not forgotten."""
        return len(self.numbers)

    def serials(self, traces):
        """The serial number of each event of each card; 0 where it is not known."""
        return [list(self.of_card(device, trace)) for device, trace in enumerate(traces)]

    def of_card(self, device, trace):
        counts, count = self.counts[device], self.seen[device]
        for event in trace:
            # An allocation is counted after its part began: the last part that began at this count.
            at = bisect.bisect_right(counts, count)
            yield self.numbers[at - 1] if at else 0
            count += event["action"] == "alloc"
        self.seen[device] = count

    def forget(self, begun):
        """All but the last of so many parts, and those that began since."""
        del self.numbers[: begun - 1]
        for counts in self.counts.values():
            del counts[: begun - 1]


def make(devices):
    return (ByText if hasattr(torch._C, "_cuda_setMemoryMetadata") else ByCount)(devices)
