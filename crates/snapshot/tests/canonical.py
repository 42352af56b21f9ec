"""Prints random values, pickled with protocols 0 to 5: hex digits, a tab, the canonical text."""

import pickle
import random
import struct


def canonical(value):
    if value is None:
        return "N"
    if value is True or value is False:
        return "T" if value else "F"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float):
        return "f" + struct.pack(">d", value).hex()
    if isinstance(value, str):
        return "s" + value.encode().hex()
    if isinstance(value, (bytes, bytearray)):
        return "b" + bytes(value).hex()
    if isinstance(value, tuple):
        return "(" + ",".join(map(canonical, value)) + ")"
    if isinstance(value, list):
        return "[" + ",".join(map(canonical, value)) + "]"
    if isinstance(value, (set, frozenset)):
        return "<" + ",".join(sorted(map(canonical, value))) + ">"
    return "{" + ",".join(canonical(k) + ":" + canonical(v) for k, v in value.items()) + "}"


INTS = [0, 1, -1, 255, 256, 65535, 65536, -(2**31), 2**31 - 1, 2**31, 2**47, 2**63 - 1, -(2**63)]
INTS += [2**63, 2**64 - 1, -(2**63) - 1, 2**100]
TEXTS = ["", "a", "N/A", "naïve\n", "\\u0041 back\\slash", "日本", "\U0001f600", "q'\"", "x" * 300]
FLOATS = [0.0, -0.0, 1.5, 1e300, 5e-324, float("inf"), float("-inf")]


def leaf(rng, protocol):
    kind = rng.randrange(6 if protocol >= 3 else 5)
    if kind == 0:
        return rng.choice([None, True, False])
    if kind == 1:
        return rng.choice(INTS)
    if kind == 2:
        return rng.randint(-(2 ** rng.randint(1, 62)), 2 ** rng.randint(1, 62))
    if kind == 3:
        return rng.choice(FLOATS) if rng.random() < 0.5 else rng.uniform(-1e9, 1e9)
    if kind == 4:
        return rng.choice(TEXTS)
    return bytes(rng.randrange(256) for _ in range(rng.choice([0, 3, 300])))


def value(rng, protocol, depth, made):
    if made and rng.random() < 0.15:
        return rng.choice(made)
    kind = rng.randrange(6)
    if depth == 0 or kind == 0:
        return leaf(rng, protocol)
    size = rng.choice([0, 1, 2, 3, 4, 9])
    items = [value(rng, protocol, depth - 1, made) for _ in range(size)]
    if kind in (1, 2):
        new = items
    elif kind == 3:
        new = tuple(items)
    elif kind == 4 and protocol >= 4:
        texts = rng.sample(TEXTS, min(size, len(TEXTS)))
        new = set(texts) if rng.random() < 0.5 else frozenset(texts)
    else:
        keys = rng.sample(TEXTS + [1, 2, 3], size)
        new = dict(zip(keys, items))
    made.append(new)
    return new


def main():
    rng = random.Random(4)
    for protocol in range(6):
        for _ in range(150):
            thing = value(rng, protocol, 4, [])
            text = canonical(thing)
            if len(text) < 100_000:
                print(pickle.dumps(thing, protocol).hex(), text, sep="\t")
        long_list = list(range(2500))
        print(pickle.dumps([long_list, long_list], protocol).hex(), canonical([long_list] * 2), sep="\t")
        long_dict = {str(i): i for i in range(2500)}
        print(pickle.dumps(long_dict, protocol).hex(), canonical(long_dict), sep="\t")
    if pickle.HIGHEST_PROTOCOL >= 5:
        print(pickle.dumps(bytearray(b"abc"), 5).hex(), canonical(b"abc"), sep="\t")


main()
