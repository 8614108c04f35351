"""What a load does to a disk, in fio's words."""

from __future__ import annotations

from dataclasses import dataclass

from plugpull.rig.model import Disk

STAMP = "crc32c"
"""Every block carries a header with its offset and a checksum of its content (fio: verify=)."""
VERIFY_SECONDS = 1.0
"""The span of a load is what the disk transfers in this time, so that reading it back takes as long."""
UNKNOWN_RATE_SPAN = 256 << 20
SMALLEST_SPAN = 3 << 19


@dataclass(frozen=True)
class Pattern:
    """What a load does to a disk.

    ``mode`` is ``write``, ``read`` or ``idle``. ``block`` is bytes per I/O, ``depth`` I/Os in flight.

    What is on the disks is written by the stamping writer (``integrity/``) and judged by its oracle; with ``fio``, it
    is written and compared by fio, which cannot tell passes, disks and torn blocks apart."""

    name: str
    mode: str
    block: int = 64 << 10
    depth: int = 4
    fio: bool = False


sequential_write = Pattern("sequential write", "write")
sequential_read = Pattern("sequential read", "read")
idle = Pattern("idle", "idle")
fio_write = Pattern("sequential write by fio", "write", fio=True)


def span_of(disk: Disk, pattern: Pattern) -> int:
    """Bytes at the disk's beginning that a load covers over and over: a whole number of blocks."""
    span = UNKNOWN_RATE_SPAN if disk.rate is None else max(SMALLEST_SPAN, int(disk.rate * VERIFY_SECONDS))
    span = min(span, disk.size // 2)
    return max(pattern.block, span - span % pattern.block)


_COMMON = (
    "--filename={file}",
    "--ioengine=libaio",
    "--direct=1",
    "--thread",
    "--output-format=json",
    # Or fio leaves a file with its verify state wherever it was started when it is told to end.
    "--verify_state_save=0",
)
_STAMPED = (f"--verify={STAMP}",)
# Without this fio makes a regular file where an unplugged disk's node was.
_NO_FILES = ("--allow_file_create=0",)


def load_arguments(pattern: Pattern, span: int, *, in_file: bool = False) -> list[str]:
    """fio's arguments for a load that runs until it is ended."""
    shape = [f"--rw={pattern.mode}", f"--bs={pattern.block}", f"--iodepth={pattern.depth}", f"--size={span}"]
    endless = ["--time_based", "--runtime=31536000"]
    # Reading does not compare with the stamps: fio ends such a job after one pass even if it is to run for a time. What
    # the disk holds is compared once the load is over.
    stamps = [*_STAMPED, "--do_verify=0"] if pattern.mode == "write" else []
    return ["--name=load", *_COMMON, *(() if in_file else _NO_FILES), *shape, *endless, *stamps]


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
        # verify_fatal=0 is not enough: fio ends a job that only reads at its first bad block all the same.
        arguments += [f"--name=verify{number}", *_COMMON, *_STAMPED, *shape, "--continue_on_error=verify"]
        if number:
            arguments.append("--stonewall")
    return arguments
