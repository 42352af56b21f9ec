"""`fathom explain` for texts: messages of PyTorch itself, figures that do not agree, shapes, and who asked for them."""

import json
import os

import pytest
from conftest import PYTHON, PYTHONS, ROOT, WIDTH, missing

IS_WARM = True

TEXTS = ROOT / "tests" / "oom"
GOLDEN = ROOT / "tests" / "golden" / "oom.txt"
# Fills the card but for a piece of a segment, wants more than is left, and prints PyTorch's message and PyTorch's own counts.
FULL = """
import torch
MIB = 1 << 20
def take(size):
    return torch.empty(size * MIB, dtype=torch.uint8, device="cuda")
kept = [take(3000) for _ in range(6)]
take(700)
kept.append(take(300))
free, total = torch.cuda.mem_get_info()
try:
    take(free // MIB + 200)
except torch.OutOfMemoryError as error:
    print("\\x1b[31m[rank0]: torch.OutOfMemoryError:", error, "\\x1b[0m")
counts = {
    "tried": -(-(free // MIB + 200) // 2) * 2 * MIB,
    "free": torch.cuda.mem_get_info()[0],
    "capacity": total,
    "allocated": torch.cuda.memory_allocated(),
    "reserved": torch.cuda.memory_reserved(),
    "reserved_unallocated": torch.cuda.memory_reserved() - torch.cuda.memory_allocated(),
}
print("COUNTS", __import__("json").dumps(counts))
"""
# Attention scores of 64 MiB: 16 heads, 1024 tokens squared.
ATTENTION = """
import torch

class Attention(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.project = torch.nn.Linear(256, 256)

    def forward(self, x):
        heads = self.project(x).view(1024, 16, 16).transpose(0, 1)
        scores = heads @ heads.transpose(1, 2)
        return scores.softmax(-1).sum()

model = torch.nn.Sequential(torch.nn.Linear(32, 256), Attention()).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(3):
    model(torch.randn(1024, 32, device="cuda")).backward()
    optimizer.step()
"""


# The newest and the oldest.
OFTEN = ("2.15.0", "2.6.0")


@pytest.fixture(autouse=True)
def columns(monkeypatch):
    """The width of the golden texts."""
    monkeypatch.setitem(WIDTH, "COLUMNS", "100")


@pytest.fixture(scope="module", params=[pytest.param(each, marks=[] if each in OFTEN else pytest.mark.torches) for each in PYTHONS])
def message(fathom, request, tmp_path_factory):
    """What a run out of memory prints, and PyTorch's counts there."""
    python = PYTHONS[request.param]
    if not python.exists():
        missing(python, "run `make test`")
    script = tmp_path_factory.mktemp("full") / "full.py"
    script.write_text(FULL)
    _, done = fathom(python, script, flags=("--gpu", "rtx3090", "--record", "off"))
    (line,) = [line for line in done.stdout.splitlines() if line.startswith("COUNTS ")]
    return done.stdout, json.loads(line.removeprefix("COUNTS "))


def explained(fathom, *words, **options):
    done = fathom.command("explain", *words, "--json", "-", **options)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_message_of_pytorch_has_the_numbers_of_the_run(fathom, message):
    text, counts = message
    answer = explained(fathom, "-", input=text, stdin=None)
    assert answer["schema"] == "fathom.oom/1" and answer["cause"] == "fragmentation"
    (account,) = answer["accounts"]
    for name, exact in counts.items():
        found = account[name]
        assert found["low"] <= exact <= found["high"], name
        # Two digits of a GiB, on both sides of a sum of two.
        assert found["high"] - found["low"] <= 22 << 20 and abs(found["bytes"] - exact) <= 11 << 20, name
    (advice,) = [row for row in answer["advice"] if row["id"] == "use_reserved"]
    assert advice["in_message"] and advice["helps"] == "can_help"


