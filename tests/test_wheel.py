"""What pip installs: the command, the phantom and the package, found from wherever they are.

The wheel itself is built by `make test-wheel`, which compiles the command once more; here, without one, its layout
is put together by hand.
"""

import json
import os
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest
from conftest import FATHOM, PYTHON, ROOT, SCRIPTS, environment

sys.path.insert(0, str(ROOT / "packaging"))
import glibc
import sdist

LIBRARIES = [FATHOM.parent / f"libfathom_{crate}.so" for crate in ("phantom", "recorder")]


def run(*words, **options):
    done = subprocess.run(words, capture_output=True, text=True, timeout=120, check=False, **{"env": environment(), **options})
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("site", ["lib/python3.12/site-packages", "lib64/python3.10/site-packages", "local/../"])
def test_an_installed_command_finds_what_belongs_to_it(fathom, tmp_path, site):
    """As pip lays it out, and linked from elsewhere, as pipx and `uv tool` do."""
    prefix, package = tmp_path / "prefix", tmp_path / "prefix" / site / "fathom"
    (prefix / "local").mkdir(parents=True)
    (prefix / "bin").mkdir()
    shutil.copytree(ROOT / "python" / "fathom", package)
    (package / "lib").mkdir(exist_ok=True)
    for library in LIBRARIES:
        shutil.copy2(library, package / "lib")
    shutil.copy2(FATHOM, prefix / "bin")
    (tmp_path / "fathom").symlink_to(prefix / "bin" / "fathom")
    said = run(tmp_path / "fathom", "doctor", "--", PYTHON, cwd=tmp_path)
    places = dict(re.findall(r"^ok +(phantom|doorway|recorder) +(.*)$", said, re.M))
    assert os.path.samefile(places["doorway"], package), said
    for name, library in zip(("phantom", "recorder"), LIBRARIES):
        assert os.path.samefile(places[name], package / "lib" / library.name), said


def test_a_command_alone_says_what_is_missing(fathom, tmp_path):
    shutil.copy2(FATHOM, tmp_path / "fathom")
    done = subprocess.run([tmp_path / "fathom", "run", "--", PYTHON, "-V"], capture_output=True, text=True, check=False)
    assert done.returncode == 2 and "`libfathom_phantom.so` is missing beside" in done.stderr
    assert "hint: `make build` makes it in the tree; `pip install .`" in done.stderr


def test_versions_agree():
    def version(path, pattern):
        return re.search(pattern, (ROOT / path).read_text(), re.M).group(1)

    found = {
        version("Cargo.toml", r'^version = "(.*)"'),
        version("pyproject.toml", r'^version = "(.*)"'),
        version("python/fathom/__init__.py", r'^__version__ = "(.*)"'),
    }
    assert len(found) == 1, found


# -- the source -----------------------------------------------------------------------------------------


