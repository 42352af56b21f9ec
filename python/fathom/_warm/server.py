"""A process that has imported what a script imports, and forks itself once for each trial of that script.

Started as `python [options] server.py SCRIPT`. Requests come as lines of JSON on the standard input, answers leave on
the standard output. The card is not touched before the fork: the phantom reads its settings in the child, so each
trial has a card, a folder and an environment of its own. A child does not come back into the loop: the script becomes
its `__main__`. It ends as Python would end it, but that Python is not taken down: to free every object of a forked
process would copy all of its memory, and take longer than the trial.

Only installed modules are imported here, and none of the user's own: neither from the script's folder nor from one that
PYTHONPATH names. If a file of theirs has the name of a module that was imported here, the script would have got theirs:
then the process says that it cannot serve.
"""

import os
import sys

# What Python itself imports before any script, and the folders where it looks; ours is the first. This file is run
# twice, as `__main__` and as the module that stays: the second one is told.
STARTED_WITH = globals().get("STARTED_WITH") or frozenset(sys.modules)
LOOKS_IN = globals().get("LOOKS_IN") or sys.path[:]

# With `-P` or `-I` Python puts no folder first.
HAS_FIRST = not (getattr(sys.flags, "safe_path", False) or sys.flags.isolated)


def is_own(folder):
    """Whether PYTHONPATH names it as a folder of the user's own; one with installed packages is not."""
    given = "" if sys.flags.ignore_environment else os.environ.get("PYTHONPATH")
    given = given.split(os.pathsep) if given else []
    if "site-packages" in folder or os.path.abspath(folder) not in map(os.path.abspath, given):
        return False
    try:
        return not any(name.endswith(".dist-info") for name in os.listdir(folder))
    except OSError:
        return False


OWN = [folder for folder in LOOKS_IN[HAS_FIRST:] if is_own(folder)]
sys.path[:] = [folder for folder in LOOKS_IN[HAS_FIRST:] if folder not in OWN]

import json  # noqa: E402

HERE = os.path.dirname(os.path.abspath(__file__))


def first_folder(words):
    """The one that Python puts first for a script."""
    return os.getcwd() if words[0] in ("-m", "-c") else os.path.dirname(os.path.realpath(words[0]))


def takes_the_place_of(words):
    """Modules that were imported here and for which the script would have got a file of the user's."""
    import importlib.machinery

    names = set()
    for folder in [first_folder(words)] * HAS_FIRST + OWN:
        try:
            for name in os.listdir(folder):
                is_package = os.path.isfile(os.path.join(folder, name, "__init__.py"))
                endings = tuple(importlib.machinery.all_suffixes())
                names.update([name] * is_package, [name.split(".")[0]] * name.endswith(endings))
        except OSError:
            pass
    return names & ({name.split(".")[0] for name in sys.modules} - STARTED_WITH - {"fathom"})


class Server:
    """Answers requests until the input ends; `serve` returns in a child, with the request that it has to run."""

    def __init__(self):
        import selectors

        self.answers = os.fdopen(os.dup(1), "w", encoding="utf-8")
        os.dup2(2, 1)  # whatever is printed while libraries are imported is no answer
        self.requests = os.fdopen(os.dup(0), "rb", buffering=0)
        self.rest = b""
        self.selector = selectors.DefaultSelector()
        self.selector.register(self.requests, selectors.EVENT_READ)
        self.children = {}  # pidfd -> (pid, number of the request)

    def answer(self, **facts):
        self.answers.write(json.dumps(facts) + "\n")
        self.answers.flush()

    def serve(self):
        while True:
            for key, _ in self.selector.select():
                if key.fileobj is not self.requests:
                    self.reap(key.fileobj)
                    continue
                received = os.read(self.requests.fileno(), 1 << 16)
                if not received:
                    self.end()
                *lines, self.rest = (self.rest + received).split(b"\n")
                for line in lines:
                    request = json.loads(line)
                    if self.fork(request) == 0:
                        return request

    def fork(self, request):
        sys.stdout.flush()
        pid = os.fork()
        if pid == 0:
            self.become_child()
            return 0
        child = os.pidfd_open(pid)
        self.children[child] = (pid, request["number"])
        self.selector.register(child, 1)
        self.answer(number=request["number"], started=pid)
        return pid

    def become_child(self):
        """Nothing of the server stays open in a trial."""
        self.selector.close()
        self.answers.close()
        self.requests.close()
        for child in self.children:
            os.close(child)

    def reap(self, child):
        pid, number = self.children.pop(child)
        self.selector.unregister(child)
        os.close(child)
        _, status = os.waitpid(pid, 0)
        self.answer(number=number, status=status)

    def end(self):
        """The launcher is gone: so are its trials."""
        import signal

        for pid, _ in self.children.values():
            os.kill(pid, signal.SIGKILL)
        os._exit(0)