def test_the_allocation_of_that_size_is_named(fathom, tmp_path):
    script = tmp_path / "attention.py"
    script.write_text(ATTENTION)
    log = tmp_path / "train.log"
    log.write_text("CUDA out of memory. Tried to allocate 64.00 MiB (GPU 0; 7.79 GiB total capacity; 7.0 GiB already")
    out = tmp_path / "answer.json"
    done = fathom.command("explain", log, "--json", out, "--", PYTHON, script)
    assert done.returncode == 0, done.stderr
    found = json.loads(out.read_text())["found"]
    assert found["memory_bytes"] == round(7.79 * 2**30) and found["refused"] is None and found["nearest"] == []
    (scores,) = [row for row in found["matches"] if row["origin"]["line"] == 11]
    assert scores["bytes"] == 64 << 20 and scores["origin"]["file"].endswith("attention.py")
    assert scores["origin"]["module"] == "1" and "matmul" in scores["origin"]["operator"]
    assert "found    allocations of this size on a phantom of 7.79 GiB, 2 steps:" in done.stdout
    assert "attention.py:11" in done.stdout and "attention.py:12" in done.stdout


def shown(fathom, name, *words):
    done = fathom.command("explain", f"tests/oom/{name}", *words)
    return f"$ fathom explain {' '.join((name, *words))}\n{done.stdout}{done.stderr}exit code {done.returncode}\n"


def test_the_text_is_as_always(fathom):
    dims = ("--dims", "batch=4,channels=256,kernel=7,height=1024,width=1024")
    text = "\n".join(
        [
            shown(fathom, "27-advice-applies.txt"),
            shown(fathom, "32-four-other-processes.txt"),
            shown(fathom, "63-unfolded-map-of-98-gib.txt", *dims, "--shape", "4x256x49x256x256"),
            shown(fathom, "07-torch-1.9-free-but-refused.txt"),
            shown(fathom, "40-mps-gb.txt"),
            shown(fathom, "074-vllm-max-seq-len.txt"),
            shown(fathom, "079-nccl-calloc.txt"),
            shown(fathom, "085-thc-resize.txt"),
            shown(fathom, "092-bare-killed.txt"),
            shown(fathom, "147-request-of-two-thirds.txt"),
            shown(fathom, "51-jax-with-buffers.txt"),
            shown(fathom, "58-smi-418.txt"),
            shown(fathom, "56-memory-summary-1.4.txt"),
        ]
    )
    if os.environ.get("UPDATE_GOLDEN") == "1":
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text(), "intended? then run with UPDATE_GOLDEN=1"


def test_a_claimed_shape_is_refuted_and_the_true_one_found(fathom, tmp_path):
    log = tmp_path / "train.log"
    log.write_text("torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 98.00 GiB.")
    config = tmp_path / "model.yaml"
    config.write_text("data:\n  batch_size: 4\nbev:\n  channels: 256\n  kernel: 7\n  size: [1024, 1024]\n  height: 1024\n")
    answer = explained(fathom, log, "--config", config, "--shape", "4x256x49x256x256", "--dims", "width=1024")
    (claim,) = answer["refuted"]
    assert claim["fits"] is None and claim["multiple"] == 16
    assert {row["dtype"]: row["bytes"] for row in claim["bytes"]}["float16/bfloat16"] == 4 * 256 * 49 * 256 * 256 * 2
    best = answer["candidates"][0]
    assert best["bytes"] == 98 << 30 and sorted(best["shape"]) == [4, 49, 256, 1024, 1024] and not answer["guessed"]
    plain = explained(fathom, log)
    assert plain["candidates"] == [] and not plain["guessed"]
    asked = explained(fathom, log, "--guess")
    assert asked["guessed"] and asked["candidates"]


@pytest.mark.parametrize("dims", ["batch=4,channels=256,kernel=7", "batch=4,channels=256,kernel=7,side=?"])
def test_a_side_that_nobody_gave_is_solved_for(fathom, dims):
    text = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 98.00 GiB."
    answer = explained(fathom, "-", "--dims", dims, input=text, stdin=None)
    best = answer["candidates"][0]
    assert answer["solved"] and not answer["guessed"]
    assert best["expression"] == "4 batch × 256 channels × 7² kernel × 1024² side × 2 B"


