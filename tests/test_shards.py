"""`fathom sweep --shard K/N`: jobs that share one sweep through one cache, and what each can say of the whole."""

import json
import subprocess
import time

import pytest
from conftest import FATHOM, PYTHON

IS_WARM = True

# What it needs grows with the width; `program` cannot be remembered.
SCRIPT = """
import os, subprocess, sys, time
import torch
if "program" in sys.argv:
    subprocess.run(["true"])
assert not [name for name in os.environ if name.startswith("SLURM_")], "it sees which job it is"
width = int(next(word for word in sys.argv if word.isdigit()))
if width == 13:
    sys.exit("thirteen is refused")
while width == 77:
    time.sleep(1)
weight = torch.zeros(width << 20, device="cuda", requires_grad=True)
optimizer = torch.optim.SGD([weight])
for _ in range(3):
    weight.sum().backward(); optimizer.step()
"""

VALUES = ("--vary", "width=8,32,64", "--set", "width={}", "--vary", "mode=a,b", "--set", "mode=--mode={}")
MEMORY = ("--memory", "300MiB,1GiB")


@pytest.fixture
def project(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    return tmp_path


@pytest.fixture
def sweep(fathom, project):
    """`fathom sweep` as one job of an array: starts it; then the answer, the text and the exit code."""

    def start(*words, job=None, command=(PYTHON, "train.py")):
        env = {"FATHOM_CACHE": project / "cache", "TMPDIR": "/tmp", "HOSTNAME": f"node-{job}"}
        # What Slurm gives to each job of an array.
        ids = {"SLURM_JOB_ID": 100 + (job or 0), "SLURM_ARRAY_TASK_ID": job or 0, "ENVIRONMENT": "BATCH"}
        env |= {name: str(value) for name, value in ids.items()} if job is not None else {}
        words = [FATHOM, "sweep", "--json", project / f"{job}.json", *words, "--", *command]
        pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
        process = subprocess.Popen([str(word) for word in words], cwd=project, env=fathom.environment(env), **pipes)

        def wait():
            stdout, stderr = process.communicate(timeout=200)
            path = project / f"{job}.json"
            return (json.loads(path.read_text()) if path.exists() else None), stdout + stderr, process.returncode

        wait.process = process
        return wait

    return start


def rows(answer):
    """Values and verdicts on each card, row by row."""
    table = {}
    for point in answer["points"]:
        table.setdefault(tuple(point["values"].values()), []).append(point["verdict"])
    return table


def test_jobs_share_one_sweep(sweep):
    first, text, code = sweep(*VALUES, *MEMORY, "--shard", "1/3", job=1)()
    assert code == 0 and "PARTIAL  2 of 6 rows are known: shards 2/3, 3/3 to come" in text, text
    assert text.count("not run yet (shard 2/3)") == 2 and text.count("not run yet (shard 3/3)") == 2
    assert first["shard"] == {"number": 1, "count": 3, "rows": 6, "rows_missing": 4}
    known = {row for row, verdicts in rows(first).items() if "not_run" not in verdicts}
    assert known == {("a", "8"), ("b", "32")}, "the first and the fourth of a table whose last knob is fastest"
    assert {point["shard"] for point in first["points"] if point["verdict"] == "not_run"} == {"2/3", "3/3"}
    # The others at the same time; one counts from 0.
    second, third = (sweep(*VALUES, *MEMORY, "--shard", shard, job=job) for shard, job in (("2/3", 2), ("0/3", 0)))
    (second, _, code), (third, _, other) = second(), third()
    assert (code, other) == (0, 0)
    for answer in (second, third):
        assert answer["shard"]["rows_missing"] <= 2 and answer["trials"]["remembered"] >= 2
    whole, text, code = sweep(*VALUES, *MEMORY)()
    assert code == 0 and whole["trials"]["run"] == 0 and "shard" not in whole, text
    alone, _, _ = sweep(*VALUES, *MEMORY, "--fresh")()
    assert rows(whole) == rows(alone) and [p["peak_reserved_bytes"] for p in whole["points"]] == [
        p["peak_reserved_bytes"] for p in alone["points"]
    ]
    assert {verdict for verdicts in rows(whole).values() for verdict in verdicts} == {"fits", "does_not_fit"}
    # Any of them shows the whole now, and runs nothing.
    again, text, _ = sweep(*VALUES, *MEMORY, "--shard", "2/3", job=7)()
    assert again["points"] == whole["points"] and again["trials"]["run"] == 0 and "PARTIAL" not in text


def test_what_is_known_is_not_predicted(sweep):
    """Along six values a law would spare two of the runs: a shard makes its own, and the last sweep has them all."""
    values = ("--vary", "width=8,16,24,32,40,48,56,64", "--set", "width={}", "--memory", "4GiB")
    first, text, _ = sweep(*values, "--shard", "1/2", job=1)()
    assert first["trials"]["run"] == 4 and "~" not in text, text
    sweep(*values, "--shard", "2/2", job=2)()
    whole, text, _ = sweep(*values)()
    assert whole["trials"] == {"run": 0, "remembered": 8} and "~" not in text, text
    assert {point["how"] for point in whole["points"]} == {"run"}


def test_a_world_is_not_called_the_fewest_before_smaller_ones_ran(sweep):
    words = ("--vary", "world-size=2,4", "--memory", "4GiB")
    first, text, _ = sweep(*words, "--shard", "2/2", job=2, command=(PYTHON, "train.py", "8"))()
    assert "FEWEST" not in text and "fewest" not in first and "not run yet (shard 1/2)" in text
    second, text, _ = sweep(*words, "--shard", "1/2", job=1, command=(PYTHON, "train.py", "8"))()
    assert "2 cards are the fewest that fit" in text and second["fewest"][0]["ranks"] == 2, text


def test_what_cannot_be_remembered_cannot_be_shared(sweep):
    words = ("--vary", "width=8,13,16,32", "--set", "width={}", "--memory", "4GiB", "--shard", "1/2")
    answer, text, code = sweep(*words, job=1, command=(PYTHON, "train.py"))()
    assert code == 0 and list(rows(answer).values()) == [["fits"], ["not_run"], ["fits"], ["not_run"]]
    answer, text, code = sweep(*words, job=1, command=(PYTHON, "train.py", "program"))()
    assert code == 0 and "not remembered of what this shard ran: 2;" in text, text
    assert "starts other programs (`true`)" in text
    _, text, code = sweep(*words, job=1, command=("sh", "-c", f'exec {PYTHON} train.py "$@"', "sh"))()
    assert code == 2 and "cannot be remembered, so shards cannot share them" in text and "hint" in text, text


def test_a_job_that_is_killed_leaves_what_it_had(sweep, project):
    """And another that began before it sees that in the end."""
    words = ("--vary", "width=8,16,77,32", "--set", "width={}", "--memory", "4GiB", "--jobs", "1")
    first = sweep(*words, "--shard", "1/2", job=1)
    end = time.time() + 60
    while not [path for path in project.glob("cache/trials/*") if path.name[:1] not in ".r"] and time.time() < end:
        time.sleep(0.2)
    first.process.kill()
    assert first()[2] == -9
    answer, text, code = sweep(*words, "--shard", "2/2", job=2)()
    assert code == 0 and list(rows(answer).values()) == [["fits"], ["fits"], ["not_run"], ["fits"]], text
    assert answer["trials"] == {"run": 2, "remembered": 1}


def test_the_exit_code_is_about_what_ran(sweep):
    words = ("--vary", "width=13,8", "--set", "width={}", "--memory", "4GiB")
    answer, text, code = sweep(*words, "--shard", "1/2", job=1)()
    assert code == 3 and "thirteen is refused" in text and "not run yet (shard 2/2)" in text, text
    _, text, code = sweep(*words, "--shard", "2/2", job=2)()
    assert code == 0 and "not run yet (shard 1/2)" in text and "its own output says why" in text, text


@pytest.mark.parametrize(
    "words, message, hint",
    [
        (("--shard", "5/4"), "`--shard 5/4`: there are fewer jobs", "--shard 2/4"),
        (("--shard", "two"), "`--shard two`: a number", "SLURM_ARRAY_TASK_ID"),
        (("--shard", "1/2", "--vary", "batch=1..9", "--set", "batch={}"), "range of `batch`", "name the values"),
        (("--shard", "1/2", "--causes"), "`--causes` needs rows", "without `--shard`"),
        (("--shard", "1/2", "--fresh"), "`--fresh` remembers nothing", "FATHOM_CACHE"),
    ],
)
def test_what_jobs_cannot_share_has_a_cure(words, message, hint, sweep):
    _, text, code = sweep("--vary", "width=8", "--set", "width={}", *words)()
    assert code == 2 and message in text and "hint" in text and hint in text, text
