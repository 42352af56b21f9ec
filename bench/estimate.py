"""One estimate of one training by one tool, in a process of its own; the answer is a line of JSON.

    estimate.py TOOL MODEL [STEPS]

TOOL is a function of this file, MODEL a file of bench/models, with a size where it takes one (`llama:13B`). STEPS is a
number, or `told`: then it says READY, and takes as many steps as a line of its input says, until there are no more lines,
so that several tools can take turns. The answer
has `bytes` (the peak, or what the tool takes for it), `build` and `steps` in seconds: the clock starts when everything is
imported. A tool that fails answers with `error`. `bench/tools.py` starts this with the phantom's libraries, without which
torch's CUDA build cannot be imported.
"""

import functools
import importlib
import json
import sys
import time
import types
import weakref
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent / "models"))

import torch
import torch._dynamo  # every optimizer imports it when it is made
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves


class Clock:
    """Processor seconds of building and of each step: the machine is shared."""

    def __init__(self):
        self.build, self.steps = None, []

    def make(self, build, device):
        """The training, built."""
        began = time.process_time()
        training = build(device)
        self.build = time.process_time() - began
        return training

    def train(self, training, steps, after_step=lambda: None):
        """Its steps."""
        for _ in told() if steps == "told" else range(int(steps)):
            began = time.process_time()
            training.step()
            self.steps.append(time.process_time() - began)
            after_step()


def told():
    """Whoever started this says how many steps, again and again."""
    print("READY", flush=True)
    for line in sys.stdin:
        yield from range(int(line))
        print("READY", flush=True)


def phantom(build, steps, clock):
    """PyTorch's own allocator on the phantom: `max_memory_allocated`. Under `fathom run` this is what is recorded."""
    clock.train(clock.make(build, "cuda"), steps)
    return torch.cuda.max_memory_allocated()


def forward(build, steps, clock):
    """Only times: forward passes on the CPU."""
    training = clock.make(build, "cpu")
    training.step = training.forward
    clock.train(training, steps)


def meta(build, steps, clock):
    """Only times: the meta device counts nothing."""
    clock.train(clock.make(build, "meta"), steps)


def moved_where_needed(inner):
    """`to`, which does nothing with what is on the device already."""

    def to(self, *args, **kwargs):
        device, dtype, *_ = torch._C._nn._parse_to(*args, **kwargs)
        is_there = dtype is None and all(p.device.type == device.type for p in self.parameters())
        return self if is_there else inner(self, *args, **kwargs)

    return to


def hooked_if_trained(inner):
    def register_hook(tensor, hook):
        return inner(tensor, hook) if tensor.requires_grad else types.SimpleNamespace(remove=lambda: None)

    return register_hook


def faked(count):
    """Fake tensors of the card, or of the CPU where an operator has no fake form on the card."""

    @functools.wraps(count)
    def tool(build, steps, clock):
        # Values of weights do not matter, and this one asks for them: fake tensors have none.
        torch.nn.init.trunc_normal_ = lambda tensor, *_, **__: tensor
        # Nor can they be exchanged in a module. peft makes adapters where they belong, and in their own precision, but
        # goes through the motions.
        torch.nn.Module.to = moved_where_needed(torch.nn.Module.to)
        if "peft" in sys.modules:
            layer = sys.modules["peft.tuners.tuners_utils"].BaseTunerLayer
            layer._move_adapter_to_device_of_base_layer = lambda *_, **__: None
        try:
            return count(build, steps, clock, "cuda")
        except Exception as error:
            try:
                clock.__init__()
                return count(build, steps, clock, "cpu")
            except Exception:
                raise error from None

    return tool


@faked
def memtracker(build, steps, clock, device):
    """`torch.distributed._tools.MemTracker` under FakeTensorMode, as its documentation uses it."""
    from torch.distributed._tools.mem_tracker import MemTracker

    # It fails at the first frozen parameter, since it wants to see the gradient of each: here it passes over them.
    for name in ("register_hook", "register_post_accumulate_grad_hook"):
        setattr(torch.Tensor, name, hooked_if_trained(getattr(torch.Tensor, name)))
    tracker = MemTracker()
    with FakeTensorMode():
        training = clock.make(build, device)
        given = [leaf for leaf in tree_leaves(training.batch) if isinstance(leaf, torch.Tensor)]
        tracker.track_external(training.model, training.optimizer, *given)
        with tracker:
            clock.train(training, steps, tracker.reset_mod_stats)
    peaks = tracker.get_tracker_snapshot("peak")
    return sum(each["Total"] for where, each in peaks.items() if where.type == device)


class LiveBytes(TorchDispatchMode):
    """Adds up storages as they come and go, each rounded to the allocator's 512 bytes."""

    def __init__(self):
        super().__init__()
        self.now = self.peak = 0
        self.seen = weakref.WeakKeyDictionary()

    def __torch_dispatch__(self, func, types, args=(), kwargs=None):
        result = func(*args, **kwargs or {})
        for leaf in tree_leaves(result):
            if isinstance(leaf, torch.Tensor):
                self.add(leaf.untyped_storage())
        return result

    def add(self, storage):
        if storage not in self.seen:
            size = -(-storage.nbytes() // 512) * 512
            self.seen[storage] = size
            self.now += size
            self.peak = max(self.peak, self.now)
            weakref.finalize(storage, self.remove, size)

    def remove(self, size):
        self.now -= size


@faked
def livebytes(build, steps, clock, device):
    """The recipe that goes around: fake tensors, and the bytes of all storages that are alive."""
    with FakeTensorMode(), LiveBytes() as live:
        clock.train(clock.make(build, device), steps)
        return live.peak


def torchinfo(build, steps, clock):
    """`summary`: inputs, twice the outputs of all layers, parameters. Nothing is computed on the meta device."""
    import torchinfo

    training = build("meta")
    batch = training.batch
    data = {"input_data": batch} if isinstance(batch, dict) else {"input_data": list(batch)}
    found = torchinfo.summary(training.model, **data, device="meta", mode="train", verbose=0)
    return found.total_input + found.total_output_bytes + found.total_param_bytes


def accelerate(build, steps, clock):
    """What `accelerate estimate-memory` prints as "Training using Adam", for this model instead of one on the hub."""
    from accelerate.commands.estimate import estimate_training_usage
    from accelerate.utils import calculate_maximum_sizes

    model = build("meta").model
    total, _ = calculate_maximum_sizes(model)
    dtype = str(next(model.parameters()).dtype).removeprefix("torch.")
    usage = estimate_training_usage(total, dtype)
    return max(usage.values())


def deepspeed(build, steps, clock):
    """`estimate_zero2_model_states_mem_needs` for one card without offload."""
    from deepspeed.runtime.zero.stage_1_and_2 import estimate_zero2_model_states_mem_needs

    parameters = sum(parameter.numel() for parameter in build("meta").model.parameters())
    _, on_card = estimate_zero2_model_states_mem_needs(parameters, num_gpus_per_node=1, num_nodes=1, cpu_offload=False)
    return on_card


def main(tool, model, steps=2):
    name, *sizes = model.split(":")
    made = importlib.import_module(name).build
    clock, answer = Clock(), {}
    try:
        answer["bytes"] = globals()[tool](lambda device: made(device, *sizes), steps, clock)
        answer |= {"build": clock.build, "steps": clock.steps}
    except Exception as error:
        answer["error"] = f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"
    print("ANSWER", json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
