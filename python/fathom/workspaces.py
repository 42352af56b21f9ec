"""Work areas that libraries were given: the phantom sees their addresses, a real card's libraries do not say."""

import ctypes

# As in `crates/phantom/src/workspaces.rs`.
KINDS = {1: "cuBLAS workspace", 2: "cuDNN workspace"}


class Row(ctypes.Structure):
    _fields_ = [("part", ctypes.c_uint64), ("address", ctypes.c_uint64), ("kind", ctypes.c_uint64)]


class OnPhantom:
    def __init__(self, phantom):
        self.cell = ctypes.c_uint64.in_dll(phantom, "fathom_part")
        self.fill = phantom.fathom_workspaces
        self.fill.restype = ctypes.c_uint64

    def begin(self, serial):
        self.cell.value = serial

    def take(self):
        """(serial number, address) -> what it was, since the last call."""
        taken = {}
        rows = (Row * 4096)()
        while True:
            count = self.fill(rows, ctypes.c_uint64(len(rows)))
            taken.update(((row.part, row.address), KINDS.get(row.kind, "workspace")) for row in rows[:count])
            if count < len(rows):
                return taken


class Nowhere:
    def begin(self, serial):
        pass

    def take(self):
        return {}


def make():
    phantom = ctypes.CDLL(None)
    return OnPhantom(phantom) if hasattr(phantom, "fathom_workspaces") else Nowhere()
