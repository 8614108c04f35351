"""Load patterns, in fio's terms."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from plugpull.history.events import LoadMode

Mode = LoadMode | Literal["idle"]
STAMP = "crc32c"
"""Every block carries a header with its offset and a checksum of its content (fio: verify=)."""
VERIFY_SECONDS = 1.0
"""The span of a load is what the disk transfers in this time; reading it back takes as long."""
UNKNOWN_RATE_SPAN = 256 << 20
SMALLEST_SPAN = 3 << 19


@dataclass(frozen=True)
class Pattern:
    """The I/O that a load does on a disk.

    ``mode`` is fio's ``rw``, or ``idle``. ``block`` is bytes per I/O, ``depth`` I/Os in flight.

    By default the stamping writer (``integrity/``) writes the data and its oracle judges it. With ``fio``, fio writes
    and compares the data; it cannot distinguish passes, disks and torn blocks.
    """

    name: str
    mode: Mode
    block: int = 64 << 10
    depth: int = 4
    fio: bool = False


sequential_write = Pattern("sequential write", "write")
sequential_read = Pattern("sequential read", "read")
idle = Pattern("idle", "idle")
fio_write = Pattern("sequential write by fio", "write", fio=True)


class Room(Protocol):
    """Bytes at the disk's beginning that a load covers repeatedly: a whole number of blocks."""

    @property
    def size(self) -> int:
        """Bytes."""
        ...

    @property
    def rate(self) -> int | None:
        """Bytes per second that it transfers at most, if known."""
        ...


def span_of(room: Room, pattern: Pattern) -> int:
    """Bytes at the beginning that a load covers over and over: a whole number of blocks."""
    span = UNKNOWN_RATE_SPAN if room.rate is None else max(SMALLEST_SPAN, int(room.rate * VERIFY_SECONDS))
    span = min(span, room.size // 2)
    return max(pattern.block, span - span % pattern.block)


_COMMON = (
    "--filename={file}",
    "--ioengine=libaio",
    "--direct=1",
    "--thread",
    "--output-format=json",
    # Otherwise fio leaves a file with its verify state in its working directory when it is asked to end.
    "--verify_state_save=0",
)
_STAMPED = (f"--verify={STAMP}",)
# Without this, fio creates a regular file in the place of an unplugged disk's node.
_NO_FILES = ("--allow_file_create=0",)


def load_arguments(pattern: Pattern, span: int, *, in_file: bool = False) -> list[str]:
    """fio's arguments for a load that runs until it is ended."""
    shape = [f"--rw={pattern.mode}", f"--bs={pattern.block}", f"--iodepth={pattern.depth}", f"--size={span}"]
    endless = ["--time_based", "--runtime=31536000"]
    # Reading does not compare with the stamps: with verification, fio ends such a job after one pass even if it should
    # run for a time. The content is compared after the load.
    stamps = [*_STAMPED, "--do_verify=0"] if pattern.mode == "write" else []
    return ["--name=load", *_COMMON, *(() if in_file else _NO_FILES), *shape, *endless, *stamps]


def measuring_arguments(pattern: Pattern, span: int, *, in_file: bool = False, together: str = "") -> list[str]:
    """fio's arguments for a load that runs until it is ended, without stamps: making them takes processor time.

    ``together`` is the name of the target where one fio works on several at once. Its report is known by that, and an
    error on one target ends the work on all.
    """
    shape = [f"--rw={pattern.mode}", f"--bs={pattern.block}", f"--iodepth={pattern.depth}", f"--size={span}"]
    endless = ["--time_based", "--runtime=31536000"]
    beside = [f"--description={together}", "--exitall_on_error"] if together else []
    return ["--name=measure", *_COMMON, *(() if in_file else _NO_FILES), *shape, *endless, *beside]


def fill_arguments(pattern: Pattern, span: int) -> list[str]:
    """fio's arguments to write a span once, with stamps, and stop."""
    shape = ["--rw=write", f"--bs={pattern.block}", f"--iodepth={pattern.depth}", f"--size={span}"]
    return ["--name=fill", *_COMMON, *_STAMPED, *_NO_FILES, *shape, "--do_verify=0"]


def verify_arguments(pattern: Pattern, ranges: tuple[tuple[int, int], ...]) -> list[str]:
    """fio's arguments to read (offset, length) ranges back and compare every block with its stamp."""
    arguments: list[str] = [*_NO_FILES]
    for number, (offset, length) in enumerate(ranges):
        shape = [
            "--rw=read",
            f"--bs={pattern.block}",
            f"--iodepth={pattern.depth}",
            f"--offset={offset}",
            f"--size={length}",
        ]
        # verify_fatal=0 is not enough: fio still ends a read-only job at its first bad block.
        arguments += [f"--name=verify{number}", *_COMMON, *_STAMPED, *shape, "--continue_on_error=verify"]
        if number:
            arguments.append("--stonewall")
    return arguments
