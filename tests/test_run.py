"""`fathom run` as a command: what it says, what it keeps, and its exit codes; 4, of a hang, is in test_hangs.py."""

import json
import os
import re
import signal
import subprocess
import sys

import pytest
from conftest import FATHOM, PYTHON, ROOT, SCRIPTS, environment, sampled
from small_runs import ONE, STEPS, TRAIN, assert_refused, said, train  # noqa: F401

IS_WARM = True

# A function of NVIDIA's libraries that is on the list of what is not simulated.
UNSIMULATED = "cudaMallocArray"


# -- exit codes ---------------------------------------------------------------------------------------


def test_0_fits(cold, train):
    report, done = cold(PYTHON, train, flags=("--gpu", "RTX 3090"))
    assert done.returncode == 0 and said(done) == STEPS
    assert (report["schema"], report["verdict"], report["steps"]) == ("fathom.report/1", "fits", 3)
    assert report["stopped"] and report["gpu"]["name"] == "rtx3090" and report["gpu"]["compute_capability"] == "8.6"
    # The script's output comes first, the report after it.
    assert done.stdout.index("step 1") < done.stdout.index("FITS")
    for line in (r"^FITS  NVIDIA GeForce RTX 3090", r"^peak +allocated", r"^ +reserved .*context", r"^run +3 steps"):
        assert re.search(line, done.stdout, re.M), done.stdout


def test_1_over_budget(fathom):
    for budget, code in (("257MiB", 1), ("258MiB", 0)):  # 2 MiB and the context
        report, done = fathom.code(ONE, flags=("--budget", budget))
        assert (done.returncode, report["exit_code"], report["verdict"]) == (code, code, ["fits", "does_not_fit"][code])
        assert report["budget_bytes"] == int(budget[:3]) << 20 and report["out_of_memory"] is None
        assert ("over the budget of 257.0 MiB" in done.stdout) == bool(code)


def test_2_bad_usage(fathom):
    assert fathom.command("run", "--gpu", "rtx3090").returncode == 2
    assert fathom.command("run", "--no-such-flag", "--", "true").returncode == 2
    assert fathom.command("no-such-verb").returncode == 2
    assert_refused(fathom.command("run", "--memory", "lots", "--", "true"), "lots", "for example")
    assert_refused(fathom.command("run", "--values", "maybe", "--", "true"), "maybe", "write `on` or `off`")


@pytest.fixture(scope="module")
def failed(cold):
    return cold.script("fails")


def test_3_the_script_fails(failed):
    report, done = failed
    assert (done.returncode, report["verdict"], report["exit_code"]) == (3, "script_failed", 3)
    assert "Traceback" in done.stderr and "ValueError: the learning rate is not what it was" in done.stderr
    first = r"SCRIPT FAILED  ValueError: the learning rate is not what it was at tests/scripts/fails.py:\d+ \(exit code 1\)"
    assert re.search(first, done.stdout), done.stdout
    assert report["steps"] == 1 and report["peak"]["allocated_bytes"] > 0


def test_3_the_script_fails_before_it_uses_the_gpu(cold, tmp_path):
    for code, sentence in (
        ("import torch\n\nraise ValueError('no data')\n", "ValueError: no data at train.py:3 (exit code 1)"),
        ("import no_such_module\n", "exit code 1, before it used the GPU; what it printed says why"),
        ("import sys, torch\nsys.exit(2)\n", "exit code 2, before it used the GPU; what it printed says why"),
    ):
        (tmp_path / "train.py").write_text(code)
        report, done = cold(PYTHON, "train.py", cwd=tmp_path)
        assert (report["headline"], done.returncode) == (f"SCRIPT FAILED  {sentence}", 3), done.stdout


def test_3_the_script_exits_with_a_code_or_a_signal(fathom):
    report, done = fathom.code("import sys; sys.exit(7)")
    assert done.returncode == 3 and "exit code 7" in report["failure"]
    report, done = fathom.code("import os; os.kill(os.getpid(), 11)")
    assert done.returncode == 3 and "signal 11" in report["failure"]


