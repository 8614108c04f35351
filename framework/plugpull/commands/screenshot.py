"""Take a picture of a report: ``python -m plugpull.commands.screenshot RUN_OR_HTML OUT.png``."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from plugpull.errors import RigError, UsageError
from plugpull.exit_status import EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.report.screenshot import page_of, screenshot


def main(argv: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m plugpull.commands.screenshot", description=__doc__)
    parser.add_argument("run_or_html", type=Path)
    parser.add_argument("out", type=Path, help="PNG file to write")
    parser.add_argument("--width", type=int, default=1200, help="of the window, pixels (default %(default)s)")
    parser.add_argument("--dark", action="store_true", help="as in dark mode")
    parser.add_argument("--fragment", default="", help="'all' unfolds everything, 'zoom' shows the zoomable charts")
    options = parser.parse_args(argv)
    try:
        page = page_of(options.run_or_html)
        screenshot(page, options.out, width=options.width, dark=options.dark, fragment=options.fragment)
    except UsageError as error:
        print(error, file=sys.stderr)
        return EXIT_USAGE
    except RigError as error:
        print(error, file=sys.stderr)
        return EXIT_UNKNOWN
    return EXIT_PASS


if __name__ == "__main__":
    sys.exit(main())
