"""Names of snapshots are inferred; here they are compared with what the recorder noted of the same run.

Scripts run as if their author had asked PyTorch for a snapshot (`as_snapshot.py`), while Fathom records them. `make
test-names` compares all of them, with frames of C++ and without, whole and cut in the middle.
"""

import json
import os
import subprocess
import textwrap

import pytest
from conftest import PYTHON, ROOT, SCRIPTS
from named_scripts import ALL, WORLD

IS_WARM = True

SCORE = ROOT / "target" / "release" / "examples" / "score"
HELD_OUT = ROOT / "tests" / "held_out"
AS_SNAPSHOT = ROOT / "tests" / "as_snapshot.py"
SAMPLE = ["nn_transformer_adam", "garbage"]
IS_ALL = os.environ.get("FATHOM_ALL_NAMES") == "1"


def recorded(fathom, folder, script, *arguments, stacks="all", flags=(), env=None):
    """The recording and the snapshot of one run."""
    snapshot = folder / "snapshot.pickle"
    command = (PYTHON, AS_SNAPSHOT, stacks, snapshot, script, *arguments)
    fathom(*command, flags=("--gpu", "rtx3090", "--out", folder, *flags), env=env or {}, timeout=300)
    recordings = sorted(folder.rglob("recording.*.fathom"), key=lambda path: path.stat().st_size)
    return recordings[-1], snapshot