def test_interrupted_by_the_user(fathom, tmp_path):
    """Ctrl-C reaches the whole group; the report still comes."""
    path = tmp_path / "report.json"
    words = [FATHOM, "run", "--gpu", "rtx3090", "--json", path, "--", PYTHON, SCRIPTS / "sleeps.py"]
    process = subprocess.Popen(
        words, cwd=ROOT, env=environment(), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    assert process.stdout.readline().startswith("step 0")
    os.killpg(process.pid, signal.SIGINT)
    stdout, stderr = process.communicate(timeout=30)
    report = json.loads(path.read_text())
    assert process.returncode == 4 and "KeyboardInterrupt" in stderr and stderr.count("Traceback") == 1
    assert report["verdict"] == "interrupted" and report["unfinished"]["signal"] == "SIGINT" and report["steps"] == 1
    assert "INTERRUPTED  by SIGINT after" in stdout and "FITS" not in stdout
    assert report["floor_bytes"] is None and "smallest GPU that fits" not in stdout


# -- bad input ----------------------------------------------------------------------------------------


def test_an_unknown_card(fathom):
    assert_refused(fathom.command("run", "--gpu", "rtx3091", "--", "true"), "rtx3091")
    assert "rtx3090" in fathom.command("run", "--gpu", "rtx3091", "--", "true").stderr
    assert "a100-80g" in fathom.command("run", "--gpu", "a100", "--", "true").stderr
    assert_refused(fathom.command("gpus", "voodoo2"), "voodoo2")


def test_a_command_that_is_not_there(fathom, tmp_path):
    assert_refused(fathom.command("run", "--", "no-such-command"), "`no-such-command` was not found", "check the spelling")
    assert_refused(fathom.command("run", "--", "no-such-script.py"), "was not found", "no file of this name is here")
    script = tmp_path / "train.sh"
    script.write_text("python train.py\n")
    assert_refused(fathom.command("run", "--", script), "is not executable", "`chmod +x")
    assert_refused(fathom.command("run", "--", tmp_path), "was not found")


def test_a_python_without_torch(fathom, tmp_path):
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    done = fathom.command("run", "--", tmp_path / "bare/bin/python", "-c", "print('not reached')")
    assert_refused(done, "has no torch", "`")
    assert "pip install --no-deps torch" in done.stderr


def test_a_torch_without_cuda(fathom, tmp_path):
    package = tmp_path / "packages/torch"
    (package / "lib").mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "version.py").write_text("__version__ = '2.15.0+cpu'\ncuda: str | None = None\n")
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "bare"], check=True)
    words = ("run", "--", tmp_path / "bare/bin/python", "-c", "print('not reached')")
    done = fathom.command(*words, env={"PYTHONPATH": tmp_path / "packages"})
    assert_refused(done, "torch 2.15.0+cpu of", "install the CUDA build")


def test_a_report_that_cannot_be_written(fathom, train):
    done = fathom.command("run", "--gpu", "rtx3090", "--json", "/no/such/folder/r.json", "--", PYTHON, train)
    assert done.returncode == 2 and "/no/such/folder/r.json" in done.stderr


def test_a_file_of_settings_with_a_mistake(fathom, tmp_path):
    (tmp_path / "fathom.toml").write_text("gpus = 'rtx3090'\n")
    assert_refused(fathom.command("run", "--", "true", cwd=tmp_path), "fathom.toml", "known keys")


# -- output -------------------------------------------------------------------------------------------


def test_json_on_stdout(fathom):
    done = fathom.command("run", "--gpu", "rtx3090", "--json", "-", "--", PYTHON, "-c", ONE)
    report = json.loads(done.stdout)
    assert report["schema"] == "fathom.report/1" and report["peak"]["allocated_bytes"] == 512
    assert report["peak"]["requested_bytes"] == 4 and report["peak"]["reserved_bytes"] == 2 << 20
    assert report["peak"]["device_bytes"] == (2 << 20) + report["gpu"]["context_bytes"]


def test_quiet_and_verbose(fathom):
    _, done = fathom.code(ONE, flags=("--quiet", "--verbose"))
    assert len(done.stdout.splitlines()) == 1 and done.stdout.startswith("FITS")
    assert "gpu = rtx3090 (flag)" in done.stderr and "steps = " in done.stderr


def test_no_colour_in_a_pipe(fathom):
    for variables in ({"NO_COLOR": None}, {"NO_COLOR": "1", "TERM": "xterm-256color"}):
        done = fathom.command("run", "--gpu", "rtx3090", "--", "true", env=variables)
        assert "NOT MEASURED" in done.stdout and "\x1b" not in done.stdout + done.stderr
        done = fathom.command("run", "--gpu", "rtx3091", "--", "true", env=variables)
        assert "error" in done.stderr and "\x1b" not in done.stdout + done.stderr


