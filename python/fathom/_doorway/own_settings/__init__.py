"""Settings of the user's script that may do what a lever does: flags of its parser, keys of its config files, constants.

`kinds.py` knows them by their names, `flags.py`, `files.py` and `constants.py` find them, `divided.py` pairs a number of
accumulated batches with the batch size. Nothing is changed here: a setting is words for the command, or text of a file, and
its trial shows whether it does what its name says (`levers/own_setting.py`).
"""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Found:
    """A setting as it stands in the script. `written(value)` gives the words and edits that set it to another value,
    or `None`."""

    name: str  # as the user knows it
    key: str  # its last part, in small letters with low lines
    value: object
    source: str  # settings of one source belong together
    values: tuple  # all that it may have, if only some are allowed
    written: object

    def to(self, value, like, parts=1, batch=None):
        """A setting of the contract, or `None` if it cannot have this value."""
        made = self.written(value)
        if made is None:
            return None
        shown, words, edits = made
        return {"name": self.name, "like": like, "shown": shown, "parts": parts, "batch": batch, "words": words, "edits": edits}


def key_of(name):
    """`train.use-AMP` → `use_amp`; of `amp.enabled` it is `amp` that says what it is."""
    parts = name.replace("-", "_").lower().split(".")
    while len(parts) > 1 and parts[-1] in ("enabled", "enable", "use", "on", "active"):
        parts.pop()
    return parts[-1].strip("_")
