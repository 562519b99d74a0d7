"""``python -m benchmarks`` measures everything that ``make bench`` promises."""

import sys

from .core import main

if __name__ == "__main__":
    sys.exit(main())