# Libraries that ask whether there is a card while they are imported: with this, torch asks NVML, which does not touch it.
BY_NVML = "PYTORCH_NVML_BASED_CUDA_CHECK"


def prepare(words, is_alone):
    """Imports torch and, unless it is to be alone, what the script imports besides. Whether the card is untouched."""
    import ctypes
    import gc

    own = os.environ.get(BY_NVML)
    os.environ[BY_NVML] = "1"
    import torch

    if not is_alone:
        import torch._dynamo  # noqa: F401  every optimizer imports it when it is made

        for name in wanted(words):
            try:
                __import__(name)
            except Exception:  # the script itself will meet it, in its own way
                pass
    os.environ.pop(BY_NVML) if own is None else os.environ.__setitem__(BY_NVML, own)
    load_doorway(os.path.dirname(HERE))
    # What libraries made is nobody's garbage: neither a collection nor the recorder's searches look at it in a trial.
    gc.collect()
    gc.freeze()
    return ctypes.CDLL(None).fathom_is_settled() == 0


def wanted(words):
    """Installed modules that the script imports before it does anything else."""
    return load("fathom_warm_imports", f"{HERE}/imports.py").installed_imports(words, first_folder(words))


def adopt(request):
    """The child takes over what the trial asks for: its environment, its output, its levers."""
    os.chdir(request["folder"])
    for name, value in request["environment"].items():
        os.environ.pop(name, None) if value is None else os.environ.__setitem__(name, value)
    output = os.open(request["output"], os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.close(output)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)


def load_doorway(folder):
    """Our package, ready to be opened in a trial: nothing is installed yet."""
    import importlib.util

    place, inside = f"{folder}/__init__.py", [folder]
    spec = importlib.util.spec_from_file_location("fathom", place, submodule_search_locations=inside)
    module = importlib.util.module_from_spec(spec)
    sys.modules["fathom"] = module
    spec.loader.exec_module(module)
    import fathom._doorway.entry
    import fathom._doorway.recorder.recorder
    import fathom._doorway.watch  # noqa: F401


def leave_exit_to_parent():
    """What libraries want done when the process ends is not for a trial to do: folders of theirs are still in use."""
    import weakref

    for finalizer in list(weakref.finalize._registry):
        finalizer.atexit = False


def become_main(words):
    """What Python would have in `__main__` and in `sys` had it been started with these words; the code to run."""
    main = sys.modules["__main__"].__dict__
    kept = {name: main[name] for name in ("__builtins__", "__loader__")}
    main.clear()
    main.update(kept, __name__="__main__", __doc__=None, __package__=None, __spec__=None)
    sys.path[:] = LOOKS_IN
    if HAS_FIRST:
        sys.path[0] = "" if words[0] == "-c" else first_folder(words)
    if words[0] == "-m":
        import runpy

        sys.argv[:] = ["-m", *words[2:]]
        return lambda: runpy._run_module_as_main(words[1])
    if words[0] == "-c":
        sys.argv[:] = ["-c", *words[2:]]
        code = compile(words[1], "<string>", "exec", dont_inherit=True)
    else:
        sys.argv[:] = words
        main["__file__"] = words[0]
        main["__cached__"] = None
        with open(words[0], "rb") as file:
            code = compile(file.read(), words[0], "exec", dont_inherit=True)
    return lambda: exec(code, main)


def run_to_end(script):
    """Runs the script, then what was registered for the exit, and leaves with the exit code that Python would give."""
    import atexit
    import threading

    code = 0
    try:
        script()
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else 0 if end.code is None else 1
        if code == 1 and not isinstance(end.code, int):
            print(end.code, file=sys.stderr)
    except BaseException:
        sys.excepthook(*sys.exc_info())
        code = 1
    threading._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError, AttributeError):  # closed or replaced by the script
            pass
    os._exit(code & 0xFF)


def load(name, path, **known):
    """A file of this folder as a module that knows these names, without making our package known to the process."""
    import importlib.util

    spec = importlib.util.spec_from_file_location(name, path)
    module = importlib.util.module_from_spec(spec)
    module.__dict__.update(known)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def start():
    is_alone = sys.argv[1] == "--alone"
    words = sys.argv[1 + is_alone :]
    server = Server()
    is_untouched = prepare(words, is_alone)
    if not is_untouched and not is_alone:
        # A library asked for the card while it was imported: again, without libraries.
        os.dup2(server.answers.fileno(), 1)
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1 : -len(sys.argv)], __file__, "--alone", *words])
    server.answer(ready=is_untouched and not takes_the_place_of(words))
    request = server.serve()
    adopt(request)
    leave_exit_to_parent()
    sys.modules["fathom"]._doorway.entry.ready()
    run_to_end(become_main(request["words"]))


if __name__ == "__main__":
    # A module of its own: what is in `__main__` makes way for the script.
    load("fathom_warm", os.path.abspath(__file__), STARTED_WITH=STARTED_WITH, LOOKS_IN=LOOKS_IN).start()
