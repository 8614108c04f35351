"""The program as it runs on the DUT: ``write`` plays a plan through, ``scan`` reads what is there.

write --root FD --run HEX [--go-on]   the plan, a JSON list, on standard input; the ledger on standard output
scan --root FD [--remove]             what was found on standard output; --remove tries to remove all of it after
"""

from __future__ import annotations

import argparse
import json
import os
import sys

from plugpull.integrity.writing.files.scanner import remove_all, scan
from plugpull.integrity.writing.files.writer import FileWriter


def main() -> int:
    """1 if an operation failed and ended the plan."""
    parser = argparse.ArgumentParser()
    modes = parser.add_subparsers(dest="mode", required=True)
    write = modes.add_parser("write")
    write.add_argument("--run", type=lambda text: int(text, 16), required=True)
    write.add_argument("--go-on", action="store_true")
    read = modes.add_parser("scan")
    read.add_argument("--remove", action="store_true")
    for mode in (write, read):
        mode.add_argument("--root", type=int, required=True)
    options = parser.parse_args()
    if options.mode == "write":
        writer = FileWriter(options.root, options.run, _out)
        return 0 if writer.play(json.load(sys.stdin), stop_at_error=not options.go_on) else 1
    found = scan(options.root)
    if options.remove:
        found = remove_all(options.root, found)
    _out(json.dumps(found, separators=(",", ":")).encode("utf-8", "surrogateescape"))
    return 0


def _out(data: bytes) -> None:
    """Write it all at once, past any buffer of this process: a line must be out before its call begins."""
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    sys.exit(main())
