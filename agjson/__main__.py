"""``python -m agjson``: the `agjson` command."""

import sys

from agjson.cli import main

if __name__ == "__main__":
    sys.exit(main())
