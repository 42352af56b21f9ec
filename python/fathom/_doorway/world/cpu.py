"""Collectives of the CPU (gloo): PyTorch's own group without peers, in which all ranks hold what this one holds."""

from torch.distributed import distributed_c10d

from ..border import exchange
from .patch import replace
from .unanswered import answering


class _NobodyIsGloo(type):
    """PyTorch asks some groups whether they are gloo's: none is."""

    def __instancecheck__(cls, instance):
        return False


def install(world):
    group = fake_process_group()

    class ProcessGroupGloo(metaclass=_NobodyIsGloo):
        @answering
        def __new__(cls, store, rank, size, *_, **__):
            return group._create_internal(rank, size, options_of(group))

        Options = _Options

    if hasattr(distributed_c10d, "ProcessGroupGloo"):
        exchange(distributed_c10d, "ProcessGroupGloo", ProcessGroupGloo)
    # It checks that everybody came: everybody does.
    replace("monitored_barrier", lambda inner: lambda *_, **__: None)


class _Options:
    """Threads and interfaces of the network, which nobody needs here."""

    def __init__(self, *_, **__):
        self._devices, self._threads = [], 1


def fake_process_group():
    from torch._C._distributed_c10d import FakeProcessGroup

    return FakeProcessGroup


def options_of(group):
    options = group.Options()
    if hasattr(options, "simulate_uniform_ranks"):  # torch 2.15: sums are N times a rank's own
        options.simulate_uniform_ranks = True
    return options
