"""PyTorch's own planners of recomputation on the models of bench/planner.py, in a process of its own.

    torch_planners.py budget MODEL SHARE           `activation_memory_budget` of torch.compile's partitioner
    torch_planners.py ilp MODEL SHARE …            `torch.distributed._tools.sac_ilp`

MODEL is `unet` or `transformer:LAYERS:BATCH`. The answer is a line of JSON. The first trains on the phantom for three
steps: the peak is PyTorch's, operations are counted in the two graphs that the partitioner made. The second plans under
FakeTensorMode and is not carried out: its answers are its own predictions.
"""

import json
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tests" / "scripts"))

import torch  # noqa: E402
from torch import nn  # noqa: E402


def build(name, device):
    """A model, and a function that takes one step of it with AdamW."""
    if name == "unet":
        import unet

        with torch.device(device):
            model, given = unet.UNet(), torch.randn(16, 3, 128, 128)
        return model, given, lambda output: (output - given).square().mean()
    from blocks_flags import Model

    _, layers, batch = name.split(":")
    with torch.device(device):
        model, given = Model(int(layers), 256), torch.ones((int(batch), 256), dtype=torch.long)
    return model, given, lambda output: nn.functional.cross_entropy(output.flatten(0, 1), given.flatten())


def stepping(model, given, loss, call):
    # As the scripts do: the U-Net's own asks for the loop over parameters.
    optimizer = torch.optim.AdamW(model.parameters(), foreach=False if type(model).__name__ == "UNet" else None)

    def step():
        loss(call(given)).backward()
        optimizer.step()
        optimizer.zero_grad()

    return optimizer, step


def budget(name, share):
    """Reserved peak, operations of the forward graph and of the backward graph, what is computed again included."""
    import torch._functorch.config
    from functorch.compile import make_boxed_func, min_cut_rematerialization_partition
    from torch._dynamo.backends.common import aot_autograd
    from torch._guards import detect_fake_mode
    from torch.utils.flop_counter import FlopCounterMode

    torch._functorch.config.activation_memory_budget = float(share)
    flops = {"forward": 0, "backward": 0}

    def counting(side):
        def compile(graph, inputs):
            detect_fake_mode(inputs).allow_non_fake_inputs = True  # graphs keep small constants as they are
            with FlopCounterMode(display=False) as counter:
                torch.fx.Interpreter(graph).run(*inputs)
            flops[side] += counter.get_total_flops()
            return make_boxed_func(graph.forward)

        return compile

    sides = {"fw_compiler": counting("forward"), "bw_compiler": counting("backward")}
    backend = aot_autograd(**sides, partition_fn=min_cut_rematerialization_partition)
    model, given, loss = build(name, "cuda")
    _, step = stepping(model, given, loss, torch.compile(model, backend=backend, fullgraph=True))
    for _ in range(3):
        step()
    return {"reserved": torch.cuda.max_memory_reserved(), **flops}


def ilp(name, *shares):
    """For each share of its own baseline: the peak it predicts, and the time of recomputation by the forward pass's."""
    import torch.utils._runtime_estimation as estimation
    from torch._subclasses.fake_tensor import FakeTensorMode
    from torch.distributed._tools import ilp_utils, mem_tracker, runtime_estimator, sac_estimator, sac_ilp

    # It asks a driver for these, through triton: an A100's fp32 and memory (NVIDIA's data sheet of the A100 80 GB SXM).
    estimation.get_device_tflops = lambda *_, **__: 19.5
    estimation.get_device_dram_gbps = lambda *_, **__: 2039.0
    mode = "operator-level-cost-model"
    tracker, times, trade = mem_tracker.MemTracker(), runtime_estimator.RuntimeEstimator(), sac_estimator.SACEstimator()
    with FakeTensorMode():
        model, given, loss = build(name, "cuda")
        optimizer, step = stepping(model, given, loss, model)
        tracker.track_external(model, optimizer, given)
        with tracker:
            step()
            tracker.reset_mod_stats()
            step()
        with times(estimate_mode_type=mode):
            step()
        with trade(mode):
            loss(model(given))
        found = ilp_utils.aggregate_stats(model, tracker, times, trade, torch.device("cuda:0"))
    graph = ilp_utils.parse_module_info(found)
    peak, _ = ilp_utils.get_peak_memory_runtime_baseline(graph)
    forward = graph.nodes[0]["fw_runtime_per_module"]
    answers = []
    for share in map(float, shares):
        modules, again, predicted = sac_ilp.sac_milp(graph, share * peak / 2**30, world_size=1)
        answers.append({"share": share, "peak": predicted, "again": again / forward, "modules": len(modules)})
    return {"peak": peak, "plans": answers}


if __name__ == "__main__":
    try:
        found = {"budget": budget, "ilp": ilp}[sys.argv[1]](*sys.argv[2:])
    except Exception as error:
        found = {"error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
    print("ANSWER", json.dumps(found), flush=True)