def test_colour_on_a_terminal(fathom):
    def on_terminal(**variables):
        main, side = os.openpty()
        process = subprocess.Popen(
            [FATHOM, "run", "--", "true"], cwd=ROOT, stdin=side, stdout=side, stderr=side,
            env=environment({"TERM": "xterm-256color", "CI": None, "NO_COLOR": None, **variables}),
        )  # fmt: skip
        os.close(side)
        process.wait(timeout=30)
        text = b""
        try:
            while chunk := os.read(main, 4096):
                text += chunk
        except OSError:  # how a terminal says that it was closed
            pass
        os.close(main)
        return text.decode()

    assert "\x1b[" in on_terminal()
    plain = on_terminal(NO_COLOR="1")
    assert "NOT MEASURED" in plain and "\x1b" not in plain


def test_files_of_a_run_are_kept_on_request(fathom, tmp_path):
    out = tmp_path / "kept"
    for _ in range(2):  # the second run replaces the files of the first
        report, done = fathom.code(ONE, flags=("--out", out))
        assert done.returncode == 0 and report["peak"]["allocated_bytes"] == 512
    kept = list(out.glob("process.*.json"))
    assert len(kept) == 1 and json.loads(kept[0].read_text())["torch"].startswith("2.")


# Names of users' own files that begin as files of a run do.
USERS_FILES = ["process.py", "process.1234.json", "phantom.blend", "phantom.99", "recording.wav", "recording.1.0.fathom"]
USERS_FILES += ["report.json", "letters/a.txt", "rank-0/best.pt", "rank-12/process.3.json", "data/report.json", "train.py"]


def tree(folder):
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_files_of_the_users_are_never_touched(fathom, tmp_path):
    for name in USERS_FILES:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine\n")
    before = tree(tmp_path)
    for flags in ((), ("--world-size", "2", "--ranks", "all")):
        done = fathom.command("run", *flags, "--out", ".", "--", "true", cwd=tmp_path)
        assert_refused(done, "`.` has files of yours where the run would write its own: `phantom.99`", "name another folder")
        assert "and 3 more" in done.stderr and tree(tmp_path) == before
    # What is not in the way stays beside the files of a run, and of the next one.
    for name in ("process.1234.json", "phantom.99", "recording.1.0.fathom", "report.json", "rank-0/best.pt", "rank-12/process.3.json"):
        (tmp_path / name).unlink()
    (tmp_path / "rank-0").rmdir(), (tmp_path / "rank-12").rmdir()
    rest = tree(tmp_path)
    for flags in (("--world-size", "2", "--ranks", "all"), (), ()):
        done = fathom.command("run", *flags, "--out", ".", "--", PYTHON, "-c", ONE, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        now = tree(tmp_path)
        assert {name: now[name] for name in rest} == rest
        ours = {re.sub(r"\d+", "N", name) for name in now if name not in rest}
        one = {"phantom.N", "phantom.cards", "process.N.json", "recording.N.N.fathom"}
        of_ranks = {f"rank-N/{name}" for name in one | {"fathom-rank"}}
        assert ours == (of_ranks if flags else one) | {"report.json"}


def test_steps(fathom, train):
    report, done = fathom(PYTHON, train, flags=("--gpu", "rtx3090", "--steps", "5"))
    assert report["steps"] == 5 and len(said(done)) == 4 and report["stopped"]


def test_without_a_card_memory_is_unlimited(fathom):
    code = "import torch; x = torch.empty(100 << 30, dtype=torch.uint8, device='cuda')"
    report, done = fathom(PYTHON, "-c", code)
    assert done.returncode == 0 and report["gpu"] is None and report["peak"]["allocated_bytes"] == 100 << 30
    cards = [card["name"] for card in report["fits_on"]]
    assert "h200" in cards and "a100-80g" not in cards and "fits on" in done.stdout
    assert all(card["memory_bytes"] > 100 << 30 for card in report["fits_on"])


# -- settings -----------------------------------------------------------------------------------------


def test_settings_come_from_a_file_the_environment_and_flags(fathom, train):
    (train.parent / "fathom.toml").write_text("gpu = 'rtx4090'\nsteps = 2\n")
    report, _ = fathom(PYTHON, train, cwd=train.parent)
    assert (report["gpu"]["name"], report["steps"]) == ("rtx4090", 2)
    done = fathom.command("run", "--verbose", "--gpu", "t4", "--", "true", cwd=train.parent, env={"FATHOM_STEPS": "4"})
    assert "gpu = t4 (flag)" in done.stderr and "steps = 4 (environment)" in done.stderr and "NOT MEASURED" in done.stdout


@pytest.mark.parametrize("settings", sampled(["expandable_segments:True", "backend:cudaMallocAsync"], ["backend:cudaMallocAsync"]))
def test_settings_of_the_allocator(fathom, settings):
    """Trains, then takes all memory: an out-of-memory error after 50 good steps."""
    code = TRAIN + """
print("backend", torch.cuda.get_allocator_backend(), torch.cuda.max_memory_reserved() >> 20, flush=True)
x = [torch.empty(1 << 30, dtype=torch.uint8, device="cuda") for _ in range(99)]
"""
    report, done = fathom.code(code, env={"PYTORCH_CUDA_ALLOC_CONF": settings}, flags=("--steps", "0"))
    assert report["steps"] == 50, done.stderr
    backend, reserved = re.search(r"^backend (\w+) (\d+)$", done.stdout, re.M).groups()
    assert backend == ("native" if "expandable" in settings else "cudaMallocAsync") and 128 < int(reserved) < 256
    assert (done.returncode, report["verdict"]) == (1, "does_not_fit") and "torch.OutOfMemoryError" in done.stderr
    assert 22 << 30 < report["peak"]["allocated_bytes"] <= report["peak"]["device_bytes"] <= report["gpu"]["memory_bytes"]


@pytest.mark.parametrize("gpu", sampled(["rtx4090", "v100-32g"], ["v100-32g"]))
def test_kernels_of_another_architecture(fathom, gpu):
    """Torch has no kernels of these cards' own architecture: its libraries choose by those it has."""
    code = "import torch; x = torch.randn(99999, device='cuda'); print(x.topk(9)[0].shape, x.cumsum(0).shape, x.sort()[0].shape)"
    report, done = fathom(PYTHON, "-c", code, flags=("--gpu", gpu))
    assert report["verdict"] == "fits" and "torch.Size([9])" in done.stdout, done.stderr


def test_expandable_segments_without_a_card(fathom):
    """PyTorch reserves addresses for a little more than the card has: here more than a process has."""
    env = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}
    report, done = fathom(PYTHON, "-c", TRAIN, env=env)
    assert (report["verdict"], report["steps"]) == ("fits", 3), done.stderr
    assert sum(row["bytes"] for row in report["categories"]) == report["peak"]["allocated_bytes"]


