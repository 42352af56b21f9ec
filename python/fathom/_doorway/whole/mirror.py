"""Where a shortened training writes: a mirror of the file system in the trial's own folder.

Paths are absolute, with links of their folder followed. What was written lies in the mirror, what was removed is only
said to be gone, and everything else is read where it is.
"""

import contextlib
import errno
import os
import shutil
import threading

from .. import border

# A file that is changed in place is copied first; a larger one is left alone, and changing it fails.
MOST_COPIED = 1 << 30

# Nothing more is written to a disk that has less left.
LEFT_FREE = 1 << 30


class Mirror:
    def __init__(self, root, writable):
        self.root = root
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

    def is_gone(self, place):
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
                raise border.of_script(OSError(errno.ENOSPC, "a shortened training does not fill the disk", place))
            if keeps and not self.is_gone(place) and os.path.isfile(place) and os.path.getsize(place) <= MOST_COPIED:
                shutil.copyfile(place, image)
            return image

    def remove(self, place):
        """Of the real thing only the name goes, and only for the script."""
        if os.path.lexists(place):
            self.gone.add(place)

    def names(self, place):
        """Of a folder, as the script sees it."""
        with self.unmirrored():
            image = self.image(place)
            mirrored = os.listdir(image) if os.path.isdir(image) else []
            real = os.listdir(place) if os.path.isdir(place) and not self.is_gone(place) else []
        kept = [name for name in real if os.path.join(place, name) not in self.gone]
        return sorted({*mirrored, *kept})
