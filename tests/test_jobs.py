"""`--jobs N`: how many run at once, and that nothing else depends on it."""

import contextlib
import json
import os
import re
import socket
from pathlib import Path

import pytest
from conftest import PYTHON, sampled

IS_WARM = True

# Each run says when it began and when it ended.
SCRIPT = """
import os, socket, sys, time
began = time.time()
import torch
width = int(sys.argv[1]) if len(sys.argv) > 1 else 8
if width == 13:
    sys.exit("thirteen is refused")
weight = torch.zeros(width << 20, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight])
for _ in range(2):
    weight.sum().backward(); optimizer.step()
time.sleep(2)
print("width", width, "rank", os.environ.get("RANK"))
if os.environ.get("RANK") == "1":
    time.sleep(1)
    raise SystemExit("rank 1 gives up")
# A trial may write no file here; a socket takes what it says.
socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(f"{began} {time.time()}".encode(), "times")
"""


class Project(type(Path())):
    """A folder with the script, and with a socket on which runs that came to their end say when they ran."""

    def begin(self):
        self.mkdir(parents=True)
        (self / "train.py").write_text(SCRIPT)
        self.said, self.socket = [], socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.socket.bind(str(self / "times"))
        self.socket.setblocking(False)
        return self

    def spans(self):
        with contextlib.suppress(BlockingIOError):
            while True:
                self.said.append(tuple(map(float, self.socket.recv(100).split())))
        return sorted(self.said)


def at_once(folder):
    """The most runs at one time, of those that came to their end."""
    spans = folder.spans()
    return max(sum(begin <= at < end for begin, end in spans) for at, _ in spans)


def without_times(text):
    """But for seconds and process numbers."""
    text = re.sub(r"\b\d+\.\d s\b", "S", text)
    return re.sub(r'"(wall_seconds|seconds|pid|parent_pid)": [\d.e-]+', r'"\1": 0', text)


@pytest.fixture
def project(tmp_path):
    def make(name):
        return Project(tmp_path / name).begin()

    return make


@pytest.fixture
def run(fathom, tmp_path):
    """Exit code, printed text and JSON of a command, and how many ran at once."""

    def run(*words, folder, command, **env):
        path = tmp_path / "answer.json"
        changes = {"FATHOM_CACHE": tmp_path / "cache", **env}
        words = (*words, "--json", path, *(("--", *command) if command else ()))
        done = fathom.command(*words, cwd=folder, env=changes, timeout=300)
        answer = path.read_text() if path.exists() else done.stderr
        return (done.returncode, without_times(done.stdout), without_times(answer)), done

    return run


SWEEP = ("sweep", "--vary", "width=8,16,32,13", "--set", "width={}", "--gpu", "rtx3090", "--fresh")


@pytest.mark.parametrize("is_warm", sampled([True, False], [True]))
def test_a_sweep_is_the_same_with_any_number_of_jobs(is_warm, run, project):
    folder = project("sweep")
    program = (PYTHON,) if is_warm else ("sh", "-c", f'exec {PYTHON} "$@"', "sh")
    command = (*program, "train.py")
    one, done = run(*SWEEP, "--jobs", "1", folder=folder, command=command)
    assert one[0] == 0 and "thirteen is refused" in done.stdout, done.stdout + done.stderr
    assert ("anew" in done.stdout) != is_warm
    assert at_once(folder) == 1
    three, done = run(*SWEEP, folder=folder, command=command, FATHOM_JOBS="3")
    assert three == one
    assert at_once(folder) == 3, "two by two they would wait for each other"


def test_what_is_remembered_does_not_depend_on_the_jobs(run, project, tmp_path):
    folder, cache = project("remembered"), tmp_path / "cache" / "trials"
    words = ("sweep", "--vary", "width=8,16,32", "--set", "width={}", "--memory", "8GiB")
    command = (PYTHON, "train.py")
    one, _ = run(*words, "--jobs", "1", folder=folder, command=command)
    names = sorted(path.name for path in cache.iterdir())
    for path in cache.iterdir():
        path.unlink()
    three, _ = run(*words, folder=folder, command=command, FATHOM_JOBS="3")
    assert three == one and sorted(path.name for path in cache.iterdir()) == names
    again, done = run(*words, "--jobs", "2", folder=folder, command=command)
    assert "0 run, 3 remembered" in done.stdout and again[0] == 0


