"""Joins PyTorch's memory history with what the recorder noted, and writes it as a recording."""

import torch

from .deferred import Deferred
from .notes import FIRST
from .recording_file import ACTIONS, ALLOC, AREA, CATEGORIES, DEFERRED, IDLE, NAME, OOM, OWNER, PHASE, ROW, Writer

CASTS, WORKSPACE = CATEGORIES.index("casts"), CATEGORIES.index("workspace")


class Pen:
    """Writes the recording of one card."""

    def __init__(self, path, about, modules, stacks, names, words):
        self.file = Writer(path)
        self.file.about(about)
        self.modules, self.stacks, self.names = modules, stacks, names
        self.modules_written = 1
        self.stacks_written = {}
        self.owners = {}  # part -> number in the file
        self.words = words  # of marks …
        self.texts = {}  # … -> number in the file
        self.functions = {}  # function -> its name
        self.rows = []
        self.position = 0  # the largest serial number seen
        self.deferred = Deferred()

    def write(self, trace, serials, marks, parts, known, named):
        """One part of the history, with the marks made during it; names of what is allocated anew are forgotten."""
        waiting, waits = (), known[-1]
        if waits is not None:
            waiting = self.deferred.find(trace, serials)
            done = [(at, 0, IDLE, 0, number, 0) for at, number in self.deferred.idle(waits)]
            marks = sorted(marks + done, key=FIRST) if done else marks
        rows, pack, places, position = [], ROW.pack, {}, self.position
        self.rows = rows
        next_mark, count = 0, len(marks)
        for index, (entry, serial) in enumerate(zip(trace, serials)):
            if serial > position:
                position = serial
                while next_mark < count and marks[next_mark][0] < serial:
                    self.mark(marks[next_mark])
                    next_mark += 1
            kind = ACTIONS.get(entry["action"])
            if kind is None:
                continue
            where = (entry["stream"], entry.get("pool_id"))
            place = places.get(where)
            if place is None:
                place = places[where] = self.file.place(where[0], where[1] or (0, 0))
            if kind == ALLOC:
                self.allocated(entry, serial, place, parts, known, named)
                continue
            rows.append(pack(kind, 0, place, 0, entry["addr"] if kind != OOM else entry["device_free"], entry["size"]))
            if index in waiting:
                rows.append(pack(DEFERRED, 0, 0, 0, 0, 0))
            if kind == OOM:
                rows.append(pack(OWNER, 0, 0, self.owner(parts.get(serial), entry), 0, 0))
        self.position = position
        for mark in marks[next_mark:]:
            self.mark(mark)
        self.write_modules()
        self.file.flush(b"".join(rows))

    def allocated(self, entry, serial, place, parts, known, named):
        """A block that is handed out, and what is known of it at once."""
        casts, spaces, areas, _ = known
        address, size = entry["addr"], entry["size"]
        if address in named and named[address][1] < serial:
            del named[address]
        self.rows.append(ROW.pack(ALLOC, 0, place, self.owner(parts.get(serial), entry), address, size))
        if areas and serial in areas:
            category, name, area = areas[serial]
            self.say(AREA, 0, area, address)
            if category is not None:
                self.say(NAME, CATEGORIES.index(category), name, address)
        if serial in casts or (serial, address) in spaces:
            self.name_inside(serial, address, size, casts, spaces)

    def mark(self, mark):
        _, _, kind, code, third, address = mark
        if kind not in (PHASE, IDLE):
            third = self.texts.get(third) or self.text(third)
        self.rows.append(ROW.pack(kind, code, 0, third, address, 0))

    def say(self, kind, code, text, address):
        self.rows.append(ROW.pack(kind, code, 0, self.file.text(text), address, 0))

    def name_inside(self, serial, address, size, casts, spaces):
        """What only the size or the phantom tells: casts of parameters, work areas of libraries."""
        if (serial, address) in spaces:
            self.say(NAME, WORKSPACE, spaces[(serial, address)], address)
        waiting = casts.get(serial)
        if waiting:
            for item in waiting:
                if item[0] == size:
                    waiting.remove(item)
                    name = self.names.of_parameter.get(item[1], "a parameter")
                    self.say(NAME, CASTS, f"cast of {name}", address)
                    break

    # -- texts ----------------------------------------------------------------------------------------

    def owner(self, part, entry):
        """A part as an owner; outside of functions the history's own frames say the line."""
        number = self.owners.get(part)
        if number is not None:
            return number
        if part is not None and (part[1] is not None or part[3] is not None):
            number = self.owners[part] = self.new_owner(part, 0)
            return number
        frames = entry.get("frames") or ()
        if part is None and not frames:
            return 0
        return self.new_owner(part or (0, None, 0, None), self.stack_of(frames))

    def new_owner(self, part, stack):
        module, func, own_stack, node = part
        stack = stack or self.stacks.write(own_stack, self.file, self.stacks_written)
        return self.file.owner(self.modules.paths[module], self.name(func), node or "", stack)

    def stack_of(self, frames):
        stack = 0
        for frame in reversed(frames):
            if not self.stacks.is_our_file(frame["filename"]):
                stack = self.file.stack(frame["filename"], frame["name"], frame["line"], stack)
        return stack

    def name(self, func):
        if func is None:
            return ""
        name = self.functions.get(func)
        if name is None:
            name = getattr(func, "__name__", None) or str(func)
            if name in ("__get__", "__set__"):
                name = getattr(getattr(func, "__self__", None), "__name__", name)
            self.functions[func] = name
        return name

    def text(self, number):
        """The number in the file of a word of the marks."""
        word = self.words[number]
        if isinstance(word, tuple):
            dtype, shape = word
            word = f"{str(dtype).removeprefix('torch.')}[{', '.join(map(str, shape))}]"
        found = self.texts[number] = self.file.text(word)
        return found

    def write_modules(self):
        for number in range(self.modules_written, len(self.modules.paths)):
            self.file.module(self.modules.paths[number], self.modules.classes[number])
        self.modules_written = len(self.modules.paths)

    # -- the end ----------------------------------------------------------------------------------------

    def finish(self, segments, device, facts):
        stats = torch.cuda.memory_stats(device)
        counters = {f"{kind}_peak": stats.get(f"{kind}_bytes.all.peak", 0) for kind in ("allocated", "reserved", "requested")}
        counters["allocated"] = stats.get("allocated_bytes.all.current", 0)
        counters["reserved"] = stats.get("reserved_bytes.all.current", 0)
        self.file.about({**facts, "counters": counters})
        self.file.flush(b"".join(ROW.pack(IDLE, 0, 0, number, 0, 0) for number in self.deferred.rest()))
        self.file.finish([segment for segment in segments if segment["device"] == device])
