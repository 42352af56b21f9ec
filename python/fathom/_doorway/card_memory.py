"""How much of the cards there is, and how much is in use."""

import ctypes

import torch


def allocated():
    """Bytes, on all cards. PyTorch's own function makes a table of all its numbers first."""
    if not torch.cuda.is_initialized():
        return 0
    stats = (torch._C._cuda_memoryStats(device) for device in range(torch.cuda.device_count()))
    return sum(each["allocated_bytes"]["all"]["current"] for each in stats)


def total_and_context(device):
    """Bytes of a card, and what a process takes before its first tensor.

    A real card is asked, and whoever asks gets a context there. The phantom knows without one: it may be a card
    that this process never uses.
    """
    ask = getattr(ctypes.CDLL(None), "fathom_card", None)
    if ask is None:
        free, total = torch.cuda.mem_get_info(device)
        return total, total - free
    total, context = ctypes.c_uint64(), ctypes.c_uint64()
    ask(ctypes.byref(total), ctypes.byref(context))
    return total.value, context.value
