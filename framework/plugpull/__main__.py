"""``python -m plugpull`` is the ``plugpull`` command."""

import sys

from plugpull.cli import main

sys.exit(main())
