"""What a script sees of the files around it: what it reads, looks for and lists. Fathom remembers a trial by this.

Each process of a trial appends lines of JSON to `sources.<pid>`, a forked one to that of its parent; what they mean is
in `docs/reference/files.md`.

Only in a trial that was forked from the warm process is everything seen, since only there this is installed before the
first line of the script.
"""

import _thread
import atexit
import functools
import gc
import json
import os
import posix
import stat
import sys
import sysconfig

from .. import contract
from . import border
from .native import PACKAGE

# A script that sees more files than this reads a data set: then it is not remembered.
MOST = 20_000

# Of a folder with more names than this, the time of its last change stands for them.
MOST_NAMES = 5_000

# What is there at any moment is no file's content, and these programs say no more than that: libraries ask them which
# machine this is.
SYSTEM = ("/proc/", "/sys/", "/dev/")
OF_THE_MACHINE = ("nvidia-smi", "uname", "ldconfig", "lscpu", "nproc", "hostname")

INSTALLED = tuple({os.path.realpath(path) + "/" for path in sysconfig.get_paths().values()} | {
    path + "/" for path in sysconfig.get_paths().values()
})  # fmt: skip

_seen: set[str] = set()
_made: set[str] = set()
_file = -1
_ignored = ()
_folder = ""
_mirror = None  # where a confined trial writes
_inside: set[int] = set()  # threads that look around for us at the moment


def lost():
    beyond("an error of Fathom's, which is in its output, hid what it reads")


SOURCES = border.Party("what the script reads is not known", ends=True, then=lost)


def install(folder):
    """From now on what the script sees is noted."""
    global _file, _folder, _ignored, _mirror
    confined = sys.modules.get("fathom._doorway.confined")
    _mirror = confined.mirror if confined is not None else None
    name = os.path.join(folder, contract.sources_file(os.getpid()))
    _file = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    _folder = os.path.abspath(folder) + "/"
    _ignored = (*SYSTEM, os.path.realpath(PACKAGE) + "/")
    write("schema", contract.SOURCES_SCHEMA)
    if "fathom_warm" in sys.modules:
        watch_looks()
    else:
        beyond("Python starts anew for it, and what it reads before torch is imported is not seen")
    sys.addaudithook(SOURCES.callback(hook))
    atexit.register(SOURCES.callback(end), os.getpid())


def hook(event, args):
    """Called by Python for whatever it does: it must be quick, and must not fail."""
    handler = HANDLERS.get(event)
    if handler is not None:
        unseen(handler, *args)


def unseen(handler, *args):
    """What we do ourselves is not noted and collects no garbage. An error of ours ends the list: see the border."""
    thread = _thread.get_ident()
    if _file == -1 or thread in _inside:
        return
    _inside.add(thread)
    collects = gc.isenabled()
    gc.disable()
    try:
        handler(*args)
    finally:
        if collects:
            gc.enable()
        _inside.discard(thread)


def write(*line):
    """A name that is no text is no text in JSON either: whoever reads such a list does not take it."""
    try:
        posix.write(_file, (json.dumps(line) + "\n").encode())
    except OSError:  # without its end the list does not count
        stop()


def stop():
    global _file
    _file = -1


def beyond(why):
    if why not in _seen:
        _seen.add(why)
        write("beyond", why)


def path_of(path):
    """Absolute, as text; None for what is no path, and for what is not looked at."""
    if isinstance(path, int):
        return None
    path = os.path.abspath(os.fsdecode(path))
    if _mirror is not None:
        path = _mirror.origin(path)
    if path.startswith(_folder):  # copies of configs, which are known, beside links to what they name
        path = os.path.realpath(path)
    return None if path.startswith((_folder, *_ignored)) or is_made(path) else path


def is_made(path):
    whole = path
    while _made and len(path) > 1:
        if path in _made:
            return True
        path = os.path.dirname(path)
    return _mirror is not None and _mirror.is_own(whole)


def is_hidden(path):
    """Whether the run that this one repeats has made it: a confined trial does not see it."""
    return _mirror is not None and _mirror.is_new(path)


def is_new(kind, path):
    """Whether this is the first sight of it; what comes later may be the script's own doing."""
    sight = f"{kind} {path}"  # a text is no object that Python's garbage collector counts
    if sight in _seen:
        return False
    if MOST <= len(_seen):
        beyond(f"it sees more than {MOST:,} files")
        return False
    _seen.add(sight)
    return True


def opened(path, mode, flags):
    mode = mode if isinstance(mode, str) else ""
    flags = flags if isinstance(flags, int) else 0
    path = path_of(path)
    if path is None:
        return
    if mode[:1] in ("w", "x") or flags & os.O_CREAT and flags & (os.O_EXCL | os.O_TRUNC):
        makes(path)
    elif flags & os.O_ACCMODE != os.O_WRONLY:
        read(path)


def makes(path):
    """What it reads of it later is what it wrote itself."""
    _made.add(path)
    write("made", path)


def made_folder(path, *_):
    """Called before it is made; one that is there already stays what it was."""
    path = path_of(path)
    if path is not None and kind_of(path) == "missing":
        makes(path)


def moved(source, target, *_):
    source, target = path_of(source), path_of(target)
    if source is not None and kind_of(source) != "folder":
        read(source)
    if target is not None:
        makes(target)