def score(recording, snapshot, *flags):
    if not SCORE.exists():
        pytest.skip(f"{SCORE.relative_to(ROOT)} is missing: cargo build --release -p infer --example score")
    done = subprocess.run([SCORE, recording, snapshot, *flags], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def explained(fathom, snapshot, folder):
    target = folder / "explained.json"
    done = fathom.command("explain", snapshot, "--json", target)
    assert done.returncode == 0, done.stderr
    return json.loads(target.read_text())


@pytest.mark.parametrize("name", SAMPLE)
def test_categories_are_those_of_the_recorder(fathom, tmp_path, name):
    found = score(*recorded(fathom, tmp_path, SCRIPTS / f"{name}.py"))
    sums = found["sums"]
    assert sums["right"] >= 0.95 * sums["bytes"], found["mistakes"]
    assert sums["wrong"] <= 0.01 * sums["bytes"], found["mistakes"]


def test_a_cache_that_grows_by_hand_is_named_in_the_midst_of_a_run(fathom, tmp_path):
    """No library says what it is, and the history begins late: only how it grows tells."""
    files = recorded(fathom, tmp_path, HELD_OUT / "chat_cache.py")
    found = score(*files, "--half")
    assert found["sums"]["wrong"] == 0, found["mistakes"]
    assert "kv_cache as unknown" not in found["mistakes"], found["mistakes"]
    held = {row["name"]: row["bytes"] for row in explained(fathom, files[1], tmp_path)["categories"]}
    assert held["kv_cache"] >= 90 << 20, held


def test_a_pass_that_is_differentiated_twice_keeps_activations(fathom, tmp_path):
    """A penalty on gradients: what the inner backward pass leaves has the sizes of weights, and is none of their gradients."""
    found = score(*recorded(fathom, tmp_path, HELD_OUT / "gan_penalty.py"))
    assert "activations as gradients" not in found["mistakes"], found["mistakes"]
    assert found["sums"]["right"] >= 0.95 * found["sums"]["bytes"], found["mistakes"]


@pytest.mark.skipif(not IS_ALL, reason="make test-names")
def test_scripts_that_no_rule_was_made_from_reach_the_bounds(fathom, tmp_path):
    """They were written after the rules; what they showed first is in `docs/concepts/snapshots.md`."""
    rows = []
    for path in sorted(HELD_OUT.glob("*.py")):
        folder = tmp_path / path.stem
        folder.mkdir()
        flags = ("--world-size", "4") if path.stem == "sharded_rank" else ()
        rows.append({"name": path.stem, **score(*recorded(fathom, folder, path, flags=flags))["sums"]})
    total = {key: sum(row.get(key, 0) for row in rows) for key in ("bytes", "right", "in_modules", "class_right")}
    assert total["right"] >= 0.95 * total["bytes"], rows
    assert total["class_right"] >= 0.90 * total["in_modules"], rows


@pytest.mark.skipif(not IS_ALL, reason="make test-names")
def test_all_scripts_together_reach_the_bounds(fathom, tmp_path):
    rows = []
    for name in ALL:
        folder = tmp_path / name
        folder.mkdir()
        files = recorded(fathom, folder, SCRIPTS / f"{name}.py", env=WORLD if name == "distributed_one" else None)
        rows.append({"name": name, **score(*files)["sums"]})
    (tmp_path / "rows.json").write_text(json.dumps(rows))
    total = {key: sum(row.get(key, 0) for row in rows) for key in ("bytes", "right", "in_modules", "class_right")}
    assert total["right"] >= 0.95 * total["bytes"], rows
    assert total["class_right"] >= 0.90 * total["in_modules"], rows


def test_the_cache_of_a_server_is_named(fathom, tmp_path):
    """Frames like vLLM's: a file of its package, and the method that allocates."""
    package = tmp_path / "site-packages" / "vllm" / "v1" / "worker"
    package.mkdir(parents=True)
    (package / "gpu_model_runner.py").write_text(
        textwrap.dedent("""\
            import torch

            class GPUModelRunner:
                def _allocate_kv_cache_tensors(self, layers, size):
                    return [torch.zeros(size, dtype=torch.int8, device="cuda") for _ in range(layers)]
            """)
    )
    script = tmp_path / "serve.py"
    script.write_text(
        textwrap.dedent(f"""\
            import sys
            sys.path.insert(0, {str(package)!r})
            import torch
            from gpu_model_runner import GPUModelRunner

            model = torch.nn.Linear(1024, 1024, device="cuda")
            cache = GPUModelRunner()._allocate_kv_cache_tensors(4, 64 << 20)
            with torch.no_grad():
                model(torch.randn(8, 1024, device="cuda"))
            """)
    )
    _, snapshot = recorded(fathom, tmp_path, script)
    report = explained(fathom, snapshot, tmp_path)
    held = {row["name"]: row["bytes"] for row in report["categories"]}
    assert held["kv_cache"] == 4 * (64 << 20)
    assert {row["name"] for row in report["evidence"]} >= {"frames"}


def test_gathered_parameters_are_named(fathom, tmp_path):
    """FSDP2 over four ranks, of which one runs."""
    _, snapshot = recorded(fathom, tmp_path, SCRIPTS / "ranks.py", "fsdp2", flags=("--world-size", "4"))
    report = explained(fathom, snapshot, tmp_path)
    held = {row["name"]: row["bytes"] for row in report["categories"]}
    assert held["unsharded_weights"] > 0 and held["communication"] > 0
    assert "gathered weights (FSDP2)" in {row["name"] for row in report["areas"]}


def test_ranks_are_compared(fathom, tmp_path):
    """The worst of several files, and what it holds more."""
    script = tmp_path / "rank.py"
    script.write_text("import sys, torch\nkeep = torch.empty(int(sys.argv[1]) << 20, dtype=torch.uint8, device='cuda')\n")
    files = []
    for rank, size in enumerate((8, 8, 40)):
        folder = tmp_path / f"rank{rank}"
        folder.mkdir()
        _, snapshot = recorded(fathom, folder, script, str(size))
        files.append(snapshot.rename(tmp_path / f"rank{rank}.pickle"))
    done = fathom.command("explain", *files)
    assert done.returncode == 0, done.stderr
    assert "rank2.pickle holds 32.0 MiB more than rank0.pickle" in done.stdout, done.stdout
    assert done.stdout.count("device 0 ·") == 1, "only the worst is explained in full"
    done = fathom.command("diff", *files)
    assert done.returncode == 0 and "needs most" in done.stdout, done.stdout + done.stderr
