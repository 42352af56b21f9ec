"""Parts of a script: (module, function, stack, node), all numbers or names; what an allocation belongs to."""

import threading

# Outside of modules, functions and nodes.
NOTHING = (0, None, 0, None)


class Local(threading.local):
    """Where a thread is."""

    def __init__(self):
        self.part = NOTHING  # of the innermost module or node
        self.func = None  # the function that runs
        self.area = None  # what distributed training is doing: (category, name); see areas.py
        self.sequence = []  # autograd's sequence number when a function began …
        self.functions = []  # … and that function as a part
        self.hooked = []  # sequence numbers between which hooks pack what is saved
        self.hooks = 0
