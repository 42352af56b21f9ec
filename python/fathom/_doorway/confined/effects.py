"""What a confined run does to the world besides files: it may come to code that uploads a model, hands in a job or switches
a machine off. Such code finds no network and starts no programs.

Connections are refused by the kernel as well, where it can. What the script does before its first step, the plain run has
done before: programs that it starts until then are started.
"""

import os
import sys

from .. import border
from ..file_owner import is_library
from ..sources import OF_THE_MACHINE, connected, unseen

EFFECTS = border.Party("other programs may be started", passes=(PermissionError,))

LOCAL = ("localhost", "::1")

STARTS = ("subprocess.Popen", "os.exec", "os.posix_spawn", "os.spawn")


class Effects:
    def __init__(self):
        self.watch = None  # follows the steps, as soon as the card is used
        self.refused = []

    def install(self):
        sys.addaudithook(EFFECTS.callback(self.hook))
        EFFECTS.instead(os, "system", self.shell)

    def hook(self, event, args):
        if event == "socket.connect" and isinstance(args[1], tuple) and not is_local(args[1][0]):
            unseen(connected, *args)  # what it would have got is not known: such a trial is not remembered
            self.refuse(f"a connection to `{args[1][0]}`")
        elif event in STARTS and self.is_new() and not is_by_library() and name_of(args[0]) not in OF_THE_MACHINE:
            self.refuse(f"the program `{name_of(args[0])}`")

    def shell(self, theirs):
        def call(command):
            program = name_of(os.fsdecode(command).split()[0])
            if not self.is_new() or is_by_library() or program in OF_THE_MACHINE:
                return theirs(command)
            self.note(f"the command `{program}`")
            return 1 << 8  # it failed; few scripts ask

        return call

    def is_new(self):
        """Whether the plain run has not come here."""
        return self.watch is not None and self.watch.steps_taken() > 0

    def note(self, what):
        if what not in self.refused and len(self.refused) < 8:
            self.refused.append(what)

    def refuse(self, what):
        self.note(what)
        raise border.of_script(PermissionError(f"a run that Fathom repeats is not allowed {what}"))


def is_local(host):
    host = host.decode(errors="replace") if isinstance(host, bytes) else str(host)
    return host in LOCAL or host.startswith(("127.", "::ffff:127."))


def name_of(program):
    return os.path.basename(os.fsdecode(program)) if isinstance(program, (str, bytes, os.PathLike)) else "another one"


def is_by_library():
    """Whether a library starts it, as a compiler does, and not the script itself."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        if "site-packages" in name and is_library(name) and "/fathom/" not in name:
            return True
        if not is_library(name):
            return False
        frame = frame.f_back
    return True
