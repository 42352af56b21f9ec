"""What speed and scale need of processes: a warm one that forks, some that take turns, and how much memory a tree of
them has."""

import json
import os
import subprocess
import tempfile
import time
from pathlib import Path

import tools
from result import ROOT


class Warm:
    """`python/fathom/_warm/server.py`, the process that `fathom sweep` and `fathom fit` fork their trials from, for one model."""

    def __init__(self, model):
        self.name, *self.sizes = model.split(":")
        self.script = str(tools.MODELS / f"{self.name}.py")
        self.folder = tempfile.TemporaryDirectory()
        words = [str(tools.python()), str(ROOT / "python" / "fathom" / "_warm" / "server.py"), self.script]
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
        self.process = subprocess.Popen(words, env=tools.bare(), text=True, cwd=self.folder.name, **pipes)
        assert json.loads(self.process.stdout.readline()) == {"ready": True}, "a library touched the card"

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.wait()
        self.folder.cleanup()

    def estimate(self):
        """Seconds from the request to the end of the forked process, and the peak; the recording is written then."""
        folder = tempfile.mkdtemp(dir=self.folder.name)
        settings = {"FATHOM_RUN": folder, "FATHOM_STEPS": "2", "FATHOM_RECORD": "on", "FATHOM_VALUES": "on"}
        request = {"number": 0, "words": [self.script, *self.sizes], "environment": settings}
        request |= {"folder": str(ROOT), "output": f"{folder}/output"}
        began = time.perf_counter()
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        started, ended = (json.loads(self.process.stdout.readline()) for _ in range(2))
        seconds = time.perf_counter() - began
        if ended["status"] != 0:
            raise SystemExit(f"error: {self.script} failed in the warm process\n{Path(folder, 'output').read_text()}")
        assert list(Path(folder).glob("recording.*.fathom")), "nothing was recorded"
        seen = json.loads(Path(folder, f"process.{started['started']}.json").read_text())
        return seconds, seen["devices"][0]["allocated"]["bytes"]


class Stepper:
    """An estimate in a process of its own, which takes steps when it is told to."""

    def __init__(self, tool, model):
        command, environment = tools.estimating(tool, model, "told")
        self.lines, self.errors = [], tempfile.TemporaryFile("w+")  # noqa: SIM115  it lives as long as this
        pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self.errors}
        self.process = subprocess.Popen(command, env=environment, text=True, **pipes)
        self.is_running = self.wait()

    def wait(self):
        """Until it is ready; whether it is."""
        for line in self.process.stdout:
            if line == "READY\n":
                return True
            self.lines.append(line)
        return False

    def step(self, count):
        if self.is_running:
            self.process.stdin.write(f"{count}\n")
            self.process.stdin.flush()
            self.is_running = self.wait()

    def end(self):
        """Its answer."""
        output, _ = self.process.communicate()
        self.errors.seek(0)
        return tools.answer("".join(self.lines) + output, self.errors.read(), self.process.returncode)


def taking_turns(model, steps, rounds, seconds):
    """The answers of several tools, each so many steps in each round: what else the machine does hits all alike.

    After so many seconds no round begins but the second: the first step of each is no measure.
    """
    steppers, began = {tool: Stepper(tool, model) for tool in steps}, time.monotonic()
    for number in range(rounds):
        if number < 2 or time.monotonic() - began < seconds:
            for tool, stepper in steppers.items():
                stepper.step(steps[tool])
    return {tool: stepper.end() for tool, stepper in steppers.items()}


def descendants(pid):
    """This process and all below it."""
    yield pid
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return
    for child in children:
        yield from descendants(int(child))


def proportional(pid):
    """Resident bytes of a process, pages that several share divided among them."""
    try:
        lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    except OSError:
        return 0
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("Pss:")), 0)


def watched(command, environment=None):
    """Runs a command: its output, seconds, the peak of its whole tree as sampled, and that of its largest process.

    The second is the kernel's own mark and exact; the first is looked at twenty times a second.
    """
    began, most = time.perf_counter(), 0
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(command, env=environment, stdout=output, stderr=subprocess.DEVNULL)
        while process.poll() is None:
            most = max(most, sum(map(proportional, descendants(process.pid))))
            time.sleep(0.05)
        output.seek(0)
        return output.read(), time.perf_counter() - began, most


def largest(command, environment=None):
    """As `watched`, in a process of its own, so that the kernel's mark is that of this command alone."""
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        import resource

        answer = watched(command, environment)
        mark = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
        with os.fdopen(writer, "w") as pipe:
            json.dump([*answer, mark], pipe)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader) as pipe:
        text = pipe.read()
    os.waitpid(pid, 0)
    return json.loads(text)
