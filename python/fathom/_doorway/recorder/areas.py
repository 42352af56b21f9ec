"""What distributed training allocates for itself: gathered weights, buffers of collectives, buckets, micro-batches.

Nothing in these tensors says what they are for, but the method that makes them does. While one of the methods below
runs, everything that is allocated belongs to its area. Most areas also say what their tensors are: then these get a
name, unless a stronger one, such as a gradient's, is known. Parts of one area, such as micro-batches, have a number
after `#`.
"""

import functools
import itertools

from ..border import finishing, guarded
from ..graph import is_made
from ..import_hooks import when_imported

UNSHARDED, COMMUNICATION = "unsharded_weights", "communication"


def of_group(text):
    """FSDP2 calls a group of parameters by the module that was sharded."""
    return lambda group, *_: f"{text} {getattr(group, '_module_fqn', None) or 'the root module'}"


def of_stage(text):
    return lambda stage, *_: f"{text} {getattr(stage, 'stage_index', '')}"


def micro_batch(stage, chunk, *_):
    return f"micro-batches in flight of stage {getattr(stage, 'stage_index', '')}#{chunk}"


FSDP2 = "torch.distributed.fsdp._fully_shard._fsdp_param_group"
FSDP1 = "torch.distributed.fsdp._flat_param"
FSDP1_HOOKS = "torch.distributed.fsdp._runtime_utils"
ZERO = "torch.distributed.optim.zero_redundancy_optimizer"
STAGE = "torch.distributed.pipelining.stage"
DDP = "torch.nn.parallel.distributed"
DTENSOR, OLD_DTENSOR = "torch.distributed.tensor", "torch.distributed._tensor"
FUNCTIONAL = "torch.distributed._functional_collectives"
BUCKETS, EXPERTS, REDISTRIBUTED = "gradient buckets (DDP)", "all-to-all buffers of experts", "redistributed tensors (DTensor)"
DEEPSPEED, STAGE3, FETCHER = "deepspeed.runtime.zero", "DeepSpeedZeroOptimizer_Stage3", "PartitionedParameterCoordinator"
ZERO_BUCKETS, ZERO_WEIGHTS = "gradient buckets (DeepSpeed)", "gathered weights (DeepSpeed)"
ZERO_GRADIENTS = "partitions and buckets of gradients (DeepSpeed)"
RECEIVED, RECEIVED_GRADIENTS = of_stage("received activations of stage"), of_stage("received gradients of stage")

# Module, class or None, function, category or None, name, area; names and areas may be functions of the arguments.
METHODS = [
    (FSDP2, "FSDPParamGroup", "unshard", COMMUNICATION, of_group("all-gather of"), "all-gather buffers (FSDP2)"),
    (FSDP2, "FSDPParamGroup", "wait_for_unshard", UNSHARDED, of_group("gathered weights of"), "gathered weights (FSDP2)"),
    (FSDP2, "FSDPParamGroup", "post_backward", COMMUNICATION, of_group("reduce-scatter of"), "reduce-scatter buffers (FSDP2)"),
    (FSDP1, "FlatParamHandle", "unshard", UNSHARDED, "gathered flat parameter (FSDP1)", "gathered weights (FSDP1)"),
    (FSDP1_HOOKS, None, "_reduce_grad", COMMUNICATION, "reduce-scatter (FSDP1)", "reduce-scatter buffers (FSDP1)"),
    (DDP, "DistributedDataParallel", "_ddp_init_helper", COMMUNICATION, BUCKETS, BUCKETS),
    ("torch.distributed", "Reducer", "_rebuild_buckets", COMMUNICATION, BUCKETS, BUCKETS),
    (ZERO, "ZeroRedundancyOptimizer", "_local_step", None, None, "optimizer step of this rank's partition (ZeRO)"),
    (STAGE, "PipelineStage", "_create_act_recv_info", COMMUNICATION, RECEIVED, RECEIVED),
    (STAGE, "PipelineStage", "_create_grad_recv_info", COMMUNICATION, RECEIVED_GRADIENTS, RECEIVED_GRADIENTS),
    (STAGE, "_PipelineStageBase", "forward_one_chunk", None, None, micro_batch),
    (f"{DTENSOR}._redistribute", None, "redistribute_local_tensor", None, None, REDISTRIBUTED),
    (f"{DTENSOR}._dispatch", None, "redistribute_local_tensor", None, None, REDISTRIBUTED),
    (FUNCTIONAL, None, "all_to_all_single", COMMUNICATION, EXPERTS, EXPERTS),
    (FUNCTIONAL, None, "all_to_all_single_autograd", COMMUNICATION, EXPERTS, EXPERTS),
    (f"{DEEPSPEED}.stage_1_and_2", "DeepSpeedZeroOptimizer", "setup_buckets", COMMUNICATION, ZERO_BUCKETS, ZERO_BUCKETS),
    (f"{DEEPSPEED}.stage3", STAGE3, "_setup_for_real_optimizer", "gradients", ZERO_GRADIENTS, ZERO_GRADIENTS),
    (f"{DEEPSPEED}.stage3", STAGE3, f"_{STAGE3}__reduce_and_partition_ipg_grads", COMMUNICATION, ZERO_BUCKETS, ZERO_BUCKETS),
    (f"{DEEPSPEED}.partitioned_param_coordinator", FETCHER, f"_{FETCHER}__all_gather_params", UNSHARDED, ZERO_WEIGHTS, ZERO_WEIGHTS),
]  # fmt: skip

