"""One rank of N on the phantom: launchers, values of collectives, shards, ranks side by side, bad input."""

import json
import resource
import time

import pytest
from conftest import PYTHON, SCRIPTS

WIDTH, BLOCKS = 1024, 2
FLAGS = ("--gpu", "rtx3090", "--timeout", "100")


MADE = {}  # runs that several tests look at


def world(fathom, size, *command, flags=(), ranks=None):
    """A script of tests/scripts as ranks of a world."""
    key = (size, command, flags, ranks)
    if key not in MADE:
        script, *arguments = command
        chosen = ("--ranks", ranks) if ranks else ()
        flags = (*FLAGS, "--world-size", size, *chosen, *flags)
        MADE[key] = fathom(PYTHON, SCRIPTS / f"{script}.py", *arguments, flags=flags)
    return MADE[key]


def trained(report, done):
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["verdict"] == "fits" and report["steps"] == 3
    for row in report["ranks"]:
        assert row["steps"] == 3 and row["verdict"] == "fits"
        categories = {entry["name"]: entry["bytes"] for entry in row["categories"]}
        assert sum(categories.values()) == row["peak_allocated_bytes"] > 0
        assert categories["unknown"] < 0.01 * row["peak_allocated_bytes"]
    return {entry["name"]: entry["bytes"] for entry in report["categories"]}


def block_shapes():
    return [(4 * WIDTH, WIDTH), (4 * WIDTH, 1), (WIDTH, 4 * WIDTH), (WIDTH, 1)]


