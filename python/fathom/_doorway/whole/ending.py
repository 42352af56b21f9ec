"""When enough of a shortened training was seen."""

import time


class Ending:
    """After so many epochs and the first step behind them: once so many steps were taken, or so many seconds are over."""

    def __init__(self, asked, loaders):
        self.steps, self.epochs, self.seconds = asked["steps"], asked["epochs"], asked["seconds"]
        self.loaders = loaders
        self.begun = time.monotonic()
        self.steps_at_end = None  # of the last epoch that is wanted

    def is_enough(self, steps):
        if not self.steps:
            return False
        seconds = time.monotonic() - self.begun
        is_long = steps >= self.steps or (self.seconds and seconds >= self.seconds)
        # A loader that never ends is not waited for.
        is_late = self.seconds and seconds >= 2 * self.seconds
        return bool(is_long and (is_late or self.has_seen_epochs(steps)))

    def has_seen_epochs(self, steps):
        epochs = self.loaders.epochs()
        if epochs is None or not self.epochs:
            return True
        if epochs >= self.epochs and self.steps_at_end is None:
            self.steps_at_end = steps
        return self.steps_at_end is not None
