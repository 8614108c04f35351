"""The cost of a volatile cache: the firmware with a cache against nbdkit's file plugin, with QEMU's own client.

Both serve a sparse file in the same directory; ``qemu-img bench`` sends them the same requests over a unix socket, in
turn. The figure is the cached firmware's throughput in MB/s over the file plugin's, the median of all rounds. There is
no limit: an emulated guest on this bench moves some 30 MB/s, and a firmware that is several times faster does not slow
it. ``qemu-img`` is in the package qemu-utils, which nothing else needs.
"""

from __future__ import annotations

import re
import shutil
import statistics
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.measure import begin, console, table
from plugpull.exit_status import EXIT_PASS, EXIT_USAGE
from plugpull.virtual.firmware import Firmware, Model
from plugpull.virtual.firmware_drive import Traits

SIZE = 64 << 20
PEER = "nbdkit file"
KINDS = {
    PEER: Model(Traits(SIZE)),
    "cache": Model(Traits(SIZE, cache=8 << 20)),
    "cache, random eviction": Model(Traits(SIZE, cache=8 << 20, eviction="random")),
    "cache, bit-flips": Model(Traits(SIZE, cache=8 << 20), (("bit-flips", {}),)),
}
DEPTH = 16


@dataclass(frozen=True)
class Way:
    """``length`` bytes a request, that many of them for each one of 128 KiB."""

    length: int
    write: bool
    times: int = 1


WAYS = {
    "128 KiB, written": Way(128 << 10, True),
    "128 KiB, read": Way(128 << 10, False),
    "4 KiB, written": Way(4 << 10, True, 2),
    "4 KiB, read": Way(4 << 10, False, 2),
}


def throughput(firmware: Firmware, way: Way, count: int) -> float:
    """Bytes per second of sequential requests, round and round the disk."""
    shape = ["-s", str(way.length), "-S", str(way.length), "-c", str(count * way.times), "-d", str(DEPTH)]
    command = ["qemu-img", "bench", "-f", "raw", "-t", "none", *(["-w"] if way.write else []), *shape]
    ended = subprocess.run(
        [*command, f"nbd+unix:///?socket={firmware.socket}"], check=True, capture_output=True, text=True
    )
    took = re.search(r"completed in ([0-9.]+) seconds", ended.stdout)
    assert took is not None, ended.stdout
    return count * way.times * way.length / float(took.group(1))


def main() -> int:
    options = begin(
        __doc__, n=(int, 5, "rounds"), count=(int, 4000, "requests of 128 KiB a round; twice as many of 4 KiB")
    )
    if shutil.which("qemu-img") is None:
        print("qemu-img is not installed: apt-get install qemu-utils", file=sys.stderr)
        return EXIT_USAGE
    with TemporaryDirectory(dir="/dev/shm") as folder:
        made: dict[str, Firmware] = {}
        try:
            for number, (kind, model) in enumerate(KINDS.items()):
                made[kind] = Firmware(f"disk{number}", model, Path(folder))
            for name, way in WAYS.items():
                report(name, way, made, options.n, options.count)
        finally:
            for firmware in made.values():
                firmware.close()
    return EXIT_PASS


def report(name: str, way: Way, made: dict[str, Firmware], rounds: int, count: int) -> None:
    rates: dict[str, list[float]] = {kind: [] for kind in made}
    for _ in range(rounds):
        for kind, firmware in made.items():
            rates[kind].append(throughput(firmware, way, count))
    middle = {kind: statistics.median(each) for kind, each in rates.items()}
    shown = table(name, "firmware", "MB/s", "requests/s", "ratio")
    for kind, rate in middle.items():
        ratio = rate / middle[PEER]
        shown.add_row(kind, f"{rate / 1e6:.0f}", f"{rate / way.length:.0f}", f"{ratio:.2f}")
    console.print(shown)


if __name__ == "__main__":
    sys.exit(main())
