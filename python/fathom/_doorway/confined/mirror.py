"""Where a confined run writes: a mirror of the file system in the trial's own folder.

Paths are absolute, with links of their folder followed. What was written lies in the mirror, what was removed is only
said to be gone, and everything else is read where it is. What the run that it repeats has made is not there yet.
"""

import contextlib
import errno
import os
import shutil
import threading

from .. import border
from ..native import born

# A file that is changed in place is copied first; a larger one is left alone, and changing it fails.
MOST_COPIED = 1 << 30

# Nothing more is written to a disk that has less left.
LEFT_FREE = 1 << 30


class Births:
    """What the first run has made was born while it ran: a run that repeats it must not find it.

    A script that makes its folder and fails if there is one, or goes on from the checkpoint that it finds, would do something
    else the second time.
    """

    def __init__(self, since, until):
        self.since, self.until = since, until
        self.folders = {}  # whether they, or one around them, are new

    def is_new(self, place):
        """Whether it, or a folder that it lies in, was born in that time."""
        return self.is_born(place) or self.is_new_folder(os.path.dirname(place))

    def is_new_folder(self, folder):
        known = self.folders.get(folder)
        if known is None:
            above = os.path.dirname(folder)
            known = self.folders[folder] = self.is_born(folder) or (above != folder and self.is_new_folder(above))
        return known

    def is_born(self, place):
        when = born(place)
        return when is not None and self.since <= when <= self.until

    def may_be_in(self, folder):
        """Whether names in a folder have changed since: a large data set is not looked through for nothing."""
        try:
            return self.since <= os.stat(folder).st_mtime
        except OSError:
            return False


class Mirror:
    def __init__(self, root, writable, births=None):
        self.root = root
        self.births = births
        self.writable = tuple(path.rstrip("/") + "/" for path in writable)
        self.gone = set()  # what the script removed, and is still there
        self.inside = threading.local()  # our own look at files is not mirrored

    @contextlib.contextmanager
    def unmirrored(self):
        was = getattr(self.inside, "is_on", False)
        self.inside.is_on = True
        try:
            yield
        finally:
            self.inside.is_on = was

    def is_looking(self):
        return getattr(self.inside, "is_on", False)

    def place(self, path):
        """The absolute path, or `None` if it is no path, or one where writing is allowed."""
        if self.is_looking() or not isinstance(path, (str, bytes, os.PathLike)):
            return None
        with self.unmirrored():
            whole = os.path.abspath(os.fsdecode(path))
            folder, name = os.path.split(whole)
            whole = os.path.join(os.path.realpath(folder), name) if name else whole
        return None if (whole + "/").startswith(self.writable) else whole

    def image(self, place):
        return self.root + place

    def origin(self, path):
        """Of what the mirror holds, the path that the script gave it."""
        return path[len(self.root) :] if path.startswith(self.root + "/") else path

    def is_new(self, place):
        """Whether the first run has made it: here it is not there yet."""
        return self.births is not None and self.births.is_new(place)

    def is_own(self, place):
        """Whether the script itself has written or removed it. The mirror has folders around what was written, too."""
        with self.unmirrored():
            image = self.image(place)
            if os.path.isdir(image) and os.path.isdir(place) and not self.is_new(place):
                return self.is_removed(place)
            return os.path.lexists(image) or self.is_removed(place)

    def is_gone(self, place):
        """Whether it is not there for the script, though it is."""
        return self.is_removed(place) or self.is_new(place)

    def is_removed(self, place):
        """Whether it, or a folder that it was in, was removed."""
        if not self.gone:
            return False
        while place not in self.gone:
            above = os.path.dirname(place)
            if above == place:
                return False
            place = above
        return True

    def seen_at(self, place):
        """Where the script finds what it looks for there."""
        with self.unmirrored():
            image = self.image(place)
            return image if os.path.lexists(image) or self.is_gone(place) else place

    def is_there(self, place):
        with self.unmirrored():
            return os.path.lexists(self.seen_at(place))

    def written_at(self, place, keeps):
        """Where the script writes; with `keeps`, what is there is the beginning."""
        with self.unmirrored():
            image = self.image(place)
            if os.path.lexists(image):
                return image
            if not os.path.isdir(self.seen_at(os.path.dirname(place))):
                return place  # it fails as it would
            os.makedirs(os.path.dirname(image), exist_ok=True)
            if shutil.disk_usage(self.root).free < LEFT_FREE:
                raise border.of_script(OSError(errno.ENOSPC, "a run that Fathom repeats does not fill the disk", place))
            if keeps and not self.is_gone(place) and os.path.isfile(place) and os.path.getsize(place) <= MOST_COPIED:
                shutil.copyfile(place, image)
            return image

    def remove(self, place):
        """Of the real thing only the name goes, and only for the script."""
        if os.path.lexists(place):
            self.gone.add(place)

    def is_mixed(self, place):
        """Whether a folder is not as it lies there; else it is listed as ever."""
        with self.unmirrored():
            is_changed = self.births is not None and self.births.may_be_in(place)
            return is_changed or bool(self.gone) or os.path.isdir(self.image(place))

    def names(self, place):
        """Of a folder, as the script sees it: in the order of the file system, what is in the mirror behind it."""
        with self.unmirrored():
            image = self.image(place)
            mirrored = os.listdir(image) if os.path.isdir(image) else []
            real = os.listdir(place) if os.path.isdir(place) and not self.is_gone(place) else []
            kept = [name for name in real if not self.is_gone(os.path.join(place, name))]
        return list(dict.fromkeys([*kept, *mirrored]))
