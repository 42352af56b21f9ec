"""Caches that are damaged, and many who write to one at once."""

from pathlib import Path

import pytest
from conftest import PYTHON
from faults import IS_LONG, Case, case, chance  # noqa: F401

TRAINS = Path(__file__).parent / "trains.py"
# A convolution, so that cuDNN is asked: 3 MiB of weights and what its workspace takes.
CONVOLVES = "import torch; torch.nn.Conv2d(64, 64, 3).cuda()(torch.randn(8, 64, 64, 64, device='cuda')); print('done')"


def run(case, cache, *words, code=CONVOLVES):
    """The verdict and the peak of a script with this cache."""
    case.report.unlink(missing_ok=True)
    case.start("run", "--gpu", "rtx3090", *words, command=[PYTHON, "-c", code], env={"FATHOM_CACHE": cache})
    assert case.wait() == 0, case.stderr
    return case.answer["verdict"], case.answer["peak"]["device_bytes"], case.answer["software"]["workspaces"]


def sweep(case, cache):
    words = ("--vary", "width=16,32", "--memory", "8GiB")
    case.start("sweep", *words, command=[PYTHON, TRAINS, "--width", "16"], env={"FATHOM_CACHE": cache})
    assert case.wait() == 0, case.stderr
    return [(point["verdict"], point["peak_reserved_bytes"]) for point in case.answer["points"]]


def is_ours(path):
    """A link leads to a file of somebody else's, such as cuDNN: that one is not to be damaged."""
    return path.is_file() and not path.is_symlink()


def damages(chance):
    """Ways in which a file is damaged."""
    yield "empty", lambda bytes: b""
    yield "cut", lambda bytes: bytes[: chance.randrange(len(bytes))]
    yield "turned", lambda bytes: bytes[: len(bytes) // 2] + bytes[: len(bytes) // 2]
    yield "noise", lambda bytes: chance.randbytes(len(bytes))


def test_a_damaged_cache_changes_no_answer(case, chance, tmp_path):
    """Stubs, cuDNN's answers and remembered trials, each in another way."""
    cache = tmp_path / "cache"
    right, trials = run(case, cache), sweep(case, cache)
    files = [path for path in cache.rglob("*") if is_ours(path)]
    assert {path.relative_to(cache).parts[0] for path in files} >= {"stubs", "trials"}
    for name, damage in damages(chance) if IS_LONG else [("all", None)]:
        for path in filter(is_ours, files):
            how = damage or chance.choice(list(damages(chance)))[1]
            path.write_bytes(how(path.read_bytes() or b"x"))
        assert run(case, cache) == right, name
        assert sweep(case, cache) == trials, name
        assert "panicked" not in case.stderr and "Traceback" not in case.stderr
    case.assert_nothing_is_left()


def test_a_folder_in_the_place_of_a_file(case, tmp_path):
    cache = tmp_path / "cache"
    right = run(case, cache)
    for path in [path for path in cache.rglob("*") if is_ours(path)]:
        path.unlink()
        path.mkdir()
    case.start("run", "--gpu", "rtx3090", command=[PYTHON, "-c", CONVOLVES], env={"FATHOM_CACHE": cache})
    if case.wait() == 0:
        assert case.answer["peak"]["device_bytes"] == right[1]
    else:
        assert case.process.returncode == 2 and str(cache) in case.stderr, case.stderr


@pytest.mark.parametrize("count", [10])
def test_many_cold_starts_at_once(tmp_path, count):
    """None finds another's half-written stubs."""
    code = CONVOLVES if IS_LONG else "print('done')"
    env = {"FATHOM_CACHE": tmp_path / "cache"}
    cases = [Case(tmp_path / str(number)) for number in range(count)]
    try:
        for one in cases:
            one.start("run", "--gpu", "rtx3090", command=[PYTHON, "-c", code], env=env)
        for one in cases:
            assert one.wait(timeout=300) == 0 and "done" in one.stdout, one.stderr
            assert all(line.startswith("fathom: ") for line in one.stderr.splitlines()) and one.answer["verdict"] == "fits"
            one.assert_nothing_is_left()
        assert len({one.answer["peak"] and one.answer["peak"]["device_bytes"] for one in cases}) == 1
        drafts = [path for path in (tmp_path / "cache").rglob("*.*-*") if path.suffix[1:].replace("-", "").isdigit()]
        assert not drafts
    finally:
        for one in cases:
            one.end()
