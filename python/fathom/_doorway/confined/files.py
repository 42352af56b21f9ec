"""What a confined run writes goes to the mirror, and it reads there what it wrote.

This is for convenience: it lets a script go on that saves a checkpoint and looks for it later. That nothing of the user's
is changed does not rest on it: the kernel refuses whatever is not covered here.
"""

import builtins
import io
import os
import shutil
import sys
import tempfile

import torch

from .. import border
from ..import_hooks import when_imported

FILES = border.Party("what a repeated run writes may be refused")

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# Libraries that read a file by a function of C's which they imported by name.
READERS = ("safetensors", "transformers", "accelerate", "diffusers", "peft", "timm", "huggingface_hub")


def install(mirror, temporary):
    """From here on, for this process."""
    os.environ["TMPDIR"] = tempfile.tempdir = temporary
    of_paths, of_two = Paths(mirror), Pairs(mirror)
    opened = FILES.instead_in([builtins, io], "open", of_paths.opening)
    for name in ("stat", "lstat", "access", "readlink", "chdir"):
        put(os, name, of_paths.reading)
    for name, make in {
        "open": of_paths.opening_low, "mkdir": of_paths.making, "rmdir": of_paths.removing_folder,
        "remove": of_paths.removing, "unlink": of_paths.removing, "truncate": of_paths.changing,
        "chmod": of_paths.marking, "chown": of_paths.marking, "utime": of_paths.marking, "setxattr": of_paths.marking,
        "mkfifo": of_paths.making, "listdir": of_paths.listing, "scandir": of_paths.scanning,
        "rename": of_two.moving, "replace": of_two.moving, "link": of_two.copying, "symlink": of_two.linking,
    }.items():  # fmt: skip
        put(os, name, make)
    FILES.instead(shutil, "rmtree", of_paths.removing_tree)
    FILES.instead(torch, "save", of_paths.saving)
    FILES.instead(torch, "load", of_paths.reading)
    when_imported("sqlite3", FILES.callback(of_paths.for_sqlite))
    when_imported("h5py", FILES.callback(of_paths.for_h5py))
    when_imported("safetensors", FILES.callback(of_paths.for_safetensors))
    when_imported("safetensors.torch", FILES.callback(of_paths.for_safetensors_torch))
    return opened


def put(owner, name, make):
    """In the place of a function of `os`, and known to support what that does."""
    theirs = getattr(owner, name, None)
    if theirs is None:
        return
    FILES.instead(owner, name, make)
    for supporting in (os.supports_dir_fd, os.supports_fd, os.supports_follow_symlinks, os.supports_effective_ids):
        if theirs in supporting:
            supporting.add(getattr(owner, name))
    accessor = getattr(sys.modules.get("pathlib"), "_NormalAccessor", None)
    if accessor is not None and hasattr(accessor, name):  # Python 3.10 keeps its own references
        border.exchange(accessor, name, staticmethod(getattr(owner, name)))


