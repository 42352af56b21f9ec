"""Searches for the fastest kernel: `triton.autotune`, torch's compiler, `cudnn.benchmark`. Nothing takes time on the
phantom, so the first candidate is kept; what a search takes from the card is counted, and known as soft."""

import json

import pytest
from conftest import PYTHON

IS_WARM = True

MIB = 1 << 20

# Fifteen candidates.
AUTOTUNED = """
import json, sys, torch, triton, triton.language as tl
configs = [triton.Config({"BLOCK": block}, num_warps=warps) for block in (128, 256, 512, 1024, 2048) for warps in (2, 4, 8)]
restored = ["y"] if "restore" in sys.argv else []

@triton.autotune(configs=configs, key=["n"], restore_value=restored, cache_results="keep" in sys.argv)
@triton.jit
def add(x, y, n, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = at < n
    tl.store(y + at, tl.load(x + at, mask=inside) + tl.load(y + at, mask=inside), mask=inside)

n = 1 << 24
x, y = torch.ones(n, device="cuda"), torch.ones(n, device="cuda")
add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x, y, n)
compiled = sum(len(caches[0]) for caches in add.fn.device_caches.values())
first = torch.cuda.max_memory_allocated()
add[lambda meta: (triton.cdiv(n, meta["BLOCK"]),)](x[1:], y[1:], n - 1)
best = add.best_config
print(json.dumps([compiled, best.kwargs["BLOCK"], best.num_warps, first, len(add.cache)]))
"""


@pytest.fixture
def triton(fathom, tmp_path):
    """Runs a script whose kernels are Triton's, which wants them to be in a file."""

    def run(code, *arguments):
        path = tmp_path / "kernels.py"
        path.write_text(code)
        _, done = fathom(PYTHON, path, *arguments, flags=("--gpu", "rtx3090"), env={"TRITON_CACHE_DIR": tmp_path / "cache"})
        return printed(done)

    return run


def printed(done):
    lines = [line for line in done.stdout.splitlines() if line.startswith("[")]
    assert lines, done.stderr
    return json.loads(lines[0])


def test_triton_compiles_one_candidate(triton):
    compiled, block, warps, peak, searches = triton(AUTOTUNED)
    assert (compiled, block, warps, searches) == (1, 128, 2, 2)
    # Two tensors and the 256 MiB by which Triton clears the cache between two runs.
    assert peak == 2 * 64 * MIB + 256 * MIB


def test_copies_that_a_search_makes_are_counted(triton):
    compiled, *_, peak, _ = triton(AUTOTUNED, "restore")
    assert compiled == 1 and peak == 3 * 64 * MIB + 256 * MIB


def test_choices_are_not_kept_for_a_real_card(triton, tmp_path):
    assert triton(AUTOTUNED, "keep")[0] == 1
    folder = tmp_path / "cache"
    assert any(folder.rglob("*.cubin")) and not any(folder.rglob("*.autotune.json"))


def test_a_candidate_that_the_card_cannot_run_is_passed_over(triton):
    code = """
import json, torch, triton, triton.language as tl
configs = [triton.Config({"SIZE": size}, num_warps=4) for size in (128, 32, 16)]

@triton.autotune(configs=configs, key=["n"])
@triton.jit
def product(x, y, n, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tile = at[:, None] * SIZE + at[None, :]
    tl.store(y + tile, tl.dot(tl.load(x + tile), tl.load(x + tile)))

x, y = (torch.ones(128 * 128, device="cuda") for _ in range(2))
product[(1,)](x, y, 128)
print(json.dumps([product.best_config.kwargs["SIZE"], sum(len(caches[0]) for caches in product.fn.device_caches.values())]))
"""
    assert triton(code) == [32, 2], "the first wants 128 KiB of shared memory; the third is not tried"


# A kernel with several candidates, one that is tuned further if it is asked to, and a product.
COMPILED = """
import json, sys, torch, torch._inductor.config as config
config.coordinate_descent_tuning = "descent" in sys.argv
config.max_autotune_gemm = "gemm" in sys.argv
from torch._dynamo.utils import counters
model = torch.nn.Sequential(torch.nn.LayerNorm(512), torch.nn.Linear(512, 512), torch.nn.GELU(), torch.nn.LayerNorm(512)).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
step = torch.compile(model)
for _ in range(2):
    step(torch.ones(4096, 512, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
counted = counters["inductor"]
trials = [counted[f"benchmarking.InductorBenchmarker.{name}"] for name in ("benchmark", "benchmark_gpu")]
print(json.dumps([max(trials), counted["coordesc_tuning_bench"], torch.cuda.max_memory_allocated()]))
"""


