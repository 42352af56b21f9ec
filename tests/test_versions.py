"""docs/reference/versions.md says what the matrix of versions found, and nothing else; `make test-versions` runs it."""

import importlib.util
import json

from conftest import ROOT

# Another folder of tests has a `run.py` too.
spec = importlib.util.spec_from_file_location("versions_run", ROOT / "tests" / "versions" / "run.py")
matrix = importlib.util.module_from_spec(spec)
spec.loader.exec_module(matrix)


def test_the_page_is_what_was_found():
    results = json.loads(matrix.RESULTS.read_text())
    assert matrix.PAGE.read_text() == matrix.render(results), "run `make test-versions`"


def test_every_version_works_or_is_refused_with_a_sentence():
    results = json.loads(matrix.RESULTS.read_text())
    assert {"2.1.2", "2.4.1", "2.15.0"} <= set(results)
    for version, row in results.items():
        is_old = matrix.number(version) < [2, 4]
        for name in matrix.CHECKS:
            assert "is too old: fathom runs torch 2.4 and newer" in row[name] if is_old else row[name] == matrix.WORKS, version


def test_the_driver_is_found_by_its_name_without_a_number(fathom, tmp_path):
    script = tmp_path / "driver.py"
    script.write_text(
        "import ctypes, os\n"
        "driver, count = ctypes.CDLL('libcuda.so'), ctypes.c_int()\n"
        "print('DRIVER', driver.cuInit(0), driver.cuDeviceGetCount(ctypes.byref(count)), count.value)\n"
        "print('FOLDER', os.environ['TRITON_LIBCUDA_PATH'], *sorted(os.listdir(os.environ['TRITON_LIBCUDA_PATH'])))\n"
    )
    flags = ("--gpu", "rtx3090", "--whole", "off", "--verify", "off")
    _, done = fathom(ROOT / ".venv" / "bin" / "python", script, flags=flags)
    said = [line.split() for line in done.stdout.splitlines() if line.startswith(("DRIVER", "FOLDER"))]
    assert said[0] == ["DRIVER", "0", "0", "1"], done.stdout + done.stderr
    assert {"libcuda.so", "libcuda.so.1"} <= set(said[1][2:]), "Triton links by either name"
    own = tmp_path / "own"
    own.mkdir()
    _, done = fathom(ROOT / ".venv" / "bin" / "python", script, flags=flags, env={"TRITON_LIBCUDA_PATH": str(own)})
    assert f"FOLDER {own}" in done.stdout, "the user's own counts"