# Functions that are given their buffers.
GIVEN = ("all_to_all_single", "all_to_all")


class Areas:
    """Tells the note taker which area the script is in."""

    def __init__(self, recorder):
        self.recorder, self.party = recorder, recorder.party
        for method in METHODS:
            self.when_imported(method[0], functools.partial(self.wrap, method))
        for name in GIVEN:
            self.when_imported("torch.distributed", functools.partial(self.wrap_given, name))
        for name in (DTENSOR, OLD_DTENSOR):
            self.when_imported(name, functools.partial(self.wrap_to_local, name))

    def when_imported(self, name, then):
        when_imported(name, self.party.callback(then, f"the import of {name}"))

    def wrap(self, method, module):
        _, owner, name, *what = method
        owner = getattr(module, owner, None) if owner else module
        if hasattr(owner, name):  # else another version of torch
            self.party.around(owner, name, lambda args, _: self.enter(what, args), self.leave)

    def wrap_given(self, name, module):
        if hasattr(module, name):
            self.party.around(module, name, after=self.note_given)

    def wrap_to_local(self, name, module):
        """Between parallel layers a rank's part of an activation is an ordinary tensor, and looks like a whole one."""
        tensor = getattr(module, "DTensor", None)
        # The old name leads to the new class in later versions, where the new name has wrapped it.
        if tensor is not None and tensor.__module__.startswith(name):
            self.party.around(tensor, "to_local", after=self.note_local)

    @guarded
    def enter(self, what, args):
        category, name, area = what
        return (self.recorder.note_taker.enter_area(category, said(name, args), said(area, args)),)

    @finishing
    def leave(self, outer, *_):
        if outer is not None:
            self.recorder.note_taker.leave_area(*outer)

    @guarded
    def note_given(self, _, args, kwargs, result, error):
        """Functions of (output, input, …)."""
        names = ("output", "output_tensor_list", "input", "input_tensor_list")
        buffers = (*args[:2], *(buffer for name, buffer in (kwargs or {}).items() if name in names))
        lists = (buffer if isinstance(buffer, (list, tuple)) else (buffer,) for buffer in buffers)
        for tensor in itertools.chain(*lists if error is None else ()):
            if tensor.is_cuda:
                self.recorder.note_taker.name(COMMUNICATION, EXPERTS, tensor)
                self.recorder.note_taker.area(EXPERTS, tensor)
        self.recorder.note_taker.resume()

    @guarded
    def note_local(self, _, args, kwargs, local, error):
        whole = args[0]
        if error is None and local.is_cuda and is_made(whole):
            self.recorder.note_taker.area(layout(whole), local)


def layout(tensor):
    """The area of an activation that is a DTensor: each rank has a part of it, or all of it."""
    is_whole = all(placement.is_replicate() for placement in tensor.placements)
    return "activations that every rank has (DTensor)" if is_whole else "sharded activations (DTensor)"


def said(text, args):
    return text(*args) if callable(text) else text
