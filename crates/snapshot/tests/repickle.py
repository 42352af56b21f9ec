"""Writes a snapshot again with one pickle protocol: python3 repickle.py IN OUT PROTOCOL"""

import pickle
import sys


class Plain(pickle.Unpickler):
    def find_class(self, module, name):
        raise pickle.UnpicklingError(f"{module}.{name} is not allowed")


with open(sys.argv[1], "rb") as file:
    snapshot = Plain(file).load()
with open(sys.argv[2], "wb") as file:
    pickle.dump(snapshot, file, int(sys.argv[3]))
