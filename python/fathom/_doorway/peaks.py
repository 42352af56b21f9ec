"""The peaks of this process's cards, by PyTorch's own statistics. Nothing is reset."""

import torch

from .. import contract

KINDS = ("allocated", "reserved", "requested")


class Peaks:
    def __init__(self):
        self.of_device = {}  # device -> {kind: moment}
        self.retries = {}  # device -> how often PyTorch emptied its cache for want of room, up to the last two steps

    def rise(self, phase, step):
        """Peaks that rose since the last call are those of the phase that ends here."""
        for device in range(torch.cuda.device_count()):
            stats = torch._C._cuda_memoryStats(device)
            best = self.of_device.setdefault(device, {})
            if phase == "optimizer":
                self.retries[device] = (*self.retries.get(device, (0,))[-1:], stats.get("num_alloc_retries", 0))
            for kind in KINDS:
                peak = stats.get(f"{kind}_bytes", {}).get("all", {}).get("peak", 0)
                if peak > best.get(kind, {"bytes": 0})["bytes"]:
                    best[kind] = contract.moment(bytes=peak, phase=phase, step=step)

    def rows(self):
        """A row for each card, for the process's file."""
        return [
            contract.device(device=device, **peaks, total_bytes=total(device), flushes=self.flushes(device))
            for device, peaks in sorted(self.of_device.items())
        ]

    def flushes(self, device):
        before, after = self.retries.get(device, (0, 0))
        return after - before


def total(device):
    """All bytes that were ever allocated: the same in two runs whose tensors have the same sizes."""
    return torch.cuda.memory_stats(device).get("allocated_bytes.all.allocated", 0)
