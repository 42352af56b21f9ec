"""`fathom.run`: the command, started from Python. It reads the command's JSON and analyses nothing."""

from __future__ import annotations

import contextlib
import difflib
import fcntl
import inspect
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable, Mapping, Sequence
from typing import IO, Any

from . import binary, contract
from .report import Report

# How long a run gets between the request to end and its end.
GRACE = 10

CALL_FUNCTION = os.path.join(binary.PACKAGE, "call_function.py")


class Error(Exception):
    """What `fathom` refused to do, and the cure."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(f"{message}\nhint: {hint}" if hint else message)
        self.hint = hint


def run(
    target: str | os.PathLike[str] | Sequence[str] | Callable[..., object],
    *arguments: Any,
    kwargs: Mapping[str, Any] | None = None,
    gpu: str | None = None,
    memory: str | int | None = None,
    used: str | int | None = None,
    steps: int | None = None,
    budget: str | int | None = None,
    baseline: str | os.PathLike[str] | None = None,
    margin: str | None = None,
    save_baseline: str | os.PathLike[str] | None = None,
    timeout: int | None = None,
    values: bool = True,
    record: bool = True,
    ask: Sequence[str] = (),
    python: str | os.PathLike[str] | None = None,
    cwd: str | os.PathLike[str] | None = None,
    env: Mapping[str, str] | None = None,
    out: str | os.PathLike[str] | None = None,
    **unknown: Any,
) -> Report:
    """Runs a script, a command or a function in a fresh process on a phantom GPU.

    `target` is a Python file, a list of words such as `["torchrun", "train.py"]`, or a function, which is
    called as `target(*arguments, **kwargs)`. All other names are options of Fathom's, those of `fathom run`;
    `python` is the interpreter, this one unless told otherwise, and `out` keeps the files of the run in a folder.

    A run that does not fit, or fails for another reason, is a report like any other; what cannot be run raises `Error`.
    """
    for name in unknown:
        raise TypeError(no_option(name, callable(target)))
    if contract.RUN in os.environ:
        raise Error("fathom.run was called inside a run", 'in a script, put it under `if __name__ == "__main__":`')
    program = binary.find()
    if program is None:
        raise Error("the command `fathom` was not found", "`make build` makes it; a wheel brings it along")
    folder, owner = temporary() if out is None else (os.path.abspath(out), None)
    flags = {
        "gpu": gpu,
        "memory": size(memory),
        "used": size(used),
        "steps": steps,
        "budget": size(budget),
        "baseline": baseline,
        "margin": margin,
        "save-baseline": save_baseline,
        "timeout": timeout,
        "values": None if values else "off",
        "record": None if record else "off",
    }
    typed = [word for name, value in flags.items() if value is not None for word in (f"--{name}", str(value))]
    asked = [word for question in ask for word in ("--ask", question)]
    try:
        command = words_of(target, arguments, dict(kwargs or {}), os.fspath(python or sys.executable), folder)
        words = [program, "run", "--quiet", "--out", folder, *typed, *asked, "--", *command]
        code, output = start(words, cwd, {**os.environ, **(env or {})})
        if code == 2:
            raise refusal(output)
        with open(os.path.join(folder, "report.json"), encoding="utf-8") as file:
            report = Report.of(json.load(file), output, folder)
    except BaseException:
        if owner is not None:
            remove(folder, owner)
        raise
    if owner is not None:
        weakref.finalize(report, remove, folder, owner)
    return report


def no_option(name: str, is_function: bool) -> str:
    """What to write instead of a keyword that is not an option."""
    options = [each for each in inspect.signature(run).parameters if each not in ("target", "arguments", "unknown")]
    near = difflib.get_close_matches(name, options, n=1)
    if near:
        return f"fathom.run has no option {name!r}; did you mean {near[0]!r}?"
    cure = f"keywords of your function go into kwargs={{{name!r}: …}}" if is_function else f"options are {', '.join(options)}"
    return f"fathom.run has no option {name!r}; {cure}"


def size(value: str | int | None) -> str | None:
    """As the command reads it: whole numbers are bytes, as everywhere in Python."""
    return f"{value}B" if isinstance(value, int) else value


def temporary() -> tuple[str, IO[str]]:
    """A folder and its owner's lock: if this process is killed, the next run of fathom removes it (`session/folder.rs`)."""
    folder = tempfile.mkdtemp(prefix="fathom-api-")
    owner = open(os.path.join(folder, f"{contract.OWNER_FILE}.new"), "w", encoding="utf-8")  # noqa: SIM115  it holds the lock
    with contextlib.suppress(OSError):  # where files cannot be locked nothing is removed either
        fcntl.flock(owner, fcntl.LOCK_SH)
    with open("/proc/sys/kernel/random/boot_id", encoding="utf-8") as boot:
        owner.write(f"{contract.FOLDER_SCHEMA}\n{boot.read().strip()}\n{os.getpid()}\n")
    owner.flush()
    os.rename(owner.name, os.path.join(folder, contract.OWNER_FILE))
    return folder, owner


def remove(folder: str, owner: IO[str]) -> None:
    shutil.rmtree(folder, ignore_errors=True)
    owner.close()


def words_of(target: Any, arguments: tuple[Any, ...], keywords: dict[str, Any], python: str, folder: str) -> list[str]:
    """The command of a target."""
    if callable(target):
        from . import pack_function

        return [python, CALL_FUNCTION, pack_function.pack(target, arguments, keywords, os.path.join(folder, pack_function.FOLDER))]
    if keywords:
        raise TypeError("kwargs are for a function: a script gets words, such as `fathom.run('train.py', '--batch', 8)`")
    if isinstance(target, (str, os.PathLike)):
        return [python, os.fspath(target), *map(str, arguments)]
    return [*map(str, target), *map(str, arguments)]


def start(words: list[str], cwd: Any, env: Mapping[str, str]) -> tuple[int, str]:
    """Exit code, and what was printed. An interrupt ends the whole run, as it would in a terminal."""
    process = subprocess.Popen(
        words,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=True,
        encoding="utf-8",
        errors="replace",
    )
    try:
        output, _ = process.communicate()
    except BaseException:
        os.killpg(process.pid, signal.SIGINT)
        try:
            process.communicate(timeout=GRACE)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
        raise
    return process.returncode, output


def refusal(output: str) -> Error:
    """The command's own words."""
    _, _, text = ("\n" + output).rpartition("\nerror: ")
    message, _, hint = (text or output).partition("\n\nhint: ")
    return Error(message.strip(), hint.strip())
