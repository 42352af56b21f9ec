"""`fathom sweep`: trials in a warm process give what cold runs give, and every way of turning a knob works."""

import json

import pytest
from conftest import PYTHON, SCRIPTS, sampled

IS_WARM = True

BLOCKS = SCRIPTS / "blocks_flags.py"


@pytest.fixture
def sweep(fathom, tmp_path):
    """`fathom sweep --json FILE FLAGS… -- COMMAND…`: the answer and the finished process."""

    def run(*words, command, cache=None, **options):
        path = tmp_path / "sweep.json"
        env = {**options.pop("env", {}), **({"FATHOM_CACHE": cache} if cache else {})}
        done = fathom.command("sweep", "--json", path, *words, "--", *command, env=env, **options)
        return (json.loads(path.read_text()) if path.exists() else None), done

    return run


def point(answer, **values):
    wanted = {name: str(value) for name, value in values.items()}
    return next(point for point in answer["points"] if point["values"] == wanted)


COMMANDS = {
    "script": (PYTHON, BLOCKS, "--batch-size", "4"),
    "unbuffered module": (PYTHON, "-u", "-m", "blocks_flags", "--batch-size", "4"),
    "settings before torch is imported": (
        PYTHON, "examples/stdiff/train.py", "--config", "examples/stdiff/small.yaml", "device=cuda",
        "Dataset.batch_size=4",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", sampled(COMMANDS, ["unbuffered module"]))
def test_a_warm_trial_is_a_cold_run_to_the_byte(name, fathom, sweep):
    command = COMMANDS[name]
    knob = "Dataset.batch_size" if "stdiff" in str(command[1]) else "batch-size"
    where = {"cwd": SCRIPTS} if "-m" in command else {}
    answer, done = sweep("--vary", f"{knob}=4", "--gpu", "rtx3090", "--fresh", command=command, **where)
    assert done.returncode == 0, done.stderr
    assert not any("anew" in note for note in answer["notes"]), "it was not warm"
    report, _ = fathom(*command, flags=("--gpu", "rtx3090", "--record", "off"), **where)
    found, expected = point(answer, **{knob: 4}), report["peak"]
    assert found["verdict"] == "fits"
    assert found["peak_allocated_bytes"] == expected["allocated_bytes"]
    assert found["peak_reserved_bytes"] == expected["reserved_bytes"]
    assert found["device_bytes"] == expected["device_bytes"]


def test_a_library_that_asks_for_a_card_is_imported_once(sweep, tmp_path):
    """As diffusers does: whether there is a card is asked of NVML, which leaves the card for the trials to choose."""
    folder = tmp_path / "site-packages"
    folder.mkdir()
    (folder / "asks.py").write_text("import os, torch\nHAS_CARD, PID = torch.cuda.is_available(), os.getpid()\n")
    script = tmp_path / "train.py"
    script.write_text(
        "import os, sys\nimport torch\nimport asks\n"
        "assert asks.HAS_CARD and asks.PID == os.getppid(), 'imported anew'\n"
        "assert 'PYTORCH_NVML_BASED_CUDA_CHECK' not in os.environ\n"
        "weight = torch.zeros(int(sys.argv[1]) << 20, device='cuda', requires_grad=True)\n"
        "optimizer = torch.optim.SGD([weight])\n"
        "for _ in range(3):\n    weight.sum().backward(); optimizer.step()\n"
    )
    env = {"PYTHONPATH": folder}
    answer, done = sweep("--vary", "n=8,16", "--set", "n={}", "--gpu", "rtx3090,a100-80g", command=(PYTHON, script, "8"), env=env)
    assert done.returncode == 0, done.stderr
    assert [point["verdict"] for point in answer["points"]] == ["fits"] * len(answer["points"]), done.stdout


def test_flags_variables_and_config_files_turn_the_same_knob(sweep, tmp_path):
    script = tmp_path / "train.py"
    script.write_text(
        "import json, os, sys\n"
        "import torch\n"
        "flags = dict(word.split('=') for word in sys.argv[1:] if '=' in word)\n"
        "config = json.load(open(flags['config']))\n"
        "size = int(os.environ.get('SIZE') or flags.get('size') or config['model']['size'])\n"
        "weight = torch.zeros(size << 20, device='cuda', requires_grad=True)\n"
        "optimizer = torch.optim.SGD([weight])\n"
        "for _ in range(5):\n    weight.sum().backward(); optimizer.step()\n"
    )
    config = tmp_path / "config.json"
    config.write_text('{"model": {"size": 1}}')
    command = (PYTHON, script, f"config={config}")
    for template in ("SIZE={}", "size={}", f"{config}:model.size={{}}"):
        answer, done = sweep("--vary", "n=8,16", "--set", f"n={template}", "--memory", "1GiB", command=command)
        assert done.returncode == 0, done.stderr
        peaks = [point(answer, n=n)["peak_allocated_bytes"] for n in (8, 16)]
        assert peaks[1] - peaks[0] == 64 << 20, (template, peaks)  # the weight and its gradient
    assert config.read_text() == '{"model": {"size": 1}}'


@pytest.mark.matrix
def test_the_largest_batch_is_the_one_that_running_all_finds(fathom, sweep):
    command = (PYTHON, BLOCKS, "--depth", "4", "--length", "512")
    words = ("--set", "batch=--batch-size {}", "--memory", "2GiB", "--fresh")
    answer, done = sweep("--vary", "batch=1..64", *words, command=command)
    assert done.returncode == 0, done.stderr
    (largest,) = answer["largest"]
    around = range(largest["value"] - 2, largest["value"] + 5)
    fits = []
    for batch in around:
        report, _ = fathom(*command, "--batch-size", batch, flags=("--memory", "2GiB", "--record", "off"))
        fits.append(report["verdict"] == "fits")
    assert max(batch for batch, fit in zip(around, fits) if fit) == largest["value"], list(zip(around, fits))
    assert answer["scaling"][0]["exponent"] == pytest.approx(1, abs=0.1)


@pytest.mark.matrix
def test_the_card_itself_is_run_where_a_run_without_a_limit_takes_more(fathom, sweep):
    """cuDNN's work areas shrink with the card: without a limit batch 128 takes twice the card."""
    command = (PYTHON, SCRIPTS / "conv_flags.py", "--batch-size", "1")
    words = ("--gpu", "rtx2070", "--fresh")
    answer, done = sweep("--vary", "batch-size=120,200", *words, command=command)
    assert [point["verdict"] for point in answer["points"]] == ["fits", "does_not_fit"], done.stdout
    answer, done = sweep("--vary", "batch-size=1..400", *words, command=command)
    (largest,) = answer["largest"]
    flags = ("--gpu", "rtx2070", "--record", "off")
    fits = lambda batch: fathom(*command[:-1], batch, flags=flags)[0]["verdict"] == "fits"  # noqa: E731
    assert 120 <= largest["value"] and fits(largest["value"]) and not fits(largest["value"] + 1), done.stdout


def test_causes_grow_as_they_were_measured_to(sweep):
    words = ("--vary", "batch-size=8,16,32", "--memory", "24GiB", "--causes")
    answer, done = sweep(*words, command=(PYTHON, BLOCKS, "--batch-size", "4"))
    assert done.returncode == 0, done.stderr
    exponents = {row["of"]: row["exponent"] for row in answer["scaling"]}
    shares = {row["of"]: row["share_of_peak"] for row in answer["scaling"]}
    assert exponents["peak_allocated_bytes"] == pytest.approx(1, abs=0.1)
    assert exponents["model-state"] == 0 and exponents["activations"] == pytest.approx(1, abs=0.1)
    assert 0.9 <= sum(shares.values()) - shares["peak_allocated_bytes"] <= 1
    assert "independent of batch-size" in " ".join(done.stdout.split())


def test_a_script_that_fails_says_why(sweep):
    answer, done = sweep("--vary", "depth=a", "--gpu", "rtx3090", command=(PYTHON, BLOCKS, "--depth", "1"))
    assert done.returncode == 3
    assert answer["points"][0]["verdict"] == "script_failed"
    assert "invalid int value: 'a'" in done.stdout


@pytest.mark.parametrize(
    "words, message, hint",
    [
        (("--vary", "bath=1,2"), "`bath` is neither a flag", "--set bath='--bath {}'"),
        (("--vary", "b=1", "--set", "b=--batch-size 3"), "has no `{}`", "--set b="),
        (("--vary", "b=1", "--set", "b=none.yaml:x={}"), "no word of the command", "as the command does"),
        (("--vary", "depth=3..1"), "the range is empty", "1..512"),
        (("--vary", "depth=1", "--set", "x={}"), "never varied", "--vary x="),
        (("--vary", "depth=1", "--gpu", "rtx0"), "rtx0", "fathom gpus"),
    ],
)
def test_wrong_words_have_a_cure(words, message, hint, sweep):
    _, done = sweep(*words, command=(PYTHON, BLOCKS, "--depth", "1"))
    assert done.returncode == 2
    assert message in done.stderr and "hint" in done.stderr and hint in done.stderr


