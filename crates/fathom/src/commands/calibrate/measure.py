"""What a GPU shows beside the memory that PyTorch has reserved, after each kind of first use. Prints one JSON object."""

import ctypes
import json
import os
import sys
import time

NVML = "libnvidia-ml.so.1"


class Memory(ctypes.Structure):
    _fields_ = [("total", ctypes.c_ulonglong), ("free", ctypes.c_ulonglong), ("used", ctypes.c_ulonglong)]


class Process(ctypes.Structure):
    _fields_ = [
        ("pid", ctypes.c_uint),
        ("used", ctypes.c_ulonglong),
        ("instance", ctypes.c_uint),
        ("compute_instance", ctypes.c_uint),
    ]


class Card:
    """The first GPU that PyTorch sees, as the driver's own library sees it."""

    def __init__(self):
        self.nvml = ctypes.CDLL(NVML)
        self.ask("nvmlInit_v2")
        self.handle = ctypes.c_void_p()
        self.find()

    def ask(self, name, *args):
        code = getattr(self.nvml, name)(*args)
        if code != 0:
            raise OSError(f"{name} of {NVML} answers {code}")

    def find(self):
        first = os.environ.get("CUDA_VISIBLE_DEVICES", "0").split(",")[0].strip()
        if first.isdigit() or first == "":
            self.ask("nvmlDeviceGetHandleByIndex_v2", ctypes.c_uint(int(first or 0)), ctypes.byref(self.handle))
        else:
            self.ask("nvmlDeviceGetHandleByUUID", first.encode(), ctypes.byref(self.handle))

    def driver(self):
        text = ctypes.create_string_buffer(96)
        self.ask("nvmlSystemGetDriverVersion", text, ctypes.c_uint(96))
        return text.value.decode()

    def used(self):
        """Of the whole card."""
        memory = Memory()
        self.ask("nvmlDeviceGetMemoryInfo", self.handle, ctypes.byref(memory))
        return memory.used

    def own(self):
        """Of this process; `None` where the driver does not say, as in some containers."""
        count = ctypes.c_uint(256)
        rows = (Process * 256)()
        try:
            self.ask("nvmlDeviceGetComputeRunningProcesses_v3", self.handle, ctypes.byref(count), rows)
        except (OSError, AttributeError):
            return None
        mine = [row.used for row in rows[: count.value] if row.pid == os.getpid()]
        return mine[0] if mine and 0 < mine[0] < 1 << 62 else None


def is_phantom():
    """Fathom's own GPU, of which nothing can be measured."""
    return hasattr(ctypes.CDLL(None), "fathom_part")


def context(torch):
    torch.cuda.mem_get_info()


def kernels(torch):
    torch.ones(1000, device="cuda").add_(1).sum()


def cublas(torch):
    for dtype in (torch.float32, torch.float16):
        one = torch.ones(256, 256, device="cuda", dtype=dtype)
        one @ one


def cudnn(torch):
    layer = torch.nn.Conv2d(16, 16, 3, device="cuda")
    layer(torch.ones(4, 16, 32, 32, device="cuda")).sum().backward()


def training(torch):
    """A small transformer and a small conv net, in both precisions, with an optimizer."""
    layer = torch.nn.TransformerEncoderLayer(256, 4, batch_first=True)
    words = torch.nn.Sequential(torch.nn.Embedding(1000, 256), layer, torch.nn.Linear(256, 1000))
    block = [torch.nn.Conv2d(3, 32, 3, padding=1), torch.nn.BatchNorm2d(32), torch.nn.ReLU(), torch.nn.MaxPool2d(2)]
    images = torch.nn.Sequential(*block, torch.nn.Flatten(), torch.nn.Linear(32 * 16 * 16, 10))
    batches = [
        (words.cuda(), torch.zeros(8, 64, dtype=torch.long, device="cuda")),
        (images.cuda(), torch.ones(8, 3, 32, 32, device="cuda")),
    ]
    for model, batch in batches:
        optimizer = torch.optim.AdamW(model.parameters())
        for is_half in (False, True):
            with torch.autocast("cuda", torch.float16, enabled=is_half):
                loss = model(batch).float().log_softmax(-1).mean()
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()


def measure():
    card = Card()
    before = [card.used()]
    time.sleep(0.5)
    before.append(card.used())
    import torch

    if not torch.cuda.is_available():
        raise OSError("this PyTorch sees no GPU")
    stages = []
    for stage in (context, kernels, cublas, cudnn, training):
        stage(torch)
        torch.cuda.synchronize()
        own = card.own()
        used = card.used() - before[-1] if own is None else own
        stages.append({"name": stage.__name__, "beside_bytes": max(0, used - torch.cuda.memory_reserved())})
        if stage is cublas:
            workspace = torch.cuda.memory_allocated()
    return {
        "is_phantom": is_phantom(),
        "card": torch.cuda.get_device_name(0),
        "memory_bytes": torch.cuda.get_device_properties(0).total_memory,
        "driver": card.driver(),
        "torch": torch.__version__.split("+")[0],
        "cuda": torch.version.cuda or "-",
        "loading": os.environ.get("CUDA_MODULE_LOADING", "LAZY").lower(),
        "by": "card" if own is None else "process",
        "is_disturbed": own is None and before[0] != before[1],
        "cublas_workspace_bytes": workspace,
        "stages": stages,
    }


try:
    print(json.dumps(measure()))
except (OSError, ImportError, RuntimeError) as error:
    print(json.dumps({"error": f"{type(error).__name__}: {str(error).strip().splitlines()[0]}"}))
    sys.exit(1)
