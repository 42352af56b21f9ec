"""Custom CUDA operators, compiled where no GPU and no toolkit is: by NVIDIA's packages, linked against the stubs."""

import os
import re
import subprocess
from pathlib import Path

import pytest
from conftest import ROOT, missing

EXTENSION = ROOT / "tests" / "extension"
# Where NVIDIA's compiler is installed; another Python can be named.
COMPILES = Path(os.environ.get("FATHOM_EXTENSION_PYTHON") or ROOT / ".venvs" / "extension" / "bin" / "python")


@pytest.fixture(scope="module")
def compiler():
    """The environment that makes the compiler findable, as the guide says."""
    if not COMPILES.exists():
        missing(COMPILES, "NOTHING IS COMPILED; `make .venvs/extension/extension.stamp` installs NVIDIA's compiler")
    find = "import glob, sysconfig; print(*glob.glob(sysconfig.get_path('purelib') + '/nvidia/cu*/bin/nvcc'))"
    nvcc = subprocess.run([COMPILES, "-c", find], capture_output=True, text=True, check=True).stdout.strip()
    return {"CUDA_HOME": nvcc.removesuffix("/bin/nvcc"), "PATH": f"{COMPILES.parent}:/usr/local/bin:/usr/bin:/bin"}


def test_an_extension_is_compiled_and_trains(fathom, compiler, tmp_path):
    built = tmp_path / "built"
    built.mkdir()
    script = (COMPILES, EXTENSION / "train.py", built)
    report, done = fathom(*script, flags=("--gpu", "rtx3090", "--steps", "0"), env=compiler, timeout=600)
    assert report and report["verdict"] == "fits_if" and report["steps"] == 3, done.stdout + done.stderr
    # Weights, gradients and a batch's activations of 4 MiB each, among them what the operator made.
    assert report["peak"]["allocated_bytes"] > 2 * (2048 * 2048 * 4) + 3 * (512 * 2048 * 4)
    assert [row["operator"] for row in report["decisions"]] == ["__int__"]
    assert report["headline"].startswith("DEPENDS  fits if"), report["headline"]
    # It would run on a card, too: it names the library that it was linked against.
    needed = subprocess.run(["readelf", "-d", built / "scale_each.so"], capture_output=True, text=True).stdout
    assert re.search(r"NEEDED.*libcudart\.so\.\d+", needed), needed


def test_the_doctor_finds_the_compiler(fathom, compiler):
    done = fathom.command("doctor", "--", COMPILES, env=compiler)
    assert done.returncode == 0 and compiler["CUDA_HOME"] in done.stdout, done.stdout
    # The repository installs no cuBLAS; everything else is there.
    rows = [line for line in done.stdout.splitlines() if "missing: " in line]
    assert all("ATen/cuda/CUDAContext.h" in row for row in rows), done.stdout
    done = fathom.command("doctor", "--", COMPILES, env={"PATH": "/usr/local/bin:/usr/bin:/bin"})
    assert f"missing: CUDA_HOME: `export CUDA_HOME={compiler['CUDA_HOME']}`" in done.stdout
    assert f"`export PATH={COMPILES.parent}:$PATH`" in done.stdout


def test_a_linker_finds_the_stubs_without_versions(fathom, tmp_path):
    """Triton 3.2 links its launcher with `-lcuda`; a folder of the user's own comes first."""
    (tmp_path / "empty.c").write_text("int nothing;\n")
    links = "import os, subprocess, sys, torch; print('PATHS', os.environ['LIBRARY_PATH']); "
    links += f"sys.exit(subprocess.call(['cc', '-shared', '{tmp_path}/empty.c', '-o', '{tmp_path}/empty.so', "
    links += "'-lcuda', '-lcudart', '-lcublas']))"
    report, done = fathom.code(links, env={"LIBRARY_PATH": "/mine:/also mine"})
    assert report["verdict"] == "fits", done.stdout + done.stderr
    paths = re.search(r"^PATHS (.*)$", done.stdout, re.M).group(1).split(":")
    assert paths[:2] == ["/mine", "/also mine"] and len(paths) == 3
    without = subprocess.run(["cc", "-shared", "empty.c", "-o", "no.so", "-lcuda"], cwd=tmp_path, capture_output=True)
    if without.returncode == 0:
        pytest.skip("this machine has a libcuda.so of its own: the test shows nothing")
    assert (tmp_path / "empty.so").exists()
