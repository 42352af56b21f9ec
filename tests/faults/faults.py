"""Faults: whatever happens to a run, nothing of it is left, and the answer is right or says that it is unfinished.

`make test` runs a short version; `make test-faults` runs every signal at ten moments, and a training of twenty minutes.
"""

import json
import os
import random
import shutil
import signal
import subprocess
import tempfile
import time
import uuid
from pathlib import Path

import pytest
from conftest import FATHOM, PYTHON, environment

IS_LONG = os.environ.get("FATHOM_FAULTS") == "long"
SEED = int(os.environ.get("FATHOM_FAULTS_SEED", "18"))

# What takes minutes.
long = pytest.mark.skipif(not IS_LONG, reason="only with `make test-faults`")

# How long whoever is left may take to end: asked to, then killed.
PATIENCE = 12


def processes(token):
    """Numbers and names of living processes that have this word in their environment."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if token.encode() in (entry / "environ").read_bytes():
                    found[int(entry.name)] = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace")
            except OSError:  # gone meanwhile
                pass
    return found


class Case:
    """One command with a temporary folder and a token of its own, by which all that it leaves is found."""

    def __init__(self, folder):
        self.folder = folder
        self.token = f"fathom-faults-{uuid.uuid4().hex}"
        folder.mkdir(parents=True, exist_ok=True)
        # Short: sockets lie there, whose names may have a hundred letters.
        self.temporary = Path(tempfile.mkdtemp(prefix="faults-"))
        self.report = folder / "answer.json"
        self.process = None

    def environment(self, **changes):
        cache = os.environ.get("FATHOM_CACHE")
        return environment({"FAULTS_TOKEN": self.token, "TMPDIR": self.temporary, "FATHOM_CACHE": cache, **changes})

    def start(self, verb, *words, command, env=None, **options):
        """`fathom VERB --json FILE WORDS… -- COMMAND…`, in a session of its own unless told otherwise."""
        line = [FATHOM, verb, "--json", self.report, *words, "--", *command]
        options = {"stdin": subprocess.DEVNULL, "start_new_session": True, "cwd": self.folder, "preexec_fn": hear, **options}
        out, err = (self.folder / name for name in ("stdout", "stderr"))
        with open(out, "w") as output, open(err, "w") as errors:
            self.process = subprocess.Popen(
                list(map(str, line)), env=self.environment(**(env or {})), **{"stdout": output, "stderr": errors, **options}
            )
        return self.process

    def wait(self, timeout=90):
        return self.process.wait(timeout=timeout)

    def kill(self, number):
        self.process.send_signal(number)

    @property
    def stdout(self):
        return (self.folder / "stdout").read_text()

    @property
    def stderr(self):
        return (self.folder / "stderr").read_text()

    @property
    def answer(self):
        return json.loads(self.report.read_text()) if self.report.exists() else None

    def wait_for(self, text, timeout=60):
        """Until the command has printed this."""
        return until(lambda: text in self.stdout, timeout), self.stdout

    def file(self, name, timeout=60):
        """What a file of the case holds, once it does."""
        path = self.folder / name
        assert until(lambda: path.exists() and path.read_text().endswith("\n"), timeout), (name, self.stdout, self.stderr)
        return path.read_text()

    def assert_nothing_is_left(self):
        assert until(lambda: not processes(self.token), PATIENCE), processes(self.token)
        assert until(lambda: not self.left(), PATIENCE), self.left()

    def left(self):
        """Files of ours; libraries of others may leave theirs."""
        return [path.name for path in self.temporary.iterdir() if path.name.startswith("fathom-")]

    def end(self):
        for pid in processes(self.token):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
        if self.process is not None:
            self.process.wait()
        shutil.rmtree(self.temporary, ignore_errors=True)


def hear():
    """A suite that takes an hour is started by `nohup`: what that ignores would be ignored by Fathom, too."""
    signal.signal(signal.SIGHUP, signal.SIG_DFL)


def until(condition, timeout):
    deadline = time.monotonic() + timeout
    while not condition():
        if deadline < time.monotonic():
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def case(tmp_path):
    if not FATHOM.exists() or not PYTHON.exists():
        pytest.skip("run `make build`")
    case = Case(tmp_path)
    yield case
    case.end()


@pytest.fixture
def chance(request):
    """Random, and the same each time; another seed by FATHOM_FAULTS_SEED."""
    return random.Random(f"{SEED} {request.node.name}")