RANKS = """
2025-06-05 06:18:14,100 [rank1]: Traceback (most recent call last):
2025-06-05 06:18:14,100 [rank1]:   File "/home/user/train.py", line 40, in <module>
2025-06-05 06:18:14,100 [rank1]:     loss = model(batch)
2025-06-05 06:18:14,100 [rank1]:   File "/opt/venv/lib/python3.11/site-packages/torch/nn/functional.py", line 9, in relu
2025-06-05 06:18:14,100 [rank1]:     return torch.relu(input)
2025-06-05 06:18:14,101 [rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. \
GPU 1 has a total capacity of 23.67 GiB of which 1.00 GiB is free. Process 7 has 22.60 GiB memory in use.
2025-06-05 06:18:13,900 [rank0]: Traceback (most recent call last):
2025-06-05 06:18:13,900 [rank0]:   File "/home/user/train.py", line 52, in <module>
2025-06-05 06:18:13,900 [rank0]:     optimizer.step()
2025-06-05 06:18:13,901 [rank0]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 512.00 MiB. \
GPU 0 has a total capacity of 23.67 GiB of which 100.00 MiB is free. Process 8 has 23.50 GiB memory in use.
"""


def test_each_message_stands_under_its_rank_and_the_first_comes_first(fathom):
    text = RANKS.replace("\\\n", "")
    answer = explained(fathom, "-", input=text, stdin=None)
    first, second = answer["accounts"]
    assert (first["rank"], first["device"], second["rank"], second["device"]) == (0, 0, 1, 1)
    assert answer["asked_at"]["file"] == "/home/user/train.py" and answer["asked_at"]["line"] == 52
    assert answer["asked_at"]["source"] == "optimizer.step()"
    assert second["asked_at"]["line"] == 40 and second["through"]["line"] == 9
    assert answer["next"][-1]["command"] == "fathom fit --gpu rtx3090 -- python /home/user/train.py"
    done = fathom.command("explain", "-", input=text, stdin=None)
    assert done.stdout.startswith("OUT OF MEMORY  rank 0 (GPU 0), the first of 2: 512.0 MiB was tried")
    assert "asked    /home/user/train.py:52 in <module>: optimizer.step()" in done.stdout
    assert "rank 1 (GPU 1): 2.00 GiB was tried" in done.stdout


@pytest.mark.parametrize("columns", [60, 80, 120])
def test_a_row_of_the_card_is_one_line(fathom, columns):
    """Bars and shares take what names and sizes leave; they never go on below."""
    for name in ("27-advice-applies.txt", "32-four-other-processes.txt", "147-request-of-two-thirds.txt"):
        done = fathom.command("explain", TEXTS / name, env={"COLUMNS": str(columns)})
        card = done.stdout.split("card  ")[1].split("advice ")[0].splitlines()[1:]
        assert 3 <= len(card) and all("iB" in row or " 0 B" in row for row in card), done.stdout
        assert all(len(row) <= columns for row in card)


def test_what_helps_is_advised_first(fathom):
    """Of two that help, the one that leaves more."""
    text = "CUDA out of memory. Tried to allocate 20.00 MiB (GPU 0; 11.78 GiB total capacity; 46.62 MiB already "
    text += "allocated; 12.38 MiB free; 58.00 MiB reserved in total by PyTorch)"
    answer = explained(fathom, "-", input=text, stdin=None)
    assert [row["id"] for row in answer["advice"]] == ["stop_other_processes", "use_reserved"]


def test_another_error_of_the_same_text_is_named(fathom):
    answer = explained(fathom, TEXTS / "294-cudnn-after-an-illegal-access.txt")
    assert answer["accounts"][0]["other_error"] == "an illegal memory access was encountered"
    assert any("not a lack of memory" in row for row in answer["accounts"][0]["why"])


