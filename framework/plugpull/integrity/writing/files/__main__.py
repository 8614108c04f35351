"""The program as it runs on the DUT: ``write`` plays a plan through, ``scan`` reads what is there.

write --root FD --run HEX [--directory NAME] [--plan FD] [--go-on]
    the ledger on standard output; the plan, by default on standard input, is a JSON list of steps, or an object with
    the arguments of a storm
scan --root FD [--directory NAME] [--names] [--remove]
    what was found on standard output, with --names without the contents of files; --remove tries to remove all of it
    after

With --directory, the work is done in this directory of the root. ``write`` syncs the filesystem, makes the directory,
and syncs it and the root first.
SIGINT and SIGTERM end the plan before its next operation.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from plugpull.integrity.writing.files.scanner import remove_all, scan
from plugpull.integrity.writing.files.writer import FileWriter, sync_filesystem

_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def main() -> int:
    """1 if an operation failed and ended the plan, 2 if nothing could be done."""
    try:
        options = options_of(sys.argv[1:])
    except (KeyError, ValueError) as error:
        print(f"cannot be understood: {sys.argv[1:]}: {error}", file=sys.stderr)
        return 2
    try:
        return _write(options) if options.mode == "write" else _scan(options)
    except OSError as error:
        print(error, file=sys.stderr)
        return 2


FLAGS = ("--go-on", "--names", "--remove")


class Asked(NamedTuple):
    """What the program was asked for."""

    mode: str
    root: int
    directory: str
    run: int
    plan: int
    flags: frozenset[str]


def options_of(words: Sequence[str]) -> Asked:
    """The options, from what the agent passes. Without ``argparse``: its import was a quarter of the time that the
    program took to start, which is most of a second on an emulated DUT. Raises KeyError and ValueError."""
    mode, *rest = words
    flags = frozenset(word for word in rest if word in FLAGS)
    values = iter([word for word in rest if word not in FLAGS])
    given = {name: next(values, "") for name in values}
    if mode not in ("write", "scan") or not set(given) <= {"--root", "--directory", "--run", "--plan"}:
        raise ValueError("no such mode or option")
    return Asked(
        mode=mode,
        root=int(given["--root"]),
        directory=given.get("--directory", ""),
        run=int(given["--run"], 16) if mode == "write" else 0,
        plan=int(given.get("--plan", "0")),
        flags=flags,
    )


def _write(options: Asked) -> int:
    asked: list[int] = []
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda one, _: asked.append(one))
    top = _made(options.root, options.directory) if options.directory else options.root
    # Opened again: a descriptor of a file in memory has one position, which its sender has moved.
    with open(f"/proc/self/fd/{options.plan}" if options.plan else 0) as file:
        plan = json.load(file)
    writer = FileWriter(top, options.run, _out)
    done = writer.play(_steps(plan), stop_at_error="--go-on" not in options.flags, stopped=lambda: bool(asked))
    return 0 if done else 1


def _steps(plan: Any) -> Iterable[dict[str, Any]]:
    if not isinstance(plan, dict):
        return [*plan]
    # Here, because it loads ``random``, which a plan that is a list does not need.
    from plugpull.integrity.writing.files.storm import Storm

    return Storm(**plan).steps()


def _made(root: int, name: str) -> int:
    """A new directory, synced with its name. Raises OSError.

    What was removed before is synced too. A FAT filesystem would use its clusters again while the old names, which
    lead to them, are on the disk: after a cut, both files have the clusters, and a repair takes them from one.
    A second sync leaves nothing to log to those of the two directories: btrfs counts what it logged until the next
    mount, and some of its bugs need a count of zero. FAT needs the two: its syncfs sends no flush.
    """
    above = os.open(".", _FLAGS, dir_fd=root)  # the one that is given may be of no use but to open others
    try:
        sync_filesystem(above)
        os.mkdir(name, 0o755, dir_fd=root)
        made = os.open(name, _FLAGS, dir_fd=root)
        sync_filesystem(above)
        os.fsync(made)
        os.fsync(above)
    finally:
        os.close(above)
    return made


def _scan(options: Asked) -> int:
    try:
        top = os.open(options.directory or ".", _FLAGS, dir_fd=options.root)
    except OSError as error:
        _show({"errno": error.errno or errno.EIO})
        return 0
    found = scan(top, contents="--names" not in options.flags)
    if "--remove" in options.flags:
        found = remove_all(top, found)
    _show(found)
    return 0


def _show(found: dict[str, Any]) -> None:
    _out(json.dumps(found, separators=(",", ":")).encode("utf-8", "surrogateescape"))


def _out(data: bytes) -> None:
    """Write it all at once, past any buffer of this process: a line must be out before its call begins."""
    while data:
        data = data[os.write(1, data) :]


if __name__ == "__main__":
    status = main()
    sys.stderr.flush()
    # The interpreter's own way out restores the default of SIGINT, which would kill a writer that is done.
    os._exit(status)