def test_tracebacks_are_the_users_own(failed):
    report, done = failed
    assert "Traceback" in done.stderr and "fathom/" not in done.stderr.split("Traceback")[1]


def test_what_is_not_simulated_says_so(fathom):
    """The scripts of test_scripts.py run with FATHOM_STRICT=1: they call nothing of the kind."""
    code = f"{ONE}; import ctypes; f = ctypes.CDLL(None).{UNSIMULATED}; f(); f(); print('went on')"
    report, done = fathom.code(code)
    assert done.returncode == 0 and "went on" in done.stdout and done.stderr.count(UNSIMULATED) == 1
    assert any("not simulated" in note and UNSIMULATED in note for note in report["notes"]), report["notes"]
    report, done = fathom.code(code, env={"FATHOM_STRICT": "1"})
    assert done.returncode == 3 and "went on" not in done.stdout and UNSIMULATED in done.stderr


def test_a_cache_folder_with_a_blank(fathom, train, tmp_path):
    folder = tmp_path / "a b"
    folder.mkdir()
    variables = {"XDG_CACHE_HOME": folder, "FATHOM_CACHE": None, "TMPDIR": tmp_path}
    report, done = fathom(PYTHON, train, env=variables)
    assert done.returncode == 0 and report["steps"] == 3 and "cannot be preloaded" not in done.stderr, done.stderr


def test_a_new_cache_folder(fathom, train, tmp_path):
    variables = {"FATHOM_CACHE": tmp_path / "cache"}
    report, done = fathom(PYTHON, train, env=variables)
    assert done.returncode == 0 and report["steps"] == 3, done.stderr
    assert list((tmp_path / "cache/stubs").rglob("libcudart.so.*"))
    before = sorted((tmp_path / "cache/stubs").rglob("*"))
    assert fathom.command("doctor", "--", PYTHON, env=variables).returncode == 0
    assert sorted((tmp_path / "cache/stubs").rglob("*")) == before


def test_another_preloaded_library_is_kept(fathom, train):
    """A user's own LD_PRELOAD stays; here the C library itself, which changes nothing."""
    code = "import os; print(os.environ['LD_PRELOAD'].split(':')[-1])"
    report, done = fathom(PYTHON, "-c", code, env={"LD_PRELOAD": "libm.so.6"})
    assert done.returncode == 0 and done.stdout.startswith("libm.so.6\n"), done.stderr
