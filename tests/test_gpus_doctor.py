"""`fathom gpus`, `fathom doctor` and the helpers made from the flags."""

import re

from conftest import PYTHON


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
