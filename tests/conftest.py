"""What the tests share: the command, and the Pythons it is tested with.

The tests run in an ordinary interpreter and start `target/release/fathom`. Only tests/on_phantom runs on the
phantom itself, started by test_on_phantom.py.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "tests" / "scripts"
FATHOM = ROOT / "target" / "release" / "fathom"
PYTHON = ROOT / ".venv" / "bin" / "python"

# tests/on_phantom needs a CUDA device: it is collected only by the pytest that test_on_phantom.py starts.
IS_ON_PHANTOM = "FATHOM_RUN" in os.environ
collect_ignore = [] if IS_ON_PHANTOM else ["on_phantom"]


def python_of(version):
    """The Python of a torch that is tested besides the default one, `make build-torches` makes them."""
    return ROOT / ".venvs" / version / "bin" / "python"


def missing(path, cure):
    return pytest.skip(f"{path.relative_to(ROOT)} is missing: {cure}")


class Fathom:
    """Runs the command as a user would: from the repository, with pipes, and none of our own settings."""

    def __init__(self, folder):
        self.folder = folder
        self.count = 0

    def command(self, *words, timeout=120, **options):
        """`fathom WORDS…`"""
        return subprocess.run(
            [str(FATHOM), *map(str, words)],
            capture_output=True,
            text=True,
            timeout=timeout,
            **{"cwd": ROOT, "stdin": subprocess.DEVNULL, **options, "env": environment(options.get("env"))},
        )

    def __call__(self, *command, flags=(), **options):
        """`fathom run --json FILE FLAGS… -- COMMAND…`: the report and the finished process."""
        self.count += 1
        path = self.folder / f"report{self.count}.json"
        done = self.command("run", "--json", path, *flags, "--", *command, **options)
        report = json.loads(path.read_text()) if path.exists() else None
        return report, done

    def script(self, name, *arguments, gpu="rtx3090", flags=(), **options):
        """A script of tests/scripts with the default Python."""
        return self(PYTHON, SCRIPTS / f"{name}.py", *arguments, flags=("--gpu", gpu, *flags), **options)

    def code(self, text, gpu="rtx3090", flags=(), **options):
        """`python -c TEXT` with the default Python."""
        return self(PYTHON, "-c", text, flags=("--gpu", gpu, *flags), **options)


def environment(changes=None):
    """This environment without settings of fathom and of PyTorch; a change to None unsets."""
    ours = ("FATHOM_", "PYTORCH_", "CUDA_", "TORCHINDUCTOR_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours) or name == "FATHOM_CACHE"}
    clean.pop("PYTHONPATH", None)
    clean.update(changes or {})
    return {name: str(value) for name, value in clean.items() if value is not None}


@pytest.fixture(scope="session")
def fathom(tmp_path_factory):
    if not FATHOM.exists():
        missing(FATHOM, "run `make build`")
    if not PYTHON.exists():
        missing(PYTHON, "run `make build`")
    return Fathom(tmp_path_factory.mktemp("reports"))
