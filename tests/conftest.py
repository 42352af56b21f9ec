"""What the tests share: the command, and the Pythons it is tested with.

The tests run in an ordinary interpreter and start `target/release/fathom`. Only tests/on_phantom runs on the
phantom itself, started by test_on_phantom.py.
"""

import fcntl
import itertools
import json
import os
import pickle
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
SCRIPTS = ROOT / "tests" / "scripts"
sys.path.insert(0, str(ROOT / "examples"))  # cases.py
FATHOM = ROOT / "target" / "release" / "fathom"
PYTHON = ROOT / ".venv" / "bin" / "python"
WARM = ROOT / "tests" / "warm.py"

# A shell that starts us in the background has us ignore these, and so all that we start.
for number in (signal.SIGINT, signal.SIGQUIT):
    if signal.getsignal(number) == signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)

# tests/on_phantom needs a CUDA device: it is collected only by the pytest that test_on_phantom.py starts.
IS_ON_PHANTOM = "FATHOM_RUN" in os.environ
collect_ignore = [] if IS_ON_PHANTOM else ["on_phantom"]


def python_of(version):
    """The Python of a torch that is tested besides the default one, `make test` makes them."""
    return ROOT / ".venvs" / version / "bin" / "python"


# Every torch that is tested, the default one first.
PYTHONS = {"2.15.0": PYTHON, "2.13.0": python_of("2.13.0"), "2.6.0": python_of("2.6.0")}


def missing(path, cure):
    return pytest.skip(f"{path.relative_to(ROOT)} is missing: {cure}")


def text_of(printed):
    return (printed or b"").decode(errors="replace")


class Fathom:
    """Runs the command as a user would: from the repository, with pipes, and none of our own settings."""

    def __init__(self, folder):
        self.folder = folder
        self.numbers = itertools.count()

    def environment(self, changes):
        """Of a command that a test starts by itself."""
        return environment(changes)

    def command(self, *words, timeout=120, **options):
        """`fathom WORDS…`"""
        # What this machine compiled before must not help: a compiler that finds all in its cache traces nothing.
        changes = {"TORCHINDUCTOR_CACHE_DIR": self.folder / "compiled", **options.get("env", {})}
        # What is done before it starts is meant for all processes below it: none is a fork of another.
        made = environment(changes) if "preexec_fn" in options else self.environment(changes)
        settings = {"cwd": ROOT, "stdin": subprocess.DEVNULL, **options, "env": made}
        command = [str(FATHOM), *map(str, words)]
        try:
            return subprocess.run(command, capture_output=True, text=True, timeout=timeout, **settings)
        except subprocess.TimeoutExpired as error:
            pytest.fail(f"{error}\n{text_of(error.stdout)}\n{text_of(error.stderr)}")

    def __call__(self, *command, flags=(), **options):
        """`fathom run --json FILE FLAGS… -- COMMAND…`: the report and the finished process."""
        path = self.folder / f"report-{os.getpid()}-{next(self.numbers)}.json"
        done = self.command("run", "--json", path, *flags, "--", *command, **options)
        report = json.loads(path.read_text()) if path.exists() else None
        return report, done

    def script(self, name, *arguments, gpu="rtx3090", flags=(), **options):
        """A script of tests/scripts with the default Python."""
        return self(PYTHON, SCRIPTS / f"{name}.py", *arguments, flags=("--gpu", gpu, *flags), **options)

    def trains(self, name, again=""):
        """A script of tests/scripts that trains, with the abort on every call that is not simulated."""
        path, start = SCRIPTS / f"{name}.py", (PYTHON,)
        if name == "distributed_one":
            start = (PYTHON.parent / "torchrun", "--nproc-per-node", "1")
        flags = ("--gpu", "rtx3090", "--out", self.folder_of(name + again))
        return self(*start, path, flags=flags, env={"FATHOM_STRICT": "1"}, timeout=300)

    def case(self, name):
        """A run of the case studies, by `CASE/NAME` of examples/cases.py."""
        import cases

        case, _, name = name.partition("/")
        run = next(run for run in cases.RUNS[case] if run.name == name)
        words = run.words(case)
        flags, command = words[2 : words.index("--")], words[words.index("--") + 2 :]
        return self(PYTHON, *command, flags=(*flags, "--out", self.folder_of(f"{case}/{name}")), env=run.environment)

    def folder_of(self, name):
        """Where the files of a shared run are, of a script or of a case study."""
        return self.folder / f"run-{name.replace('/', '-')}"

    def inside(self, version, *paths):
        """Tests of tests/on_phantom with one torch."""
        # Short tracebacks: pytest would print arguments, and these may be tensors as large as the card.
        inner = ("-m", "pytest", *paths, "-q", "-p", "no:cacheprovider", "--tb=short", "-rfEX")
        flags = ("--steps", "0", "--gpu", "rtx3090", "--timeout", "600", "--record", "off", "--assume", "least")
        return self(PYTHONS[version], *inner, flags=flags, env={"PYTHONDONTWRITEBYTECODE": "1"}, timeout=620)

    def whole(self, name, *arguments):
        """A script of tests/scripts to its end."""
        return self.script(name, *arguments, flags=("--steps", "0"))

    def code(self, text, gpu="rtx3090", flags=(), arguments=(), **options):
        """`python -c TEXT ARGUMENTS…` with the default Python."""
        return self(PYTHON, "-c", text, *arguments, flags=("--gpu", gpu, *flags), **options)


# Variables that nobody reads while torch is imported.
READ_LATER = ("FATHOM_", "TRITON_", "TORCHINDUCTOR_CACHE_DIR", "SLURM_", "ENVIRONMENT", "HOSTNAME", "TMPDIR")