def test_ranks_are_the_same_with_any_number_of_jobs(run, project):
    """Ranks 2 and 3 run at the same time as rank 1, which fails: one by one they would not have run."""
    folder = project("ranks")
    words = ("run", "--world-size", "4", "--ranks", "all", "--gpu", "rtx3090")
    found = [run(*words, "--jobs", jobs, folder=folder, command=(PYTHON, "train.py"))[0] for jobs in "13"]
    assert found[0] == found[1]
    code, printed, answer = found[0]
    answer = json.loads(answer)
    assert code == 3 and [row["rank"] for row in answer["ranks"]] == [0, 1]
    assert [line for line in printed.splitlines() if line.startswith("width")] == ["width 8 rank 0", "width 8 rank 1"]


def test_scripts_of_a_check_are_shown_in_their_order(run, project):
    folder = project("check")
    slow, quick = f'command = ["{PYTHON}", "train.py", "16"]', f'command = ["{PYTHON}", "train.py", "13"]'
    entries = [("first", slow), ("second", quick), ("third", slow)]
    text = "".join(f'[[script]]\nname = "{name}"\n{command}\n' for name, command in entries)
    (folder / "fathom.toml").write_text(f'gpu = "rtx3090"\njobs = 3\n\n{text}')
    three, done = run("check", folder=folder, command=())
    assert three[0] == 3 and at_once(folder) == 2, done.stdout + done.stderr
    one, alone = run("check", "--jobs", "1", folder=folder, command=())
    assert one == three and alone.stderr == done.stderr
    assert "second (2 of 3)\nthirteen is refused\nfathom: third (3 of 3)" in done.stderr


@pytest.mark.parametrize("jobs", ["0", "-1", "two", "1.5", ""])
def test_no_number_of_jobs(jobs, run, project):
    words = ("sweep", "--vary", "width=8", "--set", "width={}", "--jobs", jobs)
    (code, _, answer), _ = run(*words, folder=project("wrong"), command=(PYTHON, "train.py"))
    assert code == 2 and f"`jobs` is `{jobs}`" in answer and "hint" in answer and "--jobs 2" in answer


# -- memory --------------------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def limited(size):
    """A function for a process to enter a control group with so many bytes; skips where none can be made."""
    rows = [line.split(":", 2) for line in Path("/proc/self/cgroup").read_text().splitlines()]
    first = next((path for _, kinds, path in rows if "memory" in kinds.split(",")), None)
    path = next((path for _, kinds, path in rows if not kinds), "/") if first is None else first
    mount, limit = ("/sys/fs/cgroup", "memory.max") if first is None else ("/sys/fs/cgroup/memory", "memory.limit_in_bytes")
    group = Path(mount + path) / f"fathom-test-{os.getpid()}"
    try:
        group.mkdir()
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        try:
            (group / limit).write_text(str(size))
        except OSError as error:
            pytest.skip(f"no control group can be limited here: {error}")
        yield lambda: (group / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        for pid in (group / "cgroup.procs").read_text().split():
            (group.parent / "cgroup.procs").write_text(pid)
        group.rmdir()


def test_memory_of_a_control_group_bounds_the_jobs(fathom, project, tmp_path):
    """With 3 GiB, two of the 2 GiB that are assumed are too many; once the first has ended, more run at once."""
    folder = project("memory")
    words = ("sweep", "--jobs", "3", "--vary", "width=8,16,32,64", "--set", "width={}", "--memory", "8GiB", "--fresh")
    with limited(3 << 30) as enter:
        done = fathom.command(*words, "--", PYTHON, "train.py", cwd=folder, preexec_fn=enter, timeout=300)
    assert done.returncode == 0 and done.stdout.count("fits") == 4, done.stdout + done.stderr
    spans = folder.spans()
    assert all(spans[0][1] <= begin for begin, _ in spans[1:]), "the first is alone"
    assert at_once(folder) >= 2, "what it took is known by then"
