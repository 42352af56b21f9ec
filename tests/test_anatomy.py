"""Who holds every byte: the report of scripts whose sizes are known, and conservation over all test scripts."""

import json
import re
import subprocess
import textwrap

import pytest
from conftest import PYTHON, ROOT, SCRIPTS, sampled
from test_scripts import EACH

IS_WARM = True

MIB = 1 << 20
CHECK = ROOT / "target" / "release" / "examples" / "check"


def sizes(done):
    return next(json.loads(line[6:]) for line in done.stdout.splitlines() if line.startswith("SIZES "))


def held(report):
    return {row["name"]: row["bytes"] for row in report["categories"]}


@pytest.mark.parametrize("name", EACH)
def test_every_byte_of_the_peak_has_an_owner(shared, name):
    report, done = shared("script", name)
    allocated = report["peak"]["allocated_bytes"]
    for dimension, field in (("categories", "bytes"), ("modules", "own_bytes"), ("lines", "bytes"), ("operators", "bytes")):
        assert sum(row[field] for row in report[dimension]) == allocated, dimension
    assert held(report)["unknown"] < allocated / 100
    assert not [note for note in report["notes"] if "replay" in note or "recorded" in note], report["notes"]
    assert report["phases"] and report["parameters"]["total"] > 0


@pytest.mark.parametrize("name", EACH)
def test_owners_sum_to_what_pytorch_counts_at_every_event(shared, fathom, name):
    report, _ = shared("script", name)
    if not CHECK.exists():
        pytest.skip(f"{CHECK.relative_to(ROOT)} is missing: cargo build --release -p anatomy --example check")
    files = list(fathom.folder_of(name).glob("recording.*.fathom"))
    assert files
    for file in files:
        done = subprocess.run([CHECK, file], capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize("average", ["module", "list", "none"])
def test_copies_of_the_weights_are_told_apart(shared, average):
    report, done = shared("whole", "owners", *(() if average == "module" else ("--average", average)))
    expected, found = sizes(done), held(report)
    assert found["weights"] == expected["weights"]
    assert found["optimizer"] == expected["optimizer"], "Adam: 8 bytes for each trainable, used parameter"
    assert found["model_copies"] == expected["model_copies"]
    assert found["buffers"] == 4 * MIB
    total, trainable, idle = expected["parameters"]
    counts = report["parameters"]
    assert counts == {"total": total, "trainable": trainable, "frozen": total - trainable, "unused": idle}


def test_accumulation_does_not_double_gradients(shared):
    once, done = shared("whole", "owners", "--accumulate", "1")
    four, _ = shared("whole", "owners", "--accumulate", "4")
    assert held(four)["gradients"] == sizes(done)["gradients"]
    assert held(once)["gradients"] <= sizes(done)["gradients"]


def test_a_weight_says_which_node_keeps_it_too(shared):
    report, _ = shared("whole", "owners")
    [weight] = [row for row in report["tensors"] if row["name"] == "body.2.weight"]
    assert {"category": "activations", "name": "AddmmBackward0.mat2 in body.2"} in weight["also"]


def test_autocast_shows_the_casts(shared):
    report, _ = shared("whole", "owners", "--autocast")
    casts = [row for row in report["tensors"] if row["category"] == "casts"]
    assert {row["bytes"] for row in casts} >= {4 * MIB}  # body.0.weight and body.2.weight in two bytes each
    assert all(row["name"].startswith("cast of ") for row in casts)
    without, _ = shared("whole", "owners")
    assert held(without)["casts"] == 0


def test_a_leak_is_named_with_the_line_that_holds_it(fathom):
    report, done = fathom.script("leak", flags=("--steps", "5"))
    line = next(n for n, text in enumerate((SCRIPTS / "leak.py").read_text().splitlines(), 1) if "the leak" in text)
    largest = report["growth"][0]
    assert largest["line"] == line and largest["file"].endswith("leak.py")
    assert largest["held_by"].endswith(f"leak.py:{line}")
    assert largest["bytes_per_step"] == 256 * 2048 * 4
    assert report["growth_bytes_per_step"] >= 256 * 2048 * 4
    assert "more every step" in done.stdout and f"held by the result of tests/scripts/leak.py:{line}" in done.stdout


@pytest.mark.parametrize("name", sampled(["resnet50_sgd", "bert_large_adamw", "amp_transformer"], ["resnet50_sgd", "amp_transformer"]))
def test_what_does_not_grow_is_not_accused(shared, name):
    report, _ = shared("script", name)
    assert (report["growth_bytes_per_step"], report["growth"]) == (0, [])


@pytest.mark.parametrize("name", ["resnet50_sgd"])
def test_hooks_on_modules_are_set_beside_the_truth(fathom, shared, name):
    report, _ = shared("script", name)
    saved = report["saved"]
    # In place and in containers: modules put out more than autograd keeps.
    assert 1.3 < saved["module_outputs_bytes"] / saved["saved_bytes"] < 3
    _, done = fathom.script(name, flags=("--all",))
    assert "forward hooks would overestimate activations by" in done.stdout


def test_the_smallest_card_is_the_smallest(fathom):
    """The run completes on a card of that size, and not on one of 2 MiB less."""
    def on(memory):
        return fathom(PYTHON, SCRIPTS / "amp_transformer.py", flags=("--memory", memory))[0]

    roomy = on("24GiB")
    floor = roomy["floor_bytes"]
    assert roomy["peak"]["allocated_bytes"] < floor <= roomy["peak"]["device_bytes"]
    assert on(f"{floor}B")["verdict"] == "fits"
    assert on(f"{floor - 2 * MIB}B")["verdict"] == "does_not_fit"


PHASES = """
import torch
model = torch.nn.Linear(256, 256).cuda()
optimizer = torch.optim.Adam(model.parameters())
for epoch in range(2):
    model.train()
    for _ in range(2):
        optimizer.zero_grad()
        model(torch.randn(64, 256, device="cuda")).sum().backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        model(torch.randn(4096, 256, device="cuda")).sum()
    torch.save({"model": model.state_dict(), "big": torch.zeros(1 << 20, device="cuda")}, "OUT")
"""


def test_phases_have_their_own_peaks(fathom, tmp_path):
    script = tmp_path / "phases.py"
    script.write_text(PHASES.replace("OUT", str(tmp_path / "model.pt")))
    report, done = fathom(PYTHON, script, flags=("--gpu", "rtx3090", "--steps", "0"))
    peaks = {(row["name"], row["step"]): row["peak_allocated_bytes"] for row in report["phases"]}
    names = {name for name, _ in peaks}
    assert {"construction", "forward", "backward", "optimizer", "evaluation", "saving"} <= names
    assert report["peak"]["phase"] in ("evaluation", "saving")
    evaluation = max(size for (name, _), size in peaks.items() if name == "evaluation")
    assert evaluation >= 2 * 4096 * 256 * 4


def thousand_lines(folder):
    """A model of 60 modules in a thousand lines; one of them repeats its input a hundred times."""
    lines = ["import torch", "from torch import nn", ""]
    for number in range(60):
        lines += ["", "", f"class Block{number}(nn.Module):", "    def __init__(self):", "        super().__init__()"]
        lines += ["        self.inner = nn.Linear(64, 64)", ""]
        lines += [f"        # setting {n} of block {number}" for n in range(6)]
        lines += ["", "    def forward(self, x):"]
        lines += ["        wide = self.inner(x).repeat(1, 100).tanh()  # HERE"] if number == 37 else ["        wide = self.inner(x)"]
        lines += ["        return wide[:, :64]"]
    lines += ["", "", f"model = nn.Sequential({', '.join(f'Block{n}()' for n in range(60))}).cuda()"]
    lines += textwrap.dedent("""
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            optimizer.zero_grad()
            model(torch.randn(4096, 64, device="cuda")).sum().backward()
            optimizer.step()
    """).splitlines()
    path = folder / "long.py"
    path.write_text("\n".join(lines) + "\n")
    assert 900 < len(lines)
    return path, next(number for number, line in enumerate(lines, 1) if "HERE" in line)


def test_in_a_thousand_lines_the_right_one_is_on_top(fathom, tmp_path):
    script, line = thousand_lines(tmp_path)
    report, done = fathom(PYTHON, script, flags=("--gpu", "rtx3090"))
    top = report["lines"][0]
    assert (top["file"], top["line"], top["function"]) == (str(script), line, "Block37.forward")
    modules = [row for row in report["modules"] if row["path"]]
    assert max(modules, key=lambda row: row["own_bytes"])["path"] == "37"
    assert f"{script.name}:{line}" in done.stdout


@pytest.mark.parametrize("name", sampled(["resnet50_sgd", "nn_transformer_adam", "cnn_zoo"], ["cnn_zoo"]))
def test_peaks_are_the_same_without_the_recorder(shared, fathom, name):
    recorded, _ = shared("script", name)
    bare, _ = fathom.script(name, flags=("--record", "off"))
    kinds = ("requested_bytes", "allocated_bytes", "reserved_bytes", "device_bytes")
    assert [bare["peak"][kind] for kind in kinds] == [recorded["peak"][kind] for kind in kinds]
    assert bare["categories"] == []


def test_garbage_is_collected_as_often_without_us(fathom):
    """What hangs in cycles leaves the card when Python collects: our own objects must not make it do so earlier."""

    def collections(recording, values):
        flags = ("--steps", "0", "--record", recording, "--values", values)
        _, done = fathom.script("garbage", flags=flags)
        return int(re.search(r"collections (\d+)", done.stdout)[1])

    bare = collections("off", "off")
    assert abs(collections("on", "on") - bare) <= 15 and abs(collections("off", "on") - bare) <= 15, "in ten steps"
    assert bare >= 50, "else nothing is compared"


def test_what_begins_late_has_its_names_and_lines(fathom):
    """After the first steps the recorder looks less closely, unless something is new."""
    report, _ = fathom.script("late", flags=("--steps", "0"))
    assert held(report)["optimizer"] == 2048 * 1025 * 4, "momentum, from the sixth step to the twelfth"
    own = [row for row in report["lines"] if "caching_allocator_alloc" in (row["source"] or "")]
    before, after = sorted(own, key=lambda row: row["line"])
    assert (before["bytes"], after["bytes"]) == (4 << 20, 3 << 20), "the peak is in the last backward pass"
    assert held(report)["unknown"] == 0


def test_a_killed_run_leaves_a_readable_recording(fathom, tmp_path):
    script = tmp_path / "killed.py"
    script.write_text(PHASES.split("    model.eval()")[0] + "import os, signal\nos.kill(os.getpid(), signal.SIGKILL)\n")
    fathom(PYTHON, script, flags=("--gpu", "rtx3090", "--steps", "0", "--out", tmp_path / "out"))
    [file] = (tmp_path / "out").glob("recording.*.fathom")
    done = fathom.command("explain", file)
    assert done.returncode == 0 and "the recording ends before its process did" in done.stdout


def test_python_records_by_itself(fathom, tmp_path):
    """`fathom.record()` and `python -m fathom record`, as on a machine with a real card."""
    env = {"PYTHONPATH": str(ROOT / "python")}
    words = (PYTHON, "-m", "fathom", "record", "--out", tmp_path / "out", SCRIPTS / "owners.py")
    report, done = fathom(*words, flags=("--steps", "0", "--record", "off", "--values", "off"), env=env)
    [file] = (tmp_path / "out").glob("recording.*.fathom")
    explained = fathom.command("explain", file, "--json", tmp_path / "explain.json")
    assert explained.returncode == 0, explained.stderr
    found = {row["name"]: row["bytes"] for row in json.loads((tmp_path / "explain.json").read_text())["categories"]}
    assert found["optimizer"] == sizes(done)["optimizer"] and found["weights"] == sizes(done)["weights"]


NESTED = """
import torch
class Again(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * 2
    @staticmethod
    def backward(ctx, gradient):
        [x] = ctx.saved_tensors
        with torch.enable_grad():
            again = x.detach().requires_grad_()
            return torch.autograd.grad((again * 2).tanh(), again, gradient)[0]
model = torch.nn.Linear(1024, 1024).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    Again.apply(model(torch.randn(8192, 1024, device="cuda"))).sum().backward()
    optimizer.step()
    optimizer.zero_grad()
"""


def test_a_backward_pass_inside_another_is_still_backward(fathom):
    report, done = fathom(PYTHON, "-c", NESTED, flags=("--gpu", "rtx3090"))
    assert report["verdict"] == "fits" and report["peak"]["phase"] == "backward", done.stderr
    assert {row["born_phase"] for row in report["tensors"] if row["node"]} <= {"backward"}
