"""The store of a world in which one rank runs: keys of other ranks are answered as if they had done the same."""

import re

import torch.distributed as dist

from .unanswered import Unanswered, answering

# PyTorch's groups keep their own keys under this prefix, among them the ids of NCCL's communicators.
OF_GROUPS = "default_pg/"

# An id of NCCL; the phantom does not look at it.
COMMUNICATOR_ID = b"\1" * 128

# A script that asks again and again whether a key has come waits for it.
PATIENCE = 1000


class WorldStore(dist.Store):
    def __init__(self, world, mailbox):
        super().__init__()
        self.world = world
        self.mailbox = mailbox
        self.values = {}
        self.asked = 0

    # -- as every store ---------------------------------------------------------------------------

    def set(self, key, value):
        self.values[key] = to_bytes(value)
        if not key.startswith(OF_GROUPS):
            self.mailbox.leave(f"store {key}", self.values[key])

    def get(self, key):
        found = self.answer(key)
        if found is None:
            self.give_up("get", key)
        return found

    def wait(self, keys, timeout=None):
        for key in keys:
            if self.answer(key) is None:
                self.give_up("wait", key)

    def check(self, keys):
        found = all(self.answer(key) is not None for key in keys)
        self.asked = 0 if found else self.asked + 1
        if self.asked > PATIENCE and not keys[0].startswith(OF_GROUPS):
            self.give_up("check", keys[0])
        return found

    def add(self, key, amount):
        """Every rank adds the same: this one is the last to do so."""
        value = int(self.values.get(key, b"0")) + int(amount) * self.world.size
        self.values[key] = str(value).encode()
        return value

    def compare_set(self, key, expected, desired):
        current = self.values.get(key)
        if current is None and expected and to_bytes(expected):
            return to_bytes(expected)
        if current is None or current == to_bytes(expected):
            self.set(key, desired)
        return self.values[key]

    def delete_key(self, key):
        return self.values.pop(key, None) is not None

    def num_keys(self):
        return len(self.values)

    def append(self, key, value):
        self.set(key, self.values.get(key, b"") + to_bytes(value))

    def multi_get(self, keys):
        return [self.get(key) for key in keys]

    def multi_set(self, keys, values):
        for key, value in zip(keys, values):
            self.set(key, value)

    def has_extended_api(self):
        return True

    def clone(self):
        return self

    # -- keys of other ranks ----------------------------------------------------------------------

    def answer(self, key):
        """A key's value: this rank's, a message's, or what this rank set under the same key with its own number."""
        if key in self.values:
            return self.values[key]
        if key.startswith(OF_GROUPS):
            return self.alike(key) or COMMUNICATOR_ID
        for sender in {0, *numbers(key)} - {self.world.rank}:
            message = self.mailbox.find(sender, f"store {key}")
            if message is not None:
                return message
        return self.alike(key)

    def alike(self, key):
        """`address/3` of rank 3 is what `address/0` is of rank 0."""
        for number in numbers(key):
            if number != self.world.rank and number < self.world.size:
                own = re.sub(rf"(?<!\d){number}(?!\d)", str(self.world.rank), key)
                if own in self.values:
                    return self.values[own]
        return None

    def give_up(self, method, key):
        call = f"store.{method}({key!r})"
        others = [number for number in numbers(key) if number < self.world.size and number != self.world.rank]
        sender = others[0] if others else 0
        if sender != self.world.rank:
            self.mailbox.stop(sender, f"store {key}", call)
        raise Unanswered(f"{call} waits for a key that another rank sets, and {self.world.describe()} runs alone")


for _name in """set get wait check add compare_set delete_key num_keys append multi_get multi_set""".split():
    setattr(WorldStore, _name, answering(vars(WorldStore)[_name]))


def numbers(key):
    return [int(text) for text in re.findall(r"(?<!\d)\d{1,6}(?!\d)", key)]


def to_bytes(value):
    return value.encode() if isinstance(value, str) else bytes(value)