def shard_bytes(size):
    """FSDP2 shards the first dimension and pads every rank's part to the same length."""
    return BLOCKS * sum(-(-rows // size) * columns * 4 for rows, columns in block_shapes())


@pytest.mark.parametrize("size", [2, 8, 4096])
def test_sharded_state_is_an_nth(fathom, size):
    categories = trained(*world(fathom, size, "ranks", "fsdp2"))
    assert categories["weights"] == shard_bytes(size)
    # Two moments for each weight; what else an optimizer keeps are single numbers.
    assert 0 <= categories["optimizer"] - 2 * shard_bytes(size) < 64


def test_unsharded_weights_are_those_of_one_card(fathom):
    """At the peak, in the backward pass of the first block, that block is whole and the other sharded again."""
    categories = trained(*world(fathom, 8, "ranks", "fsdp2_keep"))
    assert categories["unsharded_weights"] == shard_bytes(1) // BLOCKS
    assert categories["communication"] > 0


@pytest.mark.parametrize("way", ["ddp", "ddp_views", "fsdp2_mixed", "fsdp2_offload", "hybrid"])
def test_ways_of_training(fathom, way):
    size = 16 if way == "hybrid" else 2
    categories = trained(*world(fathom, size, "ranks", way))
    whole = shard_bytes(1)
    if way == "ddp":
        assert categories["weights"] == categories["communication"] == whole
    if way == "ddp_views":
        assert categories["weights"] == categories["gradients"] == whole
        assert categories["communication"] == 0
    if way == "fsdp2_mixed":
        assert categories["weights"] == shard_bytes(2)
    if way == "fsdp2_offload":
        assert categories["weights"] == categories["optimizer"] == 0
    if way == "hybrid":
        assert categories["weights"] == shard_bytes(8), "sharded inside a node of eight"


def test_tensor_parallel(fathom):
    categories = trained(*world(fathom, 4, "ranks", "tensor_parallel", flags=("--rank", 1)))
    up, up_bias, down, down_bias = (rows * columns * 4 for rows, columns in block_shapes())
    assert categories["weights"] == BLOCKS * (up // 4 + up_bias // 4 + down // 4 + down_bias)


def test_stages_of_a_pipeline(fathom):
    report, done = world(fathom, 4, "ranks", "pipeline", ranks="all")
    trained(report, done)
    assert [row["rank"] for row in report["ranks"]] == [0, 1, 2, 3]
    assert "waits" not in done.stdout
    assert "rank 0 needs" in done.stdout or "all of them need the same" in done.stdout


LAUNCHERS = {
    "torchrun": (16, ("torchrun", "--nproc-per-node", "8", "--nnodes", "2", "ranks.py", "fsdp2")),
    "accelerate": (4, ("accelerate", "launch", "--multi_gpu", "--num_processes", "4", "ranks_accelerate.py")),
    "spawn": (4, ("python", "ranks_spawn.py", "4")),
    "lightning": (16, ("python", "ranks_lightning.py", "8", "2", "ddp")),
}


@pytest.mark.parametrize("launcher", LAUNCHERS)
def test_launchers_start_one_rank(fathom, launcher):
    size, (program, *words) = LAUNCHERS[launcher]
    words = [SCRIPTS / word if word.startswith("ranks") else word for word in words]
    rank = 0 if launcher == "lightning" else 3  # Lightning's ranks ask rank 0 for objects: one run is enough here
    flags = (*FLAGS, "--world-size", size, "--rank", rank)
    report, done = fathom(PYTHON.parent / program, *words, flags=flags)
    trained(report, done)
    assert report["world"]["size"] == size and report["world"]["worst_rank"] == rank
    assert [row["rank"] for row in report["ranks"]] == [rank], "nobody else runs"


@pytest.mark.parametrize("size", [4])
def test_small_payloads_are_those_of_equal_ranks(fathom, size):
    _, done = world(fathom, size, "ranks_values", ranks="0,2", flags=("--steps", "0"))
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    for rank, seen in zip((0, 2), lines, strict=True):
        assert seen["all_gather"] == [[7, 8]] * size
        assert seen["all_gather_into_tensor"] == [[7, 8] * size]
        for dtype in ("float32", "bfloat16", "float16"):
            assert seen[f"SUM torch.{dtype}"] == [[3 * size]]
            assert seen[f"AVG torch.{dtype}"] == seen[f"MAX torch.{dtype}"] == [[3]]
        assert seen["async"] == [[3 * size]]
        assert seen["coalesced"] == [[size], [2 * size, 3 * size]]
        assert seen["reduce_scatter"] == [[rank * size]]
        assert seen["all_to_all_single"] == [[10 + rank] * size]
        assert seen["all_to_all"] == [[5 + rank]] * size
        assert seen["ring"] == [[1, 2, 3]]
        assert seen["gather"] == ([[9]] * size if rank == 0 else [])
        assert seen["scatter"] == [[20 + rank]]
        assert seen["broadcast"] == [[42]]
        assert seen["all_gather_object"] == [{"step": 3}] * size
        assert seen["broadcast_object_list"] == ["run", 17]
        assert seen["gloo"] == [[size, size]] and seen["subgroup"] == [[size // 2]]
        assert seen["store"] == "here"


def calls(text):
    found = [json.loads(line.split("CALLS ", 1)[1]) for line in text.splitlines() if "CALLS " in line]
    return sorted(found, key=lambda of_rank: of_rank[0])


def test_the_same_collectives_as_in_two_real_processes(fathom):
    torchrun = (PYTHON.parent / "torchrun", "--nproc-per-node", "2", SCRIPTS / "ranks_sequence.py", "gloo")
    _, real = fathom(*torchrun, flags=("--timeout", "100", "--steps", "0"))
    _, ours = world(fathom, 2, "ranks_sequence", "nccl", ranks="0,1", flags=("--steps", "0"))
    assert len(calls(real.stdout)) == 2, real.stdout + real.stderr
    assert calls(ours.stdout) == calls(real.stdout)


def test_several_cards_in_one_process(fathom):
    text = """
import torch
import torch.cuda.comm
from torch import nn
model = nn.DataParallel(nn.Sequential(nn.Linear(256, 1024), nn.ReLU(), nn.Linear(1024, 256)).cuda())
optimizer = torch.optim.Adam(model.parameters())
for _ in range(3):
    model(torch.randn(32, 256, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
numbers = torch.cuda.comm.broadcast(torch.arange(3.0, device="cuda"), devices=[0, 1, 2])
total = torch.cuda.comm.reduce_add([part * (index + 1) for index, part in enumerate(numbers)], 0)
used = [torch.cuda.max_memory_allocated(card) > 0 for card in range(torch.cuda.device_count())]
print("SEEN", [part.tolist() for part in numbers], total.tolist(), used)
"""
    _, done = fathom.code(text, flags=("--gpus", "3", "--steps", "0"), env={"FATHOM_STRICT": "1"})
    assert done.returncode == 0, done.stderr
    assert f"SEEN {[[0.0, 1.0, 2.0]] * 3} [0.0, 6.0, 12.0] {[True] * 3}" in done.stdout


def test_nccl_is_a_modelled_line(fathom):
    report, _ = world(fathom, 2, "ranks", "fsdp2")
    peak, ledger = report["peak"], {row["name"]: row for row in report["ledger"]}
    nccl = ledger["nccl"]
    assert nccl["known"] == "modelled" and nccl["bytes"] == peak["nccl_bytes"] > 0
    assert peak["device_bytes"] == peak["reserved_bytes"] + report["gpu"]["context_bytes"] + nccl["bytes"]
    parts = sum(ledger[name]["bytes"] for name in ("context", "nccl", "free", "reserved"))
    assert parts == ledger["card"]["bytes"]


def test_the_fewest_cards(fathom, tmp_path):
    path = tmp_path / "sweep.json"
    words = ("sweep", "--vary", "world-size=2,8,64", "--memory", "640MiB,800MiB", "--json", path, "--quiet", "--fresh")
    done = fathom.command(*words, "--", PYTHON, SCRIPTS / "ranks.py", "fsdp2")
    assert done.returncode == 0, done.stdout + done.stderr
    sweep = json.loads(path.read_text())
    fits = {(point["values"]["world-size"], point["gpu"]): point["verdict"] == "fits" for point in sweep["points"]}
    for row in sweep["fewest"]:
        ranks = [int(size) for (size, gpu), is_fit in fits.items() if gpu == row["gpu"] and is_fit]
        assert row["ranks"] == min(ranks, default=None)
    peaks = {int(point["values"]["world-size"]): point["peak_allocated_bytes"] for point in sweep["points"]}
    assert peaks[2] > peaks[8] > peaks[64]


@pytest.mark.parametrize(
    "flags, problem, cure",
    [
        (("--world-size", "9", "--gpus-per-node", "8"), "does not divide into nodes of 8", "--world-size 16"),
        (("--world-size", "8", "--rank", "8"), "rank 8 is outside of a world of 8", "the last is 7"),
        (("--world-size", "8", "--ranks", "0,x"), "`x` in `--ranks 0,x` is no rank", "0,1,last"),
        (("--world-size", "0"), "a world of 0 ranks", "between 1 and"),
        (("--rank", "1"), "`--rank` needs a world", "--world-size 8"),
        (("--gpus", "17"), "17 cards in one process", "--world-size 17"),
    ],
)
def test_worlds_that_cannot_be(fathom, flags, problem, cure):
    done = fathom.command("run", *flags, "--", PYTHON, "-c", "pass")
    assert done.returncode == 2 and problem in done.stderr and cure in done.stderr
    assert "hint: " in done.stderr


@pytest.mark.parametrize(
    "way, why",
    [
        ("objects", "recv_object_list(src=1)"),
        ("store", "store.get('ready')"),
        ("rpc", "torch.distributed.rpc.init_rpc"),
    ],
)
def test_what_only_other_ranks_know_is_named_and_not_waited_for(fathom, way, why):
    began = time.time()
    report, done = world(fathom, 2, "ranks_server", way, ranks="0,1")
    assert time.time() - began < 90
    assert done.returncode == 3 and report["verdict"] == "script_failed"
    assert why in report["failure"]


def test_a_script_with_another_world(fathom):
    report, done = world(fathom, 8, "ranks_spawn", "4")
    assert done.returncode == 3 and "the script makes a world of 4 ranks" in report["failure"]


def test_70_billion_parameters_in_6_gib(fathom):
    flags = ("--gpu", "h100-80g", "--world-size", "64", "--steps", "1", "--record", "off", "--timeout", "200")
    report, done = fathom(PYTHON, SCRIPTS / "fsdp2_70b.py", flags=flags, timeout=240)
    assert done.returncode == 0, done.stdout + done.stderr
    # 70.55 billion weights and two moments each, 4 bytes, over 64 ranks.
    state = 70_553_706_496 * 12 // 64
    assert state < report["peak"]["allocated_bytes"] < 60 << 30
    largest_child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    assert largest_child < 6 << 30
