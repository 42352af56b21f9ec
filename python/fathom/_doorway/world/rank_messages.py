"""What one rank tells another, kept in a folder that the ranks of one run share.

Ranks run one after the other. A rank leaves what only it knows: objects and numbers that it broadcasts or sends. A rank
that needs a message nobody has left yet says so in a file and stops; the launcher then runs the sender first.
"""

import collections
import hashlib
import os
import sys

from ... import contract
from ..texts import as_json
from .unanswered import Unanswered, write


class NotSent(SystemExit):
    """Another rank's data is needed, and that rank has not run yet: the launcher says what happens next."""


class Mailbox:
    def __init__(self, world):
        self.world = world
        self.folder = os.environ.get(contract.LETTERS)
        self.counts = collections.Counter()
        self.is_in_batch = False  # whether messages between two ranks go together

    def next(self, *about):
        """The name of the next message about this: every rank counts in the same order."""
        self.counts[about] += 1
        return " ".join(map(str, (*about, self.counts[about])))

    def leave(self, name, content):
        """Bytes for whoever asks for this name."""
        if not self.folder:
            return
        path = self.path(self.world.rank, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path + ".new", "wb") as file:
            file.write(content)
        os.replace(path + ".new", path)

    def find(self, sender, name):
        """What the sender left, or nothing."""
        try:
            with open(self.path(sender, name), "rb") as file:
                return file.read()
        except OSError:
            return None

    def demand(self, sender, name, call):
        """What the sender left; if it left nothing this rank cannot go on."""
        content = self.find(sender, name)
        if content is None:
            self.stop(sender, name, call)
        return content

    def stop(self, sender, name, call):
        """Says to the launcher, and to the reader, whom this rank waits for, and in which call."""
        awaited = os.path.relpath(self.path(sender, name), self.folder or ".")
        folder = os.environ.get(contract.RUN)
        if folder:
            waits = contract.waits(rank=self.world.rank, sender=sender, letter=awaited, call=call)
            write(os.path.join(folder, contract.waits_file(os.getpid())), as_json(waits))
            sys.stdout.flush()
            raise NotSent(3)
        raise Unanswered(f"{call} needs data of rank {sender}, which {self.world.describe()} does not have")

    def path(self, sender, name):
        return os.path.join(self.folder or "", str(sender), hashlib.sha256(name.encode()).hexdigest()[:32])
