"""`fathom gpus`, `fathom doctor` and the helpers made from the flags."""

import re

from conftest import FATHOM, PYTHON

IS_WARM = True


def test_the_catalogue(fathom):
    done = fathom.command("gpus")
    rows = done.stdout.splitlines()
    names = [row.split()[0] for row in rows]
    assert done.returncode == 0 and len(rows) >= 40 and len(set(names)) == len(names)
    for name in ("gtx1080ti", "v100-32g", "t4", "rtx3060-12g", "rtx3090", "a100-40g", "a100-80g", "h200", "b200", "rtx5090"):
        assert name in names
    assert all(re.search(r"\d+\.\d+ GiB +\d+\.\d +\d+ SMs  \w", row) for row in rows)


def test_one_card(fathom):
    done = fathom.command("gpus", "RTX 3090")
    assert done.returncode == 0
    text = done.stdout
    assert "NVIDIA GeForce RTX 3090" in text and "compute capability 8.6" in text and "82" in text
    for fact in ("memory", "context", "multiprocessors", "level-2 cache", "clocks", "shared memory"):
        assert fact.lower() in text.lower(), text
    rows = text.splitlines()[1:]
    assert len(rows) >= 5 and all(len(re.split(r"  +", row.strip())) == 3 for row in rows), text  # each with its source


def test_what_a_card_shows_beside_pytorch_is_a_range(fathom):
    text = fathom.command("gpus", "a100-40g").stdout
    assert re.search(r"beside PyTorch +414 to 1429 MiB  ", text), text
    assert "itu-rad/GPUMemNet" in text and "awslabs/keys_values#92" in text and "8 processes" in text


def test_loading_all_kernels_at_once_takes_more(fathom):
    code = "import torch; free, total = torch.cuda.mem_get_info(); print((total - free) >> 20)"
    taken = {}
    for loading in ("LAZY", "EAGER"):
        report, done = fathom.code(code, env={"CUDA_MODULE_LOADING": loading})
        taken[loading] = int(done.stdout.splitlines()[0])
        gpu = report["gpu"]
        assert gpu["context_bytes"] >> 20 == taken[loading]
        low, high = gpu["context_range_bytes"]
        assert low <= gpu["context_bytes"] <= high
        assert gpu["context_known"] == ("measured" if loading == "LAZY" else "assumed")
    assert taken == {"LAZY": 256, "EAGER": 256 + 717}


def test_calibrate_on_the_phantom_is_no_measurement(fathom, tmp_path):
    """The catalogue's own numbers come back, and nothing is written that could be taken for a measurement."""
    rows = tmp_path / "rows.txt"
    words = (FATHOM, "calibrate", "--out", rows, "--", PYTHON)
    report, done = fathom(*words, flags=("--gpu", "a100-40g", "--record", "off", "--steps", "0"))
    lines = done.stdout.splitlines()
    assert report["exit_code"] == 0, done.stderr
    assert lines[0].startswith("NVIDIA A100-SXM4-40GB with 39.56 GiB, driver ")
    table = lines[2:7]
    assert [line.split("  ")[1] for line in table[:2]] == ["the context alone", "a first kernel"], done.stdout
    assert all(line.split()[-4:] == ["418.0", "MiB", "1.11", "GiB"] for line in table), done.stdout
    assert "This GPU is Fathom's phantom" in done.stdout and "Nothing is written" in done.stdout
    assert "calibrate\n" not in done.stdout and not rows.exists()


def test_calibrate_without_a_gpu(fathom):
    done = fathom.command("calibrate", "--", PYTHON)
    assert done.returncode == 2 and "nothing was measured: OSError: libnvidia-ml.so.1" in done.stderr
    assert "hint: `fathom calibrate -- .venv/bin/python` names a Python" in done.stderr and "Traceback" not in done.stderr


def test_near_matches(fathom):
    done = fathom.command("gpus", "rtx3091")
    assert done.returncode == 2 and "hint: " in done.stderr and "rtx3090" in done.stderr


def test_the_doctor_finds_all_well(fathom):
    done = fathom.command("doctor", "--", PYTHON)
    assert done.returncode == 0 and "FAIL" not in done.stdout, done.stdout
    for label in ("fathom", "phantom", "python", "torch", "cuDNN", "stubs"):
        assert re.search(rf"^ok +{label} ", done.stdout, re.M), done.stdout
    assert re.search(r"^ok +torch +2\.\d+\.\d+", done.stdout, re.M)
    assert "steps" in done.stdout and "(default)" in done.stdout


def test_the_doctor_says_where_settings_come_from(fathom, tmp_path):
    (tmp_path / "fathom.toml").write_text("gpu = 'rtx4090'\n")
    done = fathom.command("doctor", "--", PYTHON, cwd=tmp_path, env={"FATHOM_STEPS": "7"})
    assert f"gpu = rtx4090 ({tmp_path / 'fathom.toml'})" in done.stdout and "steps = 7 (environment)" in done.stdout


def test_the_doctor_finds_what_is_missing(fathom):
    done = fathom.command("doctor", "--", "no-such-python")
    assert done.returncode == 2 and re.search(r"^FAIL +python .*was not found", done.stdout, re.M)


def test_help_completions_and_manual(fathom):
    assert "--gpu" in fathom.command("run", "--help").stdout
    assert re.fullmatch(r"fathom \d+\.\d+\.\d+\n", fathom.command("--version").stdout)
    for shell in ("bash", "zsh", "fish"):
        assert "fathom" in fathom.command("completions", shell).stdout
    assert ".TH fathom" in fathom.command("man").stdout
