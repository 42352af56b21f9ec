"""Who a file belongs to: the user, a library, or us."""

import os

from . import native

FILE_OWNER = native.FileOwner(native.PACKAGE + os.sep, os.path.dirname(os.__file__))

is_ours, is_library = FILE_OWNER.is_ours, FILE_OWNER.is_library