class Warm(Fathom):
    """The same where the start is not what is tested: scripts, and the processes that trials are forked from, are forks of a
    Python that has imported torch, in a tenth of the time (`warm_start/sitecustomize.py`). Runs with settings that torch may
    read while it is imported are left as they are."""

    def __init__(self, folder, socket):
        super().__init__(folder)
        self.start = {"PYTHONPATH": ROOT / "tests" / "warm_start", "WARM_PYTHON": socket}

    def environment(self, changes):
        return environment({**changes, **self.start} if self.is_forked(changes) else changes)

    def is_forked(self, changes):
        return all(name.startswith(READ_LATER) for name in changes)


class Shared:
    """Runs that several tests look at, each made once, whichever of pytest's workers needs it first."""

    def __init__(self, run, folder):
        self.run = run
        self.folder = folder
        self.done = {}

    def __call__(self, *key):
        if key not in self.done:
            path = self.folder / ("shared-" + "-".join(key).replace("/", "-"))
            with open(f"{path}.lock", "w", encoding="utf-8") as lock:
                fcntl.flock(lock, fcntl.LOCK_EX)
                if not path.exists():
                    path.write_bytes(pickle.dumps(self.run(*key)))
            self.done[key] = pickle.loads(path.read_bytes())
        return self.done[key]


MARKERS = {
    "matrix": "what another test checks, too, with one more script, setting or moment: `make test-matrix`",
    "torches": "what is checked with the default torch, too, and takes long: `make test-torches`",
}


def pytest_configure(config):
    for name, meaning in MARKERS.items():
        config.addinivalue_line("markers", f"{name}: {meaning}")


def sampled(values, sample):
    """Parameters of a test: of all values these are tried in `make test`, the others in `make test-matrix`."""
    assert set(sample) <= set(values), "a sample of what is not there"
    return [value if value in sample else pytest.param(value, marks=pytest.mark.matrix) for value in values]


# Files that take longest: begun first, no worker is left alone with one of them at the end.
LONG = "hangs on_phantom whole unknown document fit_patches need detectors anatomy tuning inference ranks run scripts jobs".split()
LONG = [f"test_{name}" for name in LONG]


def pytest_collection_modifyitems(items):
    def order(item):
        name = item.path.stem
        return LONG.index(name) if name in LONG else len(LONG)

    items.sort(key=order)


# How wide reports are; pytest's workers have a width of their own in their environment.
WIDTH = {"COLUMNS": "200"}


def environment(changes=None):
    """This environment without settings of fathom, of PyTorch and of a runner; a change to None unsets."""
    ours = ("FATHOM_", "PYTORCH_", "CUDA_", "TORCHINDUCTOR_", "GITHUB_")
    clean = {name: value for name, value in os.environ.items() if not name.startswith(ours) or name == "FATHOM_CACHE"}
    for name in ("COLUMNS", "PYTHONPATH", "PYTEST_ADDOPTS", "PYTEST_XDIST_WORKER", "PYTEST_XDIST_WORKER_COUNT"):
        clean.pop(name, None)
    # On two cores that are busy, torch's threads would mostly wait for each other, at full speed. A second and a third run
    # of every script would take the tests twice as long: test_need.py and test_whole.py ask for them.
    # Sentences of reports stay on one line, so that they can be looked for.
    clean = {**WIDTH, "OMP_NUM_THREADS": "1", "FATHOM_VERIFY": "off", "FATHOM_WHOLE_RUN": "off", **clean, **(changes or {})}
    return {name: str(value) for name, value in clean.items() if value is not None}


@pytest.fixture(scope="session")
def reports(request, tmp_path_factory):
    """One for all workers."""
    base = tmp_path_factory.getbasetemp()
    base = base.parent if hasattr(request.config, "workerinput") else base
    path = base / "reports"
    path.mkdir(exist_ok=True)
    return path


@pytest.fixture(scope="session")
def cold(reports):
    """The command, and every script with a Python of its own."""
    if not FATHOM.exists():
        missing(FATHOM, "run `make build`")
    if not PYTHON.exists():
        missing(PYTHON, "run `make build`")
    return Fathom(reports)


@pytest.fixture(scope="session")
def warm(cold, reports):
    """The command, and scripts that are forks of one Python: `tests/warm.py`."""
    folder = tempfile.mkdtemp(prefix="fathom-")
    socket = f"{folder}/warm"  # such a path must be short
    flags = ("--quiet", "--steps", "0", "--record", "off", "--gpu", "rtx3090")
    words = [FATHOM, "run", *flags, "--", PYTHON, WARM, socket]
    with open(f"{socket}.log", "w", encoding="utf-8") as log:
        pipes = {"stdin": subprocess.PIPE, "stdout": log, "stderr": log}
        server = subprocess.Popen(words, cwd=ROOT, env=environment(), start_new_session=True, **pipes)
    while not os.path.exists(socket) and server.poll() is None:
        time.sleep(0.02)
    assert server.poll() is None, Path(f"{socket}.log").read_text()
    yield Warm(reports, socket)
    server.stdin.close()  # it ends with that, also where pytest itself is killed
    server.wait(60)
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def fathom(request, cold):
    """The command. A module that has `IS_WARM` tests something else than how a script starts."""
    return request.getfixturevalue("warm") if getattr(request.module, "IS_WARM", False) else cold


@pytest.fixture(scope="session")
def shared(cold, warm, reports):
    """`shared("script", NAME)`, `shared("whole", NAME, …)`, `shared("case", CASE/NAME)`: the report and the finished process."""

    def run(kind, *words):
        return {"script": warm.trains, "whole": warm.whole, "case": cold.case}[kind](*words)

    return Shared(run, reports)
