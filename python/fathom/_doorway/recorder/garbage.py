"""Python collects garbage when it would without us: what hangs in cycles would leave the card too early otherwise.

Python counts objects, and collects when there are some hundreds more than the last time. Hooks of a backward pass are
objects, and stay as long as their graph: for that time as many more are allowed.
"""

import gc


class Garbage:
    def __init__(self):
        self.own = None  # the script's threshold, while ours is in force
        self.raised = None

    def uncounted(self, work):
        """What this makes and leaves does not count, nor what it frees of that."""
        self.settle()
        was_enabled = gc.isenabled()
        gc.disable()
        before = gc.get_count()[0]
        try:
            return work()
        finally:
            self.allow(gc.get_count()[0] - before)
            if was_enabled:
                gc.enable()

    def allow(self, more):
        """So many more objects than now are ours, or so many less."""
        threshold = gc.get_threshold()
        if threshold != self.raised:  # it is the script's
            self.own = threshold
        raised = threshold[0] + more
        if self.own[0] > 0 and raised > self.own[0]:
            self.raised = (raised, *threshold[1:])
            gc.set_threshold(*self.raised)
        else:
            self.settle(is_over=True)

    def settle(self, is_over=False):
        """The script's own threshold is in force again as soon as that makes no difference."""
        if self.raised is not None and (is_over or gc.get_count()[0] < self.own[0]):
            if gc.get_threshold() == self.raised:  # else the script has set another
                gc.set_threshold(*self.own)
            self.own = self.raised = None
