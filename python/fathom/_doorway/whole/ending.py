"""When enough of a shortened training was seen."""

import time


class Ending:
    """After so many epochs and the first step behind them: once so many steps were taken, or so many seconds are over. An
    evaluation that the script's text promises is waited for a little longer."""

    def __init__(self, asked, loaders, awaited):
        self.steps, self.epochs, self.seconds = asked["steps"], asked["epochs"], asked["seconds"]
        self.longest = max(2 * self.seconds, asked["awaited"])
        self.loaders, self.awaited = loaders, awaited
        self.begun = time.monotonic()
        self.steps_at_end = None  # of the last epoch that is wanted

    def is_enough(self, steps):
        if not self.steps:
            return False
        seconds = time.monotonic() - self.begun - self.loaders.looked
        is_long = steps >= self.steps or (self.seconds and seconds >= self.seconds)
        if not is_long or not self.has_seen_epochs(steps):
            # A loader that never ends is not waited for.
            return bool(self.seconds and seconds >= 2 * self.seconds)
        if not self.seconds or seconds >= self.longest:
            return True
        self.awaited.look()
        return not self.awaited.is_open()

    def has_seen_epochs(self, steps):
        epochs = self.loaders.epochs()
        if epochs is None or not self.epochs:
            return True
        if epochs >= self.epochs and self.steps_at_end is None:
            self.steps_at_end = steps
        return self.steps_at_end is not None
