"""What is said of addresses: which tensor lies there, and what it is. No tensor is held."""

import torch

from .functions import PLAIN
from .recording_file import AREA, CATEGORIES, HOLDER, NAME, PHASE, TENSOR

CODES = {category: code for code, category in enumerate(CATEGORIES)}


class Notes:
    """Marks are (serial number, device, kind, code, text, address): they come after the events of that part."""

    def __init__(self):
        self.serial = 0  # of the part that runs
        self.marks = []
        self.named = {}  # address -> what its allocation was called last

    def tensor(self, tensor):
        if type(tensor) in PLAIN and tensor.is_cuda and not tensor._is_view() and tensor.layout is torch.strided:
            what = (tensor.dtype, tensor.shape)
            self.marks.append((self.serial, tensor.get_device(), TENSOR, 0, what, tensor.data_ptr()))

    def whole(self, tensor):
        """As `tensor`, of one that may be a view: if it is all that its storage holds."""
        if type(tensor) in PLAIN and tensor.layout is torch.strided and tensor.nbytes == tensor.untyped_storage().nbytes():
            what = (tensor.dtype, tensor.shape)
            self.marks.append((self.serial, tensor.get_device(), TENSOR, 0, what, tensor.data_ptr()))

    def name(self, category, name, tensor):
        for part in storages(tensor):
            self.marks.append((self.serial, part.get_device(), NAME, CODES[category], name, part.data_ptr()))

    def all(self, named):
        """Notes each, unless the same was said of this allocation before; gives their addresses."""
        noted = set()
        for category, name, tensor in named:
            if tensor.is_cuda:
                for part in storages(tensor):
                    address = part.data_ptr()
                    noted.add(address)
                    if self.named.get(address) != name:
                        self.named[address] = name
                        self.name(category, name, part)
                        self.tensor(part)
        return noted

    def holder(self, by, tensor):
        for part in storages(tensor):
            self.marks.append((self.serial, part.get_device(), HOLDER, 0, by, part.data_ptr()))

    def area(self, area, tensor):
        for part in storages(tensor):
            self.marks.append((self.serial, part.get_device(), AREA, 0, area, part.data_ptr()))

    def phase(self, serial, device, code, step):
        self.marks.append((serial, device, PHASE, code, step, 0))

    def take(self):
        marks, self.marks = self.marks, []
        return marks


def storages(tensor):
    """What of a tensor lies on the card: itself, or the parts of a sparse or a distributed one."""
    if tensor.layout is not torch.strided:
        return [part for part in (tensor._indices(), tensor._values()) if part.is_cuda] if tensor.is_sparse else []
    local = getattr(tensor, "_local_tensor", tensor)
    local = getattr(local, "elem", local)  # what a collective is still to fill
    return [local] if type(local) in PLAIN else []
