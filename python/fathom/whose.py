"""Whose a file is: the user's, a library's, or ours."""

import os

from . import native

WHOSE = native.Whose(__file__.rpartition("whose.py")[0], os.path.dirname(os.__file__))

is_ours, is_library = WHOSE.is_ours, WHOSE.is_library
