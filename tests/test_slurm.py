"""examples/slurm with a stand-in for `sbatch`, and an array with a real Slurm of one node, where one is installed.

docs/guides/slurm.md says what else was tried with a real one.
"""

import getpass
import os
import shutil
import signal
import socket
import subprocess
import time
from pathlib import Path

import pytest
from conftest import FATHOM, PYTHON, ROOT, environment

SLURM = ROOT / "examples" / "slurm"
SBATCH = """#!/bin/bash
echo "$CARD $*" >> "$LOG"
[ "$(wc -l < "$LOG")" -lt "$FAILS_AT" ] || exit 1
wc -l < "$LOG" | sed 's/$/;alpha/;s/^ */10/'
"""


@pytest.fixture
def submit(tmp_path):
    def run(*words, card="a100-80g", fails_at=9):
        program = tmp_path / "sbatch"
        program.write_text(SBATCH)
        program.chmod(0o755)
        log = tmp_path / "log"
        log.write_text("")
        env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "LOG": str(log), "FAILS_AT": str(fails_at)}
        env |= {"CARD": card} if card else {}
        done = subprocess.run([SLURM / "submit.sh", *words], env=env, capture_output=True, text=True, timeout=20, check=False)
        return done, log.read_text().splitlines()

    return run


def test_the_training_job_waits_for_the_check(submit):
    done, calls = submit("train.py", "--name", "a b")
    assert (done.returncode, done.stdout) == (0, "check 101, then train 102\n")
    assert calls == [
        f"a100-80g --parsable {SLURM}/check.sbatch train.py --name a b",
        f"a100-80g --parsable --dependency=afterok:101 --kill-on-invalid-dep=yes {SLURM}/train.sbatch train.py --name a b",
    ]


def test_nothing_follows_a_check_that_was_not_accepted(submit):
    done, calls = submit("train.py", fails_at=1)
    assert done.returncode != 0 and len(calls) == 1
    done, calls = submit("train.py", card=None)
    assert done.returncode != 0 and calls == [] and "set CARD" in done.stderr


@pytest.mark.parametrize("code", [0, 1, 2, 3])
def test_the_job_ends_as_the_check_does(tmp_path, code):
    fathom = tmp_path / "fathom"
    fathom.write_text(f'#!/bin/bash\nprintf "%s|" "$@"\nexit {code}\n')
    fathom.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", "CARD": "rtx3090"}
    words = ["bash", SLURM / "check.sbatch", "train.py", "a b"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout) == (code, "run|--gpu|rtx3090|--|python|train.py|a b|")


# -- an array ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "array, shard",
    [
        ({}, []),
        ({"SLURM_ARRAY_TASK_ID": "2", "SLURM_ARRAY_TASK_COUNT": "4"}, ["--shard", "2/4"]),
        ({"SLURM_ARRAY_TASK_ID": "3", "SLURM_ARRAY_TASK_COUNT": "1", "SHARDS": "4"}, ["--shard", "3/4"]),
    ],
)
def test_a_job_of_an_array_is_a_shard(tmp_path, array, shard):
    fathom = tmp_path / "fathom"
    fathom.write_text('#!/bin/bash\nprintf "%s|" "$@"\nexit 3\n')
    fathom.chmod(0o755)
    env = {"PATH": f"{tmp_path}:{os.environ['PATH']}", **array}
    words = ["bash", SLURM / "sweep.sbatch", "--vary", "n=1,2", "--", "python", "a b"]
    done = subprocess.run(words, env=env, capture_output=True, text=True, timeout=20, check=False)
    assert (done.returncode, done.stdout.split("|")[:-1]) == (3, ["sweep", *shard, *words[2:]])


CONF = """
ClusterName=test
SlurmctldHost={host}(127.0.0.1)
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/munge
AuthInfo=socket={folder}/munge.socket
SlurmctldPort={ports[0]}
SlurmdPort={ports[1]}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
MpiDefault=none
ReturnToService=2
NodeName={host} NodeAddr=127.0.0.1 CPUs=2 RealMemory=16000 State=UNKNOWN
PartitionName=main Nodes={host} Default=YES State=UP
"""


