"""Which files a script read: its own modules, and what it opened. Fathom's cache of trials rests on it."""

import atexit
import json
import os
import sys
import sysconfig

# A script that opens more files than this reads a data set: the first ones stand for it.
FILES = 500

# Of the system and of installed packages: versions stand for these.
NOT_OURS = ("/proc/", "/sys/", "/dev/", *(os.path.realpath(path) + "/" for path in sysconfig.get_paths().values()))

_opened = {}


def install(folder):
    """From now on what is opened for reading is noted; the list is written at the end of the process."""
    sys.addaudithook(note)
    atexit.register(write, folder, os.getpid())


def note(event, args):
    """Called by Python for whatever it does: it must be quick and must not fail."""
    if event == "open" and isinstance(args[0], str) and len(_opened) < FILES:
        mode, flags = args[1], args[2]
        if isinstance(mode, str) and not mode.startswith("r") or isinstance(flags, int) and flags & os.O_ACCMODE:
            return
        _opened[args[0]] = None


def write(folder, pid):
    if os.getpid() != pid:
        return
    opened = list(_opened)
    modules = [getattr(module, "__file__", None) for module in list(sys.modules.values())]
    own = os.path.dirname(os.path.realpath(__file__)) + "/"
    others = (*NOT_OURS, own)
    paths = {path for path in (*opened, *modules) if isinstance(path, str)}
    paths = {os.path.realpath(path) for path in paths if "site-packages" not in path and not path.startswith(others)}
    paths = sorted(path for path in paths if not path.startswith(others))
    paths = [path for path in paths if os.path.isfile(path) and not path.endswith(".pyc")]
    with open(os.path.join(folder, f"sources.{pid}.json"), "w", encoding="utf-8") as file:
        json.dump(paths, file)
