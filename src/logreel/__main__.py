"""``python -m logreel``."""

from __future__ import annotations

import sys

from logreel.cli import main

if __name__ == "__main__":
    sys.exit(main())
