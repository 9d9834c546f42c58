"""``python -m lamperti``: the command line where its script is not on the path."""

import sys

from lamperti.cli import main

sys.exit(main())
