"""`python -m resolvent` is the command `resolvent`."""

import sys

from resolvent.cli import main

if __name__ == "__main__":
    sys.exit(main())