def test_the_source_distribution(tmp_path):
    """The same tree gives the same bytes; what builds a wheel is in it, and what only tests need is not."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        assert sdist.build(ROOT, tmp_path / name) == "fathom_gpu-0.1.0.tar.gz"
    one, two = (path / "fathom_gpu-0.1.0.tar.gz" for path in (tmp_path / "one", tmp_path / "two"))
    assert one.read_bytes() == two.read_bytes()
    with tarfile.open(one) as tar:
        names = {name.partition("/")[2] for name in tar.getnames()}
        information = tar.extractfile("fathom_gpu-0.1.0/PKG-INFO").read().decode()
    needed = {"pyproject.toml", "Cargo.lock", "packaging/backend.py", "crates/fathom/src/main.rs", "python/fathom/_doorway/entry.py"}
    assert needed <= names, needed - names
    assert not [name for name in names if name.startswith(("tests/", "target", "bench/")) or name.endswith((".so", ".pyc"))]
    for line in ("Name: fathom-gpu", "License-Expression: MIT OR Apache-2.0", "Requires-Python: >=3.10", "# Fathom"):
        assert f"{line}\n" in information, information[:2000]


def test_the_glibc_of_a_wheel_is_a_version():
    assert glibc.wanted({"glibc": "2.28"}) == "2.28" and glibc.wanted(None) is None and glibc.tag("2.28") == "manylinux_2_28"
    with pytest.raises(SystemExit, match="hint: write a version"):
        glibc.wanted({"glibc": "old"})
    assert glibc.newest("manylinux_2_34_x86_64") > glibc.newest("manylinux_2_28_x86_64")
    assert glibc.newest("linux_x86_64") > glibc.newest("manylinux_2_40_x86_64")


def test_a_wheel_that_is_not_what_its_name_says_is_removed(tmp_path, monkeypatch):
    wheel = tmp_path / f"fathom_gpu-0.1.0-py3-none-manylinux_2_28_{platform.machine()}.whl"
    said = f'is consistent with\nthe following platform tag:\n"manylinux_2_34_{platform.machine()}".'
    shown = subprocess.CompletedProcess([], 0, said, "")
    monkeypatch.setattr(glibc.subprocess, "run", lambda *words, **options: shown)
    wheel.touch()
    with pytest.raises(SystemExit, match="auditwheel says manylinux_2_34"):
        glibc.check(wheel, "2.28")
    assert not wheel.exists()
    wheel.touch()
    shown.stdout = said.replace("2_34", "2_17")
    glibc.check(wheel, "2.28")
    assert wheel.exists()


# -- a wheel --------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def wheel():
    path = os.environ.get("FATHOM_WHEEL")
    if not path:
        pytest.skip("no wheel: `make test-wheel` builds one and tests it")
    return Path(path).resolve()


@pytest.fixture(scope="module")
def tool(wheel, tmp_path_factory):
    """An environment without torch, as pipx makes one."""
    folder = tmp_path_factory.mktemp("tool") / "venv"
    run(sys.executable, "-m", "venv", folder)
    run(folder / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-index", "--no-deps", wheel)
    return folder


def test_a_wheel_holds_all_three_and_nothing_else(wheel):
    names = zipfile.ZipFile(wheel).namelist()
    rooms = {"fathom/py.typed", "fathom/_doorway/entry.py", "fathom/_doorway/levers/sgd.py", "fathom/_warm/server.py"}
    assert rooms | {"fathom/lib/libfathom_phantom.so", "fathom/lib/libfathom_recorder.so"} <= set(names)
    assert any(name.endswith(".data/scripts/fathom") for name in names)
    assert not [name for name in names if "__pycache__" in name or name.startswith(("tests", "crates", "target"))]
    assert wheel.stat().st_size < 10 << 20
    assert not (ROOT / "python" / "fathom" / "lib").exists()


def test_every_file_runs_with_an_old_glibc(wheel):
    """By the versions of functions that each file asks for, whatever the wheel is called."""
    assert re.search(r"-manylinux_2_28_(x86_64|aarch64)\.whl$", wheel.name), wheel.name
    asked = {}
    with zipfile.ZipFile(wheel) as packed:
        for name in packed.namelist():
            content = packed.read(name)
            if content.startswith(b"\x7fELF"):
                asked[name] = max(int(minor) for minor in re.findall(rb"\0GLIBC_2\.(\d+)(?=[.\0])", content))
    assert len(asked) == 3 and max(asked.values()) <= 28, asked


def test_the_tool_runs_scripts_of_another_environment(tool, tmp_path):
    """The tool's Python has no torch; the command's has."""
    words = (tool / "bin" / "fathom", "run", "--gpu", "rtx3090", "--json", "report.json", "--", PYTHON, SCRIPTS / "leak.py")
    run(*words, cwd=tmp_path)
    report = json.loads((tmp_path / "report.json").read_text())
    assert report["verdict"] == "fits_if" and report["categories"] and report["findings"]


def test_the_package_of_the_tool(tool, tmp_path):
    text = f"""
import importlib.metadata, fathom
report = fathom.run({str(SCRIPTS / "leak.py")!r}, gpu="rtx3090", python={str(PYTHON)!r})
print(report.verdict, *[point.value for point in importlib.metadata.entry_points(group="pytest11")])
"""
    assert run(tool / "bin" / "python", "-c", text, cwd=tmp_path).split() == ["fits_if", "fathom.pytest_plugin"]
