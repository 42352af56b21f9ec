"""`python -m fathom record train.py`"""

import sys

from .record import main

sys.exit(main(sys.argv[1:]))
