"""The speed of the oracle: a ledger of random 4 KiB writes with flushes, and the read-back of a disk that kept its
promises, both from their bytes to an opinion.

The limit is the writer's own read-back, measured in the same run on a file on this machine (not in a guest): judging
should take no longer than reading.
"""

from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

from benchmarks.measure import begin, console, scratch, table
from plugpull.integrity.oracle.decode import decode_found, decode_ledger
from plugpull.integrity.oracle.rules import judge
from plugpull.integrity.writing.build import writer_binary


def said(program: Path, file: Path, *arguments: str) -> tuple[bytes, float]:
    """The output of the writer, and the seconds that it took."""
    fd = os.open(file, os.O_RDWR)
    begun = time.monotonic()
    try:
        command = [str(program), *arguments, "--run", "1", "--device", "2", "--fd", str(fd)]
        done = subprocess.run(command, pass_fds=(fd,), stdout=subprocess.PIPE, check=True)
    finally:
        os.close(fd)
    return done.stdout, time.monotonic() - begun


def main() -> None:
    options = begin(__doc__, mib=(int, 256, "size of the disk, MiB"), writes=(int, 100_000, "writes of 4 KiB"))
    sectors = options.mib << 11
    with scratch() as folder:
        program, file = folder / "writer", folder / "disk"
        program.write_bytes(writer_binary())
        program.chmod(0o755)
        with file.open("wb") as made:
            made.truncate(sectors * 512)
        extents = ("--extents", f"0:{sectors}")
        shape = ("--session", "1", *extents, "--block", "8", "--depth", "16", "--order", "random")
        ledger, _ = said(
            program, file, "write", *shape, "--flush-writes", "64", "--fill", "512", "--blocks", str(options.writes)
        )
        back, reading = said(program, file, "read", *extents, "--block", "256", "--depth", "8")
        begun = time.monotonic()
        opinion = judge(decode_ledger([(0, ledger)]), decode_found([(0, back)]), ((0, sectors),), None)
        judging = time.monotonic() - begun
    if not opinion.intact:
        raise SystemExit(f"the oracle reported a healthy disk: {opinion.counts} {opinion.problems}")
    shown = table("Judging", "what", "seconds", "sectors/s", "MB/s")
    for what, seconds in (("read-back (this machine's own disk)", reading), ("judging", judging)):
        shown.add_row(what, f"{seconds:.2f}", f"{sectors / seconds:,.0f}", f"{sectors * 512 / seconds / 1e6:.0f}")
    console.print(shown)
    console.print(
        f"{opinion.writes} writes, {opinion.flushes} flushes; {len(ledger) / opinion.writes:.1f} B of ledger per write"
    )
    console.print(
        f"judging takes {judging / reading:.2f}x as long as reading back at {sectors * 512 / reading / 1e6:.0f} MB/s"
    )


if __name__ == "__main__":
    main()