def test_nvidia_smi_alone_is_answered(fathom):
    answer = explained(fathom, "--smi", "22616MiB", "--gpu", "a10g")
    rows = {row["name"]: row for row in answer["reconciliation"]["ledger"]}
    assert rows["free"]["bytes"] + (22616 << 20) <= rows["card"]["bytes"] + (1 << 20)
    most = rows["at_most_pytorch"]
    assert most["known"] == "assumed" and 22000 << 20 < most["bytes"] < 22617 << 20
    assert answer["next"][-1]["command"] == "fathom fit --gpu a10g -- python train.py"
    done = fathom.command("explain", "--smi", "22616MiB")
    assert done.returncode == 0 and "max_memory_allocated" in done.stdout and "fathom fit" in done.stdout


def test_every_text_ends_with_a_command(fathom):
    for path in sorted(TEXTS.glob("*.txt")):
        answer = explained(fathom, path)
        last = answer["next"][-1]["command"]
        is_of_torch = answer["memory"] in ("device", "unified") and answer["cause"] != "not_memory"
        kinds = ("framework", "server", "jax", "tensorflow", "host")
        if is_of_torch and answer["accounts"][0]["kind"] not in kinds:
            assert last.startswith("fathom fit"), path.name
        assert last, path.name


def test_figures_are_brought_together(fathom):
    flags = ("--smi", "22616MiB", "--reserved", "21.50GiB", "--allocated", "18.20GiB", "--gpu", "a10g")
    answer = explained(fathom, *flags, "--parameters", "76464439")
    rows = {(row["name"], row["depth"]): row for row in answer["reconciliation"]["ledger"]}
    assert rows["smi", 0]["bytes"] == 22616 << 20 and rows["context", 1]["known"] == "assumed"
    parts = sum(rows[name, 1]["bytes"] for name in ("reserved", "context", "unexplained"))
    assert abs(parts - (22616 << 20)) <= 6 << 20
    assert abs(rows["cache_and_fragments", 1]["bytes"] - 3.3 * 2**30) <= 11 << 20
    assert rows["trained", 1]["bytes"] == 16 * 76464439 and rows["trained", 1]["known"] == "modelled"
    assert answer["reconciliation"]["contradictions"] == []


def test_figures_that_cannot_be_are_said_to_be_so(fathom):
    answer = explained(fathom, "--smi", "8GiB", "--reserved", "10GiB", "--allocated", "12GiB")
    wrong = [(row["larger"], row["smaller"]) for row in answer["reconciliation"]["contradictions"]]
    assert wrong == [("reserved", "smi"), ("allocated", "reserved")]
    assert all(row["bytes"] >= 0 for row in answer["reconciliation"]["ledger"])
    done = fathom.command("explain", "--smi", "8GiB", "--reserved", "10GiB")
    assert done.returncode == 0 and done.stdout.startswith("CONTRADICTION")


def test_a_log_and_a_table_are_explained_together(fathom):
    names = ("05-torch-1.5-others.txt", "58-smi-418.txt")
    answer = explained(fathom, *(TEXTS / name for name in names))
    kinds = [account["kind"] for account in answer["accounts"]]
    assert kinds == ["cuda", "nvidia_smi", "nvidia_smi", "nvidia_smi"] and answer["cause"] == "other_processes"


@pytest.mark.parametrize(
    ("words", "wrong"),
    [
        ((), "nothing to explain"),
        (("tests/oom/INDEX.csv", "--dims", "batch"), "no out-of-memory message"),
        (("tests/oom/14-absurd-request.txt", "--dims", "batch"), "`batch` is not a dimension"),
        (("tests/oom/14-absurd-request.txt", "--shape", "4x"), "`4x` is not a shape"),
        (("tests/oom/43-cuda-error.txt", "--shape", "4x4"), "needs a message that says how much was tried"),
        (("--smi", "22G"), "ambiguous"),
        (("--smi", "22GiB", "--gpu", "rtx9999"), "rtx9999"),
        (("tests/oom/14-absurd-request.txt", "--snapshot", "x.pickle"), "needs a recording"),
        (("nowhere.log",), "was not found"),
    ],
)
def test_bad_input_is_refused_with_a_cure(fathom, words, wrong):
    done = fathom.command("explain", *words)
    assert done.returncode == 2 and wrong in done.stderr and "hint:" in done.stderr and done.stdout == ""