def read(path):
    if path.endswith(".pyc") or not is_new("read", path):
        return
    if path.startswith(INSTALLED):
        write("installed", path)
        return
    try:
        now = None if is_hidden(path) else posix.stat(path)
    except OSError:
        now = None
    if now is None:
        write("read", path, None, None)
        return
    if stat.S_ISREG(now.st_mode):
        write("read", path, now.st_size, now.st_mtime_ns)
    elif not stat.S_ISDIR(now.st_mode):
        beyond("it reads a pipe or a device")


def listed(path=None):
    path = path_of("." if path is None else path)
    if path is None or (path + "/").startswith(INSTALLED):
        return
    is_import = sys._getframe(3).f_code.co_filename == "<frozen importlib._bootstrap_external>"
    kind = "modules" if is_import else "list"
    if not is_new(kind, path):
        return
    try:
        names = posix.listdir(path)
    except OSError:
        write("look", path, kind_of(path))
        return
    if is_hidden(path):
        write("look", path, "missing")
        return
    if _mirror is not None and _mirror.births is not None and _mirror.births.may_be_in(path):
        names = [name for name in names if not is_hidden(os.path.join(path, name))]
    if is_import:
        names = [name for name in names if is_module(path, name)]
    write(kind, path, sorted(names) if len(names) <= MOST_NAMES else None)


def is_module(folder, name):
    return name.endswith((".py", ".so", ".pyc")) or os.path.isfile(f"{folder}/{name}/__init__.py")


def kind_of(path, follow=True):
    try:
        now = posix.stat(path) if follow else posix.lstat(path)
    except OSError:
        return "missing"
    if is_hidden(path):
        return "missing"
    if stat.S_ISLNK(now.st_mode):
        return f"link {posix.readlink(path)}"
    if stat.S_ISDIR(now.st_mode):
        return "folder"
    return f"file {now.st_size}" if stat.S_ISREG(now.st_mode) else "other"


def looked(path, follow=True):
    path = path_of(path)
    if path is not None and not path.startswith(INSTALLED) and is_new("look", path):
        write("look", path, kind_of(path, follow))


def watch_looks():
    """`os.stat` raises no audit event, and `os.path.exists` and `Path.is_file` rest on it."""

    for name, follows in (("stat", True), ("lstat", False), ("access", True)):
        theirs = getattr(os, name)
        SOURCES.around(os, name, before=functools.partial(look, follows))
        for supporting in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
            if theirs in supporting:
                supporting.add(getattr(os, name))
    accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)
    if accessor is not None:  # Python 3.10 keeps its own reference
        border.exchange(accessor, "stat", staticmethod(os.stat))


def look(follows, args, kwargs):
    if _mirror is not None and _mirror.is_looking():
        return  # not the script's own look
    given = dict(kwargs or {}, **({"path": args[0]} if args else {}))
    if "path" in given:
        unseen(looked, given["path"], follows and given.get("follow_symlinks", True))


def started(program, words=(), *_):
    name = os.path.basename(os.fsdecode(program)) if isinstance(program, (str, bytes, os.PathLike)) else "a program"
    if name not in OF_THE_MACHINE and not is_about_python(name, words):
        beyond(f"it starts other programs (`{name}`)")


def is_about_python(name, words):
    """`platform.architecture()`, which libraries call, has `file` look at Python itself."""
    last = words[-1] if isinstance(words, (list, tuple)) and words else None
    return name == "file" and isinstance(last, str) and os.path.realpath(last) == os.path.realpath(sys.executable)


def started_by_shell(command):
    started(os.fsdecode(command).split()[0])


def connected(_, address):
    """Processes of one machine talk to each other; what comes from elsewhere may be something else tomorrow."""
    if isinstance(address, tuple):
        resolved(address[0])


def resolved(host, *_):
    host = host.decode(errors="replace") if isinstance(host, bytes) else host
    if host and host not in ("localhost", "::1", os.uname().nodename) and not host.startswith(("127.", "::ffff:127.")):
        beyond(f"it connects to `{host}`")


HANDLERS = {
    "open": opened,
    "os.listdir": listed,
    "os.scandir": listed,
    "os.mkdir": made_folder,
    "os.rename": moved,
    "subprocess.Popen": started,
    "os.exec": started,
    "os.posix_spawn": started,
    "os.spawn": lambda _, program, *__: started(program),
    "os.system": started_by_shell,
    "socket.connect": connected,
    "socket.getaddrinfo": resolved,
    "socket.gethostbyname": resolved,
    "sqlite3.connect": lambda path: opened(path, "r", 0) if path != ":memory:" else None,
}


def end(pid):
    """A forked process ends without a word: its parent's list is the same."""
    if os.getpid() == pid:
        unseen(end_list)


def end_list():
    """Modules are known by their files: those imported before, and those whose bytecode was read instead."""
    files = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    files = [path_of(path) for path in files if isinstance(path, str)]
    installed = [path for path in files if path is not None and path.startswith(INSTALLED)]
    for path in files:
        if path is not None and not path.startswith(INSTALLED):
            read(path)
    folders = [os.path.abspath(path) for path in sys.path if (os.path.abspath(path) + "/").startswith(INSTALLED)]
    write("installed", *sorted({*installed, *folders}))
    write("end")
    stop()
