"""Full disks: for each folder that a run writes to, either the answer is right or an error says what is wrong."""

import contextlib
import os
import shutil
import subprocess
from pathlib import Path

import pytest
from conftest import FATHOM, PYTHON
from faults import case  # noqa: F401

TRAINS = Path(__file__).parent / "trains.py"


@contextlib.contextmanager
def disk(path, size, free):
    """A small disk of which so many bytes are free."""
    path.mkdir(exist_ok=True)
    mount = subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", path], capture_output=True, text=True)
    if mount.returncode != 0:
        pytest.skip(f"FULL DISKS ARE NOT TESTED: no disk can be mounted here: {mount.stderr.strip()}")
    try:
        with open(path / "filler", "wb", buffering=0) as filler, contextlib.suppress(OSError):
            while True:
                filler.write(bytes(4096))
        with open(path / "filler", "r+b") as filler:
            filler.truncate(os.path.getsize(path / "filler") - free)
        yield path
    finally:
        subprocess.run(["umount", "-l", path], check=False)


def assert_refused(case, path):
    """One clear message, and no sign of the script."""
    assert case.wait() == 2, case.stdout
    assert "No space left" in case.stderr and str(path) in case.stderr and "hint: " in case.stderr, case.stderr
    assert "Traceback" not in case.stderr and "panicked" not in case.stderr and "ready" not in case.stdout


def assert_right(case):
    """The script came to its third step, and what it needs is what it needs with room on every disk."""
    assert case.wait() == 0, case.stderr
    assert "Traceback" not in case.stderr and "step 1" in case.stdout, case.stderr
    assert case.answer["verdict"] == "fits" and 1 << 28 < case.answer["peak"]["device_bytes"] < 1 << 30


@pytest.mark.parametrize("verb", ["run", "fit", "sweep"])
def test_no_room_for_the_run(case, verb):
    flags = {"run": (), "fit": ("--memory", "8GiB"), "sweep": ("--memory", "8GiB", "--vary", "width=16,32")}[verb]
    with disk(case.temporary, "1m", 0):
        case.start(verb, *flags, command=[PYTHON, TRAINS, "--width", "16"])
        assert_refused(case, case.temporary)
        case.assert_nothing_is_left()


def test_no_room_in_the_kept_folder(case):
    with disk(case.folder / "kept", "1m", 0) as kept:
        before = sorted(path.name for path in kept.iterdir())
        case.start("run", "--out", kept, command=[PYTHON, TRAINS])
        assert_refused(case, kept)
        assert sorted(path.name for path in kept.iterdir()) == before


@pytest.mark.parametrize("which", ["temporary", "kept"])
def test_room_for_little(case, which):
    """The recording ends where the disk does, the script does not."""
    place = case.temporary if which == "temporary" else case.folder / "kept"
    with disk(place, "1m", 80 << 10):
        flags = ("--out", place) if which == "kept" else ()
        case.start("run", "--memory", "8GiB", "--steps", "0", *flags, command=[PYTHON, TRAINS, "--steps", "40"])
        case.wait()
        if which == "kept" and case.process.returncode == 2:  # the report itself finds no room, and says so
            assert "report.json" in case.stderr and "No space left" in case.stderr and "Traceback" not in case.stderr
        else:
            assert_right(case)


def test_no_room_in_the_cache(case):
    with disk(case.folder / "cache", "1m", 0) as cache:
        case.start("run", command=[PYTHON, TRAINS], env={"FATHOM_CACHE": cache})
        if case.wait() == 2:
            assert str(cache) in case.stderr and "No space left" in case.stderr
        else:
            assert_right(case)
        shutil.rmtree(case.temporary / "fathom-cache", ignore_errors=True)


def test_no_room_for_an_answer(case):
    """The text is shown all the same."""
    with disk(case.folder / "full", "1m", 0) as full:
        case.report = full / "answer.json"
        case.start("run", command=["true"])
        assert case.wait() == 2 and "answer.json" in case.stderr and "No space left" in case.stderr
        case.assert_nothing_is_left()


def test_a_file_in_the_place_of_a_folder(case):
    (case.folder / "file").write_text("mine")
    case.start("run", "--out", case.folder / "file", command=["true"])
    assert case.wait() == 2 and "error: " in case.stderr and "file" in case.stderr
    done = subprocess.run(
        [FATHOM, "run", "--", "true"], env=case.environment(TMPDIR=case.folder / "file"), capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 2 and "hint: set `TMPDIR`" in done.stderr
    assert (case.folder / "file").read_text() == "mine"
