"""What is said of addresses: which tensor lies there, and what it is. No tensor is held."""

import operator
import struct

import torch

from .functions import PLAIN
from .recording_file import AREA, CATEGORIES, HOLDER, NAME, PHASE, TENSOR

CODES = {category: code for code, category in enumerate(CATEGORIES)}

# Serial number, device, kind, code, number of a word or of a step, address. Bytes, and not tuples: those would make
# Python collect garbage more often, and what hangs in cycles would leave the card earlier than without a recorder.
MARK = struct.Struct("<QHBBQQ")
FIRST = operator.itemgetter(0)


class Notes:
    """Marks come after the events of the part that they are made in."""

    def __init__(self):
        self.serial = 0  # of the part that runs
        self.marks = []
        self.words = []  # names, and what tensors are: (dtype, shape)
        self.numbers = {}  # of words
        self.named = {}  # address -> what its allocation was called last, and in which part

    def put(self, device, kind, code, word, address):
        number = self.numbers.get(word)
        if number is None:
            number = self.numbers[word] = len(self.words)
            self.words.append(word)
        self.marks.append(MARK.pack(self.serial, device, kind, code, number, address))

    def tensor(self, tensor):
        if type(tensor) in PLAIN and tensor.is_cuda and not tensor._is_view() and tensor.layout is torch.strided:
            self.put(tensor.get_device(), TENSOR, 0, (tensor.dtype, tensor.shape), tensor.data_ptr())

    def whole(self, tensor):
        """As `tensor`, of one that may be a view: if it is all that its storage holds."""
        if type(tensor) in PLAIN and tensor.layout is torch.strided and tensor.nbytes == tensor.untyped_storage().nbytes():
            self.put(tensor.get_device(), TENSOR, 0, (tensor.dtype, tensor.shape), tensor.data_ptr())

    def name(self, category, name, tensor):
        for part in storages(tensor):
            self.put(part.get_device(), NAME, CODES[category], name, part.data_ptr())

    def all(self, named):
        """Notes each, unless the same was said of this allocation before; gives the bytes at each address."""
        noted = {}
        for category, name, tensor in named:
            if tensor.is_cuda:
                for part in storages(tensor):
                    address = part.data_ptr()
                    noted[address] = part.nbytes  # of a view its own: gradients may share a bucket
                    known = self.named.get(address)
                    if known is None or known[0] != name:
                        self.named[address] = name, self.serial
                        self.name(category, name, part)
                        self.tensor(part)
        return noted

    def holder(self, by, tensor):
        for part in storages(tensor):
            self.put(part.get_device(), HOLDER, 0, by, part.data_ptr())

    def area(self, area, tensor):
        for part in storages(tensor):
            self.put(part.get_device(), AREA, 0, area, part.data_ptr())

    def phase(self, serial, device, code, step):
        self.marks.append(MARK.pack(serial, device, PHASE, code, step, 0))

    def take(self, device):
        """The marks of one card, in order of the parts that they follow."""
        taken = [mark for mark in map(MARK.unpack, self.marks) if mark[1] == device]
        return sorted(taken, key=FIRST)

    def forget(self):
        self.marks = []


def storages(tensor):
    """What of a tensor lies on the card: itself, or the parts of a sparse or a distributed one."""
    if tensor.layout is not torch.strided:
        return [part for part in (tensor._indices(), tensor._values()) if part.is_cuda] if tensor.is_sparse else []
    local = getattr(tensor, "_local_tensor", tensor)
    local = getattr(local, "elem", local)  # what a collective is still to fill
    return [local] if type(local) in PLAIN else []