def free_ports(count):
    sockets = [socket.create_server(("127.0.0.1", 0)) for _ in range(count)]
    ports = [each.getsockname()[1] for each in sockets]
    for each in sockets:
        each.close()
    return ports


@pytest.fixture
def slurm(tmp_path):
    """The environment of a cluster of one node, for as long as the test lasts."""
    programs = {name: shutil.which(name, path=f"{os.environ['PATH']}:/usr/sbin") for name in ("munged", "slurmctld", "slurmd")}
    if missing := [name for name, path in programs.items() if path is None]:
        pytest.skip(f"Slurm is not here: {', '.join(missing)}; Debian has it in `slurm-wlm` and `munge`")
    folder = Path(os.environ.get("TMPDIR", "/tmp")) / f"slurm-{os.getpid()}"  # a socket's name must be short
    for name in ("state", "spool"):
        (folder / name).mkdir(parents=True)
    folder.chmod(0o755)
    (folder / "munge.key").write_bytes(os.urandom(1024))
    (folder / "munge.key").chmod(0o400)
    host = socket.gethostname().partition(".")[0]
    text = CONF.format(host=host, user=getpass.getuser(), folder=folder, ports=free_ports(2))
    (folder / "slurm.conf").write_text(text)
    names = ("key-file", "socket", "pid-file", "log-file", "seed-file")
    files = {name: f"--{name}={folder}/munge.{name.partition('-')[0]}" for name in names}
    env = {"SLURM_CONF": str(folder / "slurm.conf"), "PATH": f"{FATHOM.parent}:{os.environ['PATH']}"}
    env = environment({**env, "FATHOM_CACHE": tmp_path / "cache"})
    started = []
    try:
        for words in ([programs["munged"], "--force", "--foreground", *files.values()],
                      [programs["slurmctld"], "-D"], [programs["slurmd"], "-D", "-N", host]):  # fmt: skip
            with open(folder / "out", "ab") as output:
                started.append(subprocess.Popen(words, env=env, stdout=output, stderr=output))
            time.sleep(1)
        assert until(lambda: "idle" in asked(env, "sinfo", "-h", "-o", "%T"), 60), logs(folder)
        yield env
    finally:
        for process in reversed(started):
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait(20)
        shutil.rmtree(folder)


def asked(env, *words):
    return subprocess.run(words, env=env, capture_output=True, text=True, timeout=60, check=False).stdout.strip()


def until(is_so, seconds):
    end = time.time() + seconds
    while not (found := is_so()) and time.time() < end:
        time.sleep(0.5)
    return found


def logs(folder):
    return "\n".join(path.read_text(errors="replace")[-2000:] for path in folder.iterdir() if path.suffix == ".log" or path.name == "out")


def test_an_array_shares_a_sweep_and_the_job_behind_it_has_the_whole(slurm, tmp_path):
    """Two at a time: the shards write one cache at once. The last job runs nothing."""
    words = ("--vary", "depth=1,2,3,4", "--memory", "8GiB", "--", PYTHON, ROOT / "tests/scripts/blocks_flags.py", "--depth", "1")

    def submit(*flags):
        command = ("sbatch", "--parsable", "--cpus-per-task=1", "--mem=2G", *flags, SLURM / "sweep.sbatch", *words)
        done = subprocess.run(list(map(str, command)), env=slurm, cwd=tmp_path, capture_output=True, text=True, timeout=60)
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()

    array = submit("--array=1-4", "--output=shard-%a.out")
    submit(f"--dependency=afterok:{array}", "--kill-on-invalid-dep=yes", "--output=whole.out")
    assert until(lambda: not asked(slurm, "squeue", "-h"), 300), asked(slurm, "squeue")
    outputs = {path.stem: path.read_text() for path in tmp_path.glob("*.out")}
    assert sorted(outputs) == ["shard-1", "shard-2", "shard-3", "shard-4", "whole"], outputs
    whole = outputs["whole"]
    assert "0 run, 4 remembered" in whole and whole.count("fits") == 4 and "not run yet" not in whole, whole
    for number in range(1, 5):
        text = outputs[f"shard-{number}"]
        assert "1 run" in text and f"not run yet (shard {number}/4)" not in text, text
    assert "PARTIAL" in outputs["shard-1"], "it was among the first"
