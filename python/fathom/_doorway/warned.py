"""Warnings that torch gives in a function that a rule of ours runs name the script's line, as they do without us."""

import sys
import warnings

from .border import DOORWAY
from .file_owner import is_ours


def install():
    # The one function that all of Python's and C's warnings come through, also where a script keeps them.
    DOORWAY.around(warnings, "_showwarnmsg", before=name_the_script)


def name_the_script(args, _):
    (message,) = args
    if not is_ours(message.filename):
        return
    frame = sys._getframe()
    while frame is not None and is_ours(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None:
        message.filename, message.lineno = frame.f_code.co_filename, frame.f_lineno
        message.line = None  # the text of our line
