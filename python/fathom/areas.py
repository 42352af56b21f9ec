"""What distributed training allocates for itself: gathered weights, buffers of collectives, buckets, received batches.

Nothing in these tensors says what they are for, but the method that makes them does. While one of the methods below
runs, everything that is allocated gets the method's name; a stronger name, such as a gradient's, still wins.
"""

import functools

from .guard import guarded
from .later import when_imported

UNSHARDED, COMMUNICATION = "unsharded_weights", "communication"


def of_group(text):
    """FSDP2 calls a group of parameters by the module that was sharded."""
    return lambda group: f"{text} {getattr(group, '_module_fqn', None) or 'the root module'}"


def of_stage(text):
    return lambda stage: f"{text} {getattr(stage, 'stage_index', '')}"


def always(text):
    return lambda _: text


FSDP2 = "torch.distributed.fsdp._fully_shard._fsdp_param_group"
FSDP1 = "torch.distributed.fsdp._flat_param"
STAGE = "torch.distributed.pipelining.stage"
BUCKETS = always("gradient buckets of DistributedDataParallel")

# Module, class, method, category, name.
METHODS = [
    (FSDP2, "FSDPParamGroup", "unshard", COMMUNICATION, of_group("all-gather of")),
    (FSDP2, "FSDPParamGroup", "wait_for_unshard", UNSHARDED, of_group("gathered weights of")),
    (FSDP2, "FSDPParamGroup", "post_backward", COMMUNICATION, of_group("reduce-scatter of")),
    (FSDP1, "FlatParamHandle", "unshard", UNSHARDED, always("gathered weights of FullyShardedDataParallel")),
    ("torch.nn.parallel.distributed", "DistributedDataParallel", "_ddp_init_helper", COMMUNICATION, BUCKETS),
    ("torch.distributed", "Reducer", "_rebuild_buckets", COMMUNICATION, BUCKETS),
    (STAGE, "PipelineStage", "_create_act_recv_info", COMMUNICATION, of_stage("received activations of stage")),
    (STAGE, "PipelineStage", "_create_grad_recv_info", COMMUNICATION, of_stage("received gradients of stage")),
]


class Areas:
    """Which area each part of the script ran in."""

    def __init__(self, recorder):
        self.recorder = recorder
        self.is_broken = False
        self.of_serial = {}  # serial number -> (category, name)
        for method in METHODS:
            when_imported(method[0], functools.partial(self.wrap, method))

    def wrap(self, method, module):
        _, owner, name, category, name_of = method
        owner = getattr(module, owner, None)
        inner = getattr(owner, name, None)
        if inner is None:  # another version of torch
            return

        @functools.wraps(inner)
        def call(this, *args, **kwargs):
            outer = self.enter(category, name_of, this)
            try:
                return inner(this, *args, **kwargs)
            finally:
                self.leave(outer)

        setattr(owner, name, call)

    @guarded
    def enter(self, category, name_of, this):
        local = self.recorder.local
        outer, local.area = local.area, (category, name_of(this))
        self.recorder.begin(local.part)
        return (outer,)

    @guarded
    def leave(self, outer):
        if outer is not None:
            self.recorder.local.area = outer[0]
            self.recorder.begin(self.recorder.local.part)

    def take(self):
        taken, self.of_serial = self.of_serial, {}
        return taken