class Paths:
    """Each method takes a function of theirs and gives ours, whose first argument is a path."""

    def __init__(self, mirror):
        self.mirror = mirror

    def place(self, path, kwargs):
        """`None` where theirs is to do what it would: paths relative to an open folder are refused by the kernel."""
        return None if kwargs.get("dir_fd") is not None else self.mirror.place(path)

    def mapped(self, theirs, where):
        def call(path, *args, **kwargs):
            place = self.place(path, kwargs)
            found = place if place is None else where(place)
            return theirs(path if found == place else found, *args, **kwargs)

        return call

    def reading(self, theirs):
        return self.mapped(theirs, self.mirror.seen_at)

    def changing(self, theirs):
        return self.mapped(theirs, lambda place: self.mirror.written_at(place, keeps=True))

    def opening(self, theirs):
        def call(file, mode="r", *args, **kwargs):
            place = self.place(file, {})
            if place is not None and isinstance(mode, str):
                is_read = not set(mode) & set("wax+")
                keeps = "w" not in mode
                if "x" in mode and self.mirror.is_there(place):
                    keeps = True  # it fails as it would
                found = self.mirror.seen_at(place) if is_read else self.mirror.written_at(place, keeps)
                file = file if found == place else found
            return theirs(file, mode, *args, **kwargs)

        return call

    def opening_low(self, theirs):
        def call(path, flags, *args, **kwargs):
            place = self.place(path, kwargs)
            if place is not None and flags & WRITES:
                path = self.mirror.written_at(place, keeps=not flags & os.O_TRUNC)
            elif place is not None and self.mirror.seen_at(place) != place:
                path = self.mirror.seen_at(place)
            return theirs(path, flags, *args, **kwargs)

        return call

    def making(self, theirs):
        def call(path, *args, **kwargs):
            place = self.place(path, kwargs)
            if place is None:
                return theirs(path, *args, **kwargs)
            is_there = self.mirror.is_there(place)
            return theirs(self.mirror.seen_at(place) if is_there else self.mirror.written_at(place, False), *args, **kwargs)

        return call

    def removing(self, theirs):
        def call(path, *args, **kwargs):
            place = self.place(path, kwargs)
            if place is None:
                return theirs(path, *args, **kwargs)
            seen = self.mirror.seen_at(place)
            is_file = self.mirror.is_there(place) and (os.path.islink(seen) or not os.path.isdir(seen))
            self.mirror.remove(place) if is_file else None
            return None if seen == place and is_file else theirs(seen, *args, **kwargs)

        return call

    def removing_folder(self, theirs):
        def call(path, *args, **kwargs):
            place = self.place(path, kwargs)
            if place is None:
                return theirs(path, *args, **kwargs)
            seen = self.mirror.seen_at(place)
            if self.mirror.names(place) or not os.path.isdir(seen):
                return theirs(seen, *args, **kwargs)  # it fails: there is something in it, or it is no folder
            self.mirror.remove(place)
            return None if seen == place else theirs(seen, *args, **kwargs)

        return call

    def removing_tree(self, theirs):
        def call(path, *args, **kwargs):
            place = self.place(path, kwargs)
            if place is None or not self.mirror.is_there(place):
                return theirs(path, *args, **kwargs)
            seen = self.mirror.seen_at(place)
            self.mirror.remove(place)
            with self.mirror.unmirrored():
                return None if seen == place else theirs(seen, *args, **kwargs)

        return call

    def marking(self, theirs):
        """Rights, owners and times of what is not in the mirror stay as they are."""

        def call(path, *args, **kwargs):
            place = self.place(path, kwargs)
            seen = path if place is None else self.mirror.seen_at(place)
            is_real = place is not None and seen == place and self.mirror.is_there(place)
            return None if is_real else theirs(seen, *args, **kwargs)

        return call

    def listing(self, theirs):
        def call(path=".", *args, **kwargs):
            place = self.place(path, kwargs)
            if place is None or not self.mirror.is_mixed(place):
                return theirs(path, *args, **kwargs)
            names = self.mirror.names(place)
            return [os.fsencode(name) for name in names] if isinstance(path, bytes) else names

        return call

    def scanning(self, theirs):
        def call(path=".", *args, **kwargs):
            place = self.place(path, kwargs)
            if place is None or not self.mirror.is_mixed(place):
                return theirs(path, *args, **kwargs)
            names, entries = self.mirror.names(place), {}
            with self.mirror.unmirrored():
                for folder in (place, self.mirror.image(place)):
                    if os.path.isdir(folder):
                        with theirs.like(theirs)(folder) as found:
                            entries |= {entry.name: entry for entry in found}
            return Entries(entries[name] for name in names if name in entries)

        return call

    # -- libraries that open files below Python --------------------------------------------------------------------

    def saving(self, theirs):
        def call(obj, f, *args, **kwargs):
            place = self.mirror.place(f)
            return theirs(obj, f if place is None else self.mirror.written_at(place, keeps=False), *args, **kwargs)

        return call

    def for_sqlite(self, module):
        def make(theirs):
            def call(database, *args, **kwargs):
                is_file = not kwargs.get("uri") and os.fsdecode(database) not in ("", ":memory:")
                place = self.mirror.place(database) if is_file else None
                return theirs(database if place is None else self.mirror.written_at(place, keeps=True), *args, **kwargs)

            return call

        FILES.instead_in([module, module.dbapi2], "connect", make)

    def for_h5py(self, module):
        def make(theirs):
            def call(file, name, mode="r", *args, **kwargs):
                place = self.mirror.place(name)
                if place is not None:
                    is_read = mode == "r"
                    name = self.mirror.seen_at(place) if is_read else self.mirror.written_at(place, keeps=mode != "w")
                return theirs(file, name, mode, *args, **kwargs)

            return call

        FILES.instead(module.File, "__init__", make)

    def for_safetensors(self, module):
        theirs = module.safe_open
        mapped = Opened(theirs, self.mirror)
        for other in list(sys.modules.values()):
            name = getattr(other, "__name__", "")
            if isinstance(name, str) and name.startswith(READERS) and vars(other).get("safe_open") is theirs:
                border.exchange(other, "safe_open", mapped)

    def for_safetensors_torch(self, module):
        def make(theirs):
            def call(tensors, filename, *args, **kwargs):
                place = self.mirror.place(filename)
                where = filename if place is None else self.mirror.written_at(place, keeps=False)
                return theirs(tensors, where, *args, **kwargs)

            return call

        FILES.instead(module, "serialize_file", make)


class Opened:
    """`safe_open`, a class of safetensors' own."""

    def __init__(self, theirs, mirror):
        self.theirs, self.mirror = theirs, mirror

    def __call__(self, filename, *args, **kwargs):
        place = self.mirror.place(filename)
        return self.theirs(filename if place is None else self.mirror.seen_at(place), *args, **kwargs)


class Pairs:
    """The same for functions of two paths."""

    def __init__(self, mirror):
        self.mirror = mirror

    def moving(self, theirs):
        def call(source, target, *args, **kwargs):
            old, new = self.mirror.place(source), self.mirror.place(target)
            if (old is None and new is None) or kwargs:
                return theirs(source, target, *args, **kwargs)
            seen = source if old is None else self.mirror.seen_at(old)
            where = target if new is None else self.mirror.written_at(new, keeps=False)
            if seen != old or not self.mirror.is_there(old):
                return theirs(seen, where)
            if os.path.isdir(old):
                raise border.of_script(PermissionError(f"a run that Fathom repeats does not move the folder {old!r}"))
            with self.mirror.unmirrored():
                shutil.copyfile(old, where)
            return self.mirror.remove(old)

        return call

    def copying(self, theirs):
        def call(source, target, *args, **kwargs):
            old, new = self.mirror.place(source), self.mirror.place(target)
            if (old is None and new is None) or kwargs:
                return theirs(source, target, *args, **kwargs)
            with self.mirror.unmirrored():
                seen = source if old is None else self.mirror.seen_at(old)
                shutil.copyfile(seen, target if new is None else self.mirror.written_at(new, keeps=False))
            return None

        return call

    def linking(self, theirs):
        def call(source, target, *args, **kwargs):
            new = self.mirror.place(target)
            return theirs(source, target if new is None else self.mirror.written_at(new, keeps=False), *args, **kwargs)

        return call


class Entries:
    """What `os.scandir` gives."""

    def __init__(self, entries):
        self.entries = iter(entries)

    def __iter__(self):
        return self

    def __next__(self):
        return next(self.entries)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        self.entries = iter(())
