"""`python -m fathom record train.py`"""

import sys

from .recording import main

sys.exit(main(sys.argv[1:]))