def compiled(fathom, *arguments):
    _, done = fathom.code(COMPILED, arguments=arguments, timeout=300)
    assert done.returncode == 0, done.stderr
    return printed(done)


def test_the_compiler_tunes_nothing_further(fathom):
    plain, further = compiled(fathom), compiled(fathom, "descent")
    assert plain[1] == further[1] == 0, "no neighbour of a candidate is compiled"
    assert plain[0] < further[0] <= 12, "one trial for each kernel that would be tuned"
    assert plain[2] < further[2] <= plain[2] + 6 * MIB, "a trial clears the cache, of 6 MiB, with a buffer as large"


def test_one_template_stands_for_all(fathom):
    trials, *_ = compiled(fathom, "gemm")
    assert trials <= 16, "of each product one ready-made kernel and one template are timed"


# -- cudnn.benchmark -------------------------------------------------------------------------------------

CONVOLUTIONS = """
import sys, torch
torch.backends.cudnn.benchmark = "off" not in sys.argv
model = torch.nn.Sequential(*[torch.nn.Conv2d(64, 64, 3, padding=1) for _ in range(4)]).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    model(torch.ones(16, 64, 56, 56, device="cuda")).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


@pytest.fixture(scope="module")
def searched(fathom):
    report, done = fathom.code(CONVOLUTIONS)
    assert done.returncode == 0, done.stderr
    return report, done


def test_what_a_search_takes_is_soft(searched):
    report, done = searched
    soft = [tensor for tensor in report["tensors"] if tensor.get("soft")]
    assert soft and soft[0]["name"] == "cuDNN algorithm search", "the search is where most is allocated"
    assert report["peak"]["hard_allocated_bytes"] <= report["peak"]["allocated_bytes"] - soft[0]["bytes"]
    finding = next(finding for finding in report["findings"] if finding["id"] == "workspace")
    assert "It is not needed" in finding["explanation"], finding
    assert report["floor_bytes"] < report["peak"]["device_bytes"] - soft[0]["bytes"] // 2


def test_the_smallest_card_is_one(fathom, searched):
    """On the card that is said to do, the same script runs; with a tenth less it does not."""
    floor = searched[0]["floor_bytes"]
    report, done = fathom.code(CONVOLUTIONS, flags=("--memory", f"{floor}B", "--record", "off"))
    assert report["verdict"].startswith("fits"), done.stdout
    report, _ = fathom.code(CONVOLUTIONS, flags=("--memory", f"{floor * 9 // 10}B", "--record", "off"))
    assert report["verdict"] == "does_not_fit"


def test_without_a_search_nothing_is_called_one(fathom):
    report, _ = fathom.code(CONVOLUTIONS, arguments=["off"])
    names = {tensor["name"] for tensor in report["tensors"] if tensor["category"] == "workspace"}
    assert names and "cuDNN algorithm search" not in names
    assert all(tensor.get("soft") for tensor in report["tensors"] if (tensor["name"] or "").startswith("cuDNN conv"))


def test_a_script_that_takes_the_time_itself_is_no_search(fathom):
    code = CONVOLUTIONS.replace(
        "for _ in range(3):",
        """for _ in range(3):
    start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    start.record()
    model[0](torch.ones(16, 64, 56, 56, device="cuda"))
    end.record()
    torch.cuda.synchronize()
    start.elapsed_time(end)""",
    )
    report, _ = fathom.code(code, arguments=["off"])
    assert not any(tensor["name"] == "cuDNN algorithm search" for tensor in report["tensors"])
    assert "algorithm search" not in json.dumps(report["workspaces"])


def test_a_search_is_asked_of_few_plans(fathom, tmp_path):
    """Cold, without any answer of earlier runs: each convolution has some thirty plans in three directions."""
    code = CONVOLUTIONS.replace("16, 64, 56, 56", "16, 64, 47, 47")
    report, done = fathom.code(code, flags=("--record", "off"), env={"FATHOM_CACHE": tmp_path / "cold"})
    warm, _ = fathom.code(code, flags=("--record", "off"), env={"FATHOM_CACHE": tmp_path / "cold"})
    assert report["peak"]["reserved_bytes"] == warm["peak"]["reserved_bytes"], done.stderr
    assert report["peak"]["allocated_bytes"] == warm["peak"]["allocated_bytes"]
