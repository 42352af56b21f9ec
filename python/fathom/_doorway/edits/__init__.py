"""Changes of the user's files, by place in the syntax tree: what a lever does inside the process, as text to write.

An edit is a range of bytes of a file and what stands there instead. The doorway only says which edits a lever means;
`fathom` makes the diff of them, and runs a copy that has it. Where no edit can be made, `Blocked` says which line is in the
way.
"""

from ..border import keep_theirs


class Blocked(Exception):
    """No edit can be made; the line that is in the way, and why."""

    def __init__(self, place, why):
        super().__init__(f"{place}: {why}" if place else why)


class Edits:
    """What one lever means to write."""

    def __init__(self):
        self.all = []
        self.blocked = []

    def note(self, source, begin, end, text):
        edit = {"file": source.path, "begin": begin, "end": end, "text": text}
        if edit not in self.all:
            self.all.append(edit)

    def contain(self, make, *args, **kwargs):
        """`make(self, …)`, which notes all of its edits or none."""
        before = list(self.all)
        try:
            make(self, *args, **kwargs)
        except Blocked as why:
            self.refuse(before, str(why))
        except Exception as error:  # the lever itself acts all the same
            keep_theirs(error)
            self.refuse(before, f"the change cannot be written: {type(error).__name__}: {error}")

    def refuse(self, before, why):
        self.all = before
        if why not in self.blocked:
            self.blocked.append(why)
