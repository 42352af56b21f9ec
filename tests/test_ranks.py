"""One rank of N on the phantom: launchers, values of collectives, shards, ranks side by side, bad input.

Ranks are forks of one process where they can be (`ways`); what needs a command of its own is run when a test asks (`runs`).
"""

import functools
import json
import resource
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from conftest import PYTHON, ROOT, SCRIPTS, sampled

IS_WARM = True

WIDTH, BLOCKS, ROWS = 1024, 2, 4096
FLAGS = ("--gpu", "rtx3090", "--timeout", "100")

WAYS = """fsdp2:2:0 fsdp2:8:0 fsdp2:64:0 fsdp2:4096:0 fsdp2_keep:8:0 ddp:2:0 ddp:4096:0 ddp_views:2:0 fsdp2_mixed:2:0 fsdp2_offload:2:0
hybrid:16:0:8 tensor_parallel:4:1 sequence_parallel:4:1 experts:4:0 fsdp1:4:0 zero:4:0
pipeline_static:4:0 pipeline_static:4:1 pipeline_static:4:2 pipeline_static:4:3 shapes:4:0 shapes:4:3""".split()


@pytest.fixture(scope="module")
def ways(fathom, tmp_path_factory):
    """What `fathom explain` says of each way of training, after it has trained three steps."""
    folder, out = tmp_path_factory.mktemp("ways"), tmp_path_factory.mktemp("recordings")
    flags = ("--quiet", "--steps", "0", "--gpu", "rtx3090", "--out", out)
    done = fathom.command("run", *flags, "--", PYTHON, ROOT / "tests" / "ranks_all.py", folder, *WAYS, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "fathom: " not in done.stderr, done.stderr
    lengths = [line for line in done.stdout.splitlines() if line.startswith("LENGTHS ")]

    def explained(way):
        name = (folder / way).read_text()
        answer = fathom.command("explain", "--json", "-", out / f"recording.{name}.fathom")
        assert answer.returncode == 0, answer.stderr
        process = json.loads((out / f"process.{name.split('.')[0]}.json").read_text())
        assert process["steps"] == 3
        return way, json.loads(answer.stdout)

    with ThreadPoolExecutor(2) as pool:
        return {**dict(pool.map(explained, WAYS)), "lengths": sorted(lengths)}


def categories(answer):
    """They sum to the peak, and hardly anything is unknown."""
    held = {entry["name"]: entry["bytes"] for entry in answer["categories"]}
    peak = answer["peak"]["allocated_bytes"]
    assert sum(held.values()) == peak > 0
    assert held["unknown"] < 0.01 * peak
    return held


def areas(answer):
    return {row["name"]: row for row in answer.get("areas", [])}


def block_shapes():
    return [(4 * WIDTH, WIDTH), (4 * WIDTH, 1), (WIDTH, 4 * WIDTH), (WIDTH, 1)]


def shard_bytes(size):
    """FSDP2 shards the first dimension and pads every rank's part to the same length."""
    return BLOCKS * sum(-(-rows // size) * columns * 4 for rows, columns in block_shapes())


@pytest.mark.parametrize("size", [2, 8, 64, 4096])
def test_sharded_state_is_an_nth(ways, size):
    held = categories(ways[f"fsdp2:{size}:0"])
    assert held["weights"] == shard_bytes(size)
    # Two moments for each weight; what else an optimizer keeps are single numbers.
    assert 0 <= held["optimizer"] - 2 * shard_bytes(size) < 64


def test_unsharded_weights_are_those_of_one_card(ways):
    """At the peak, in the backward pass of the first block, that block is whole and the other sharded again."""
    answer = ways["fsdp2_keep:8:0"]
    held = categories(answer)
    assert held["unsharded_weights"] == shard_bytes(1) // BLOCKS
    assert held["communication"] > 0
    assert areas(answer)["gathered weights (FSDP2)"]["bytes"] >= held["unsharded_weights"]
    assert "reduce-scatter buffers (FSDP2)" in areas(answer)


def test_replicated_and_sharded_data_parallel(ways):
    whole = shard_bytes(1)
    ddp, views = categories(ways["ddp:2:0"]), categories(ways["ddp_views:2:0"])
    assert ddp["weights"] == ddp["communication"] == whole
    # The batch of the step before may still be there at the peak: that is a matter of moments.
    many = categories(ways["ddp:4096:0"])
    assert {**many, "inputs": 0} == {**ddp, "inputs": 0}, "the same on every number of cards"
    assert areas(ways["ddp:2:0"])["gradient buckets (DDP)"]["bytes"] == whole
    assert views["weights"] == views["gradients"] == whole and views["communication"] == 0
    assert categories(ways["fsdp2_mixed:2:0"])["weights"] == shard_bytes(2)
    offloaded = categories(ways["fsdp2_offload:2:0"])
    assert offloaded["weights"] == offloaded["optimizer"] == 0
    assert categories(ways["hybrid:16:0:8"])["weights"] == shard_bytes(8), "sharded inside a node of eight"


def test_flat_parameters_and_partitions_of_an_optimizer(ways):
    flat, zero = categories(ways["fsdp1:4:0"]), categories(ways["zero:4:0"])
    assert flat["weights"] == shard_bytes(1) // 4 and flat["optimizer"] == pytest.approx(2 * flat["weights"], abs=64)
    assert areas(ways["fsdp1:4:0"])["gathered weights (FSDP1)"]["bytes"] == flat["unsharded_weights"] > 0
    # The first rank has the first block's larger weight and its bias; two moments for each, which are single numbers else.
    first = (4 * WIDTH * WIDTH + 4 * WIDTH) * 4
    assert zero["optimizer"] == pytest.approx(2 * first, abs=64) and zero["weights"] == shard_bytes(1)
    assert areas(ways["zero:4:0"])["optimizer step of this rank's partition (ZeRO)"]["bytes"] >= zero["optimizer"]


def test_tensor_and_sequence_parallel(ways):
    """Inside of a block a rank has a quarter of the columns; between blocks all rows, or a quarter of them."""
    tensor, sequence = ways["tensor_parallel:4:1"], ways["sequence_parallel:4:1"]
    up, up_bias, down, down_bias = (rows * columns * 4 for rows, columns in block_shapes())
    for answer in (tensor, sequence):
        assert categories(answer)["weights"] == BLOCKS * (up // 4 + up_bias // 4 + down // 4 + down_bias)
    sharded, everywhere = "sharded activations (DTensor)", "activations that every rank has (DTensor)"
    hidden = ROWS * WIDTH * 4  # a quarter of 4 × WIDTH columns
    # What GELU and the second layer keep of each block, and the input of the second block with the model's output.
    assert areas(tensor)[sharded]["bytes"] == 2 * BLOCKS * hidden
    assert areas(tensor)[everywhere]["bytes"] == 2 * ROWS * WIDTH * 4
    # Each rank brings as many rows, and all of them are gathered before each block.
    assert areas(sequence)[sharded]["bytes"] == 4 * 2 * BLOCKS * hidden
    assert areas(sequence)[everywhere]["bytes"] == BLOCKS * 4 * ROWS * WIDTH * 4


def test_buffers_of_experts(ways):
    answer = ways["experts:4:0"]
    buffers = areas(answer)["all-to-all buffers of experts"]
    assert buffers["bytes"] == categories(answer)["communication"] == buffers["count"] * ROWS * WIDTH * 4
    assert buffers["count"] >= 2 * BLOCKS


@pytest.mark.parametrize("rank", range(4))
def test_micro_batches_in_flight(ways, rank):
    """One forward, one backward: a stage begins with as many micro-batches as there are stages from it to the end."""
    answer = ways[f"pipeline_static:4:{rank}"]
    assert categories(answer)["weights"] == shard_bytes(1)
    flying = areas(answer)[f"micro-batches in flight of stage {rank}"]
    assert flying["parts"] == 4 - rank
    assert flying["bytes"] >= flying["parts"] * 2 * BLOCKS * ROWS * 4 * WIDTH * 4


def test_shapes_that_depend_on_the_rank(ways):
    """A rank has its own shapes, truly; what it is told of the others' are its own, and nothing waits."""
    assert ways["lengths"] == [f"LENGTHS 0 {[1024] * 4}", f"LENGTHS 3 {[4096] * 4}"]
    first, last = (ways[f"shapes:4:{rank}"]["peak"]["allocated_bytes"] for rank in (0, 3))
    # Rank 3 has four times the rows: its input and its output are larger by three times those of rank 0.
    assert last - first >= 2 * 3 * 1024 * WIDTH * 4


# -- commands of their own -----------------------------------------------------------------------------------------------

LAUNCHERS = {
    "torchrun": (16, 3, ("torchrun", "--nproc-per-node", "8", "--nnodes", "2", "ranks.py", "fsdp2")),
    "accelerate": (4, 3, ("accelerate", "launch", "--multi_gpu", "--num_processes", "4", "ranks_accelerate.py")),
    "spawn": (4, 3, ("python", "ranks_spawn.py", "4")),
    # Lightning's ranks ask rank 0 for objects: one run is enough here.
    "lightning": (16, 0, ("python", "ranks_lightning.py", "8", "2", "ddp")),
}

SEVERAL_CARDS = """
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


def commands(fathom):
    """Name -> a function that runs it: the report and the finished process."""

    def world(size, script, *arguments, flags=()):
        return lambda: fathom(PYTHON, SCRIPTS / f"{script}.py", *arguments, flags=(*FLAGS, "--world-size", size, *flags))

    def launched(size, rank, words):
        program, *words = words
        words = [SCRIPTS / word if word.startswith("ranks") else word for word in words]
        flags = (*FLAGS, "--world-size", size, "--rank", rank)
        return lambda: fathom(PYTHON.parent / program, *words, flags=flags)

    torchrun = (PYTHON.parent / "torchrun", "--nproc-per-node", "2", SCRIPTS / "ranks_sequence.py", "gloo")
    both, all_steps = ("--ranks", "0,1"), ("--steps", "0")
    of_70b = ("--gpu", "h100-80g", "--world-size", "64", "--steps", "1", "--record", "off", "--timeout", "200")
    return {
        "70b": lambda: fathom(PYTHON, SCRIPTS / "fsdp2_70b.py", flags=of_70b, timeout=240),
        "pipeline": world(2, "ranks", "pipeline", flags=("--ranks", "all")),
        **{name: launched(*launcher) for name, launcher in LAUNCHERS.items()},
        "values": world(4, "ranks_values", flags=("--ranks", "0,2", *all_steps)),
        "sequence": world(2, "ranks_sequence", "nccl", flags=(*both, *all_steps)),
        "sequence of real processes": lambda: fathom(*torchrun, flags=("--timeout", "100", *all_steps)),
        "objects": world(2, "ranks_server", "objects", flags=both),
        "store": world(2, "ranks_server", "store"),
        "rpc": world(2, "ranks_server", "rpc"),
        "another world": world(8, "ranks_spawn", "4"),
        "several cards": lambda: fathom.code(SEVERAL_CARDS, flags=("--gpus", "3", *all_steps), env={"FATHOM_STRICT": "1"}),
    }


@pytest.fixture(scope="module")
def runs(fathom):
    """By name: report, finished process and seconds."""
    known = commands(fathom)

    @functools.cache
    def timed(name):
        began = time.time()
        return (*known[name](), time.time() - began)

    return timed


def trained(report, done):
    assert done.returncode == 0, done.stdout + done.stderr
    assert report["verdict"] == "fits" and report["steps"] == 3
    for row in report["ranks"]:
        assert row["steps"] == 3 and row["verdict"] == "fits"
        held = {entry["name"]: entry["bytes"] for entry in row["categories"]}
        assert sum(held.values()) == row["peak_allocated_bytes"] > 0
        assert held["unknown"] < 0.01 * row["peak_allocated_bytes"]


def test_stages_that_tell_each_other_shapes(runs):
    report, done, _ = runs("pipeline")
    trained(report, done)
    assert [row["rank"] for row in report["ranks"]] == [0, 1]
    assert "waits" not in done.stdout


@pytest.mark.parametrize("launcher", sampled(LAUNCHERS, ["torchrun"]))
def test_launchers_start_one_rank(runs, launcher):
    (report, done, _), (size, rank, _) = runs(launcher), LAUNCHERS[launcher]
    trained(report, done)
    assert report["world"]["size"] == size and report["world"]["worst_rank"] == rank
    assert [row["rank"] for row in report["ranks"]] == [rank], "nobody else runs"


def test_small_payloads_are_those_of_equal_ranks(runs):
    size, (_, done, _) = 4, runs("values")
    assert done.returncode == 0, done.stdout + done.stderr
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    # The two ran side by side: what they print comes in their order.
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


@pytest.mark.matrix
def test_the_same_collectives_as_in_two_real_processes(runs):
    (_, real, _), (_, ours, _) = runs("sequence of real processes"), runs("sequence")
    assert len(calls(real.stdout)) == 2, real.stdout + real.stderr
    assert calls(ours.stdout) == calls(real.stdout)


def test_several_cards_in_one_process(runs):
    _, done, _ = runs("several cards")
    assert done.returncode == 0, done.stderr
    assert f"SEEN {[[0.0, 1.0, 2.0]] * 3} [0.0, 6.0, 12.0] {[True] * 3}" in done.stdout


def test_nccl_is_a_modelled_line(runs):
    report, _, _ = runs("torchrun")
    peak, ledger = report["peak"], {row["name"]: row for row in report["ledger"]}
    nccl = ledger["nccl"]
    assert nccl["known"] == "modelled" and nccl["bytes"] == peak["nccl_bytes"] > 0
    assert peak["device_bytes"] == peak["reserved_bytes"] + report["gpu"]["context_bytes"] + nccl["bytes"]
    parts = sum(ledger[name]["bytes"] for name in ("context", "nccl", "free", "reserved"))
    assert parts == ledger["card"]["bytes"]


def swept(fathom, path, *words):
    done = fathom.command("sweep", *words, "--json", path, "--quiet", "--fresh", "--", PYTHON, SCRIPTS / "ranks.py", "fsdp2")
    assert done.returncode == 0, done.stdout + done.stderr
    return json.loads(path.read_text())


def test_the_fewest_cards(fathom, tmp_path):
    sweep = swept(fathom, tmp_path / "sweep.json", "--vary", "world-size=2,8,64", "--memory", "1150MiB,1400MiB")
    fits = {(point["values"]["world-size"], point["gpu"]): point["verdict"] == "fits" for point in sweep["points"]}
    # NCCL is taken to need 544 MiB between two of these cards and 688 MiB among more: nothing else fits the first.
    assert not any(is_fit for (_, gpu), is_fit in fits.items() if gpu.startswith("1.12"))
    for row in sweep["fewest"]:
        ranks = [int(size) for (size, gpu), is_fit in fits.items() if gpu == row["gpu"] and is_fit]
        assert row["ranks"] == min(ranks, default=None)
    peaks = {int(point["values"]["world-size"]): point["peak_allocated_bytes"] for point in sweep["points"]}
    assert peaks[2] > peaks[8] > peaks[64]


@pytest.mark.matrix
def test_strategies_of_one_world(fathom, tmp_path):
    words = ("--vary", "strategy=ddp,fsdp2,fsdp2-keep", "--set", "strategy=--strategy {}", "--world-size", "8")
    sweep = swept(fathom, tmp_path / "sweep.json", *words, "--gpu", "rtx3090")
    peaks = {point["values"]["strategy"]: point for point in sweep["points"]}
    assert peaks["ddp"]["peak_allocated_bytes"] > peaks["fsdp2-keep"]["peak_allocated_bytes"] > 0
    assert peaks["ddp"]["peak_allocated_bytes"] > peaks["fsdp2"]["peak_allocated_bytes"] > 0
    assert any("rank 0 of each world was run, NCCL's memory (modelled) included" in note for note in sweep["notes"])


@pytest.mark.parametrize(
    "flags, problem, cure",
    [
        (("--world-size", "9", "--gpus-per-node", "8"), "does not divide into nodes of 8 GPUs", "--world-size 16"),
        (("--world-size", "8", "--rank", "8"), "`--rank 8` is out of range (0 to 7)", "the last of 8 is 7"),
        (("--world-size", "8", "--ranks", "0,x"), "`x` in `--ranks 0,x` is no rank", "0,1,last"),
        (("--world-size", "0"), "`--world-size 0` is out of range (1 to 1048576)", "--world-size 8"),
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
        pytest.param("store", "store.get('ready')", marks=pytest.mark.matrix),
        pytest.param("rpc", "torch.distributed.rpc.init_rpc", marks=pytest.mark.matrix),
    ],
)
def test_what_only_other_ranks_know_is_named_and_not_waited_for(runs, way, why):
    report, done, seconds = runs(way)
    assert seconds < 90
    assert done.returncode == 3 and report["verdict"] == "script_failed"
    assert why in report["failure"]


def test_a_script_with_another_world(runs):
    report, done, _ = runs("another world")
    assert done.returncode == 3 and "the script makes a world of 4 ranks" in report["failure"]


@pytest.mark.matrix
def test_70_billion_parameters_in_6_gib(runs):
    report, done, _ = runs("70b")
    assert done.returncode == 0, done.stdout + done.stderr
    # 70.55 billion weights and two moments each, 4 bytes, over 64 ranks.
    state = 70_553_706_496 * 12 // 64
    assert state < report["peak"]["allocated_bytes"] < 60 << 30
    largest_child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss << 10
    assert largest_child < 6 << 30


def test_a_communicator_before_the_first_tensor_is_counted_once(fathom):
    code = """
import torch
torch.distributed.init_process_group("nccl", device_id=torch.device("cuda:0"))
model = torch.nn.Linear(8, 8).cuda()
model(torch.ones(2, 8, device="cuda")).sum().backward()
"""
    report, done = fathom(PYTHON, "-c", code, flags=(*FLAGS, "--world-size", "4"))
    assert done.returncode == 0, done.stderr
    rows = {row["name"]: row["bytes"] for row in report["ledger"]}
    assert rows["nccl"] > 0 and rows["context"] == report["gpu"]["context_bytes"]
    assert report["floor_bytes"] <= report["peak"]["device_bytes"]


def test_a_rank_that_failed_does_not_make_all_need_the_same(fathom):
    code = """
import os, torch
weight = torch.zeros(1 << 20, device="cuda", requires_grad=True)
if os.environ["RANK"] == "1":
    raise SystemExit("no")
torch.zeros(1 << 24, device="cuda")
"""
    done = fathom.command("run", *FLAGS, "--world-size", "2", "--ranks", "all", "--", PYTHON, "-c", code)
    assert done.returncode == 3 and "need the same" not in done.stdout, done.stdout + done.stderr
