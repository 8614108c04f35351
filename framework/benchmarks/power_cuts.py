"""No false alarm: healthy disks with volatile caches through many power cuts at random moments of a write load.

Four disks, over usb-storage and UAS, with caches that empty themselves in different orders, lose their power together;
everything is read back and judged after each cut, and the writing goes on over the stored data. Any loss that the
oracle reports is a false alarm. Printed: cuts, false alarms, legally lost sectors (which show that the cuts did take
caches with them), and the upper end of the 95 % interval of the probability of a false alarm.
"""

from __future__ import annotations

import sys
import time

from rich.progress import track

from benchmarks.measure import begin, console, notify, scratch, table
from plugpull.checks import nothing_lost
from plugpull.faults import at_random
from plugpull.integrity.patterns import Stamped, Writing
from plugpull.run import Options, begin_run

PATTERN = Stamped("4 KiB writes, a flush every 48, a tenth with FUA", Writing(flush_writes=48, fua=10), span=1 << 20)
RIG = """
[rig]
name = "power-cuts"
[dut]
kind = "virtual"
[[switch]]
name = "mains"
driver = "virtual"
ports = 4
mechanism = "mains"
[[controller]]
name = "usb"
model = "qemu-xhci"
ports = 4
"""
DISK = """
[[disk]]
name = "disk{number}"
at = "usb.{number}"
serial = "CUT-{number}"
size = "4 MiB"
cache = "{cache}"
scratch = true
power = "mains.{number}"
{more}
"""
KINDS = (
    ("512 KiB", 'eviction = "oldest"'),
    ("128 KiB", 'eviction = "random"'),
    ("512 KiB", 'eviction = "random"\nprotocol = "uas"\nfua = true'),
    ("1 MiB", 'eviction = "newest"\nprotocol = "uas"\nwrite_back = 0.2'),
)


def main() -> None:
    options = begin(__doc__, n=(int, 200, "power cuts, of all disks together"), seed=(int, 1, "for the moments"))
    begun = time.monotonic()
    with scratch() as folder:
        file = folder / "rig.toml"
        disks = [DISK.format(number=n, cache=cache, more=more) for n, (cache, more) in enumerate(KINDS, start=1)]
        file.write_text(RIG + "".join(disks))
        run = begin_run(Options(rig=file, out=folder, seed=options.seed), notify)
        try:
            with run.scenario("power cuts") as opened:
                rig = opened.open()
                rounds = -(-options.n // len(KINDS))
                with rig.stamp(rig.disks, PATTERN) as load:
                    for number in track(range(rounds), "cuts", console=console, transient=True):
                        with rig.cut(*(disk.power for disk in rig.disks), when=at_random(0.05, 0.7)):
                            pass
                        if number + 1 < rounds:
                            load.next_round()
                rig.judge(nothing_lost())
        finally:
            run.finish()
        result = run.results[-1]
    shown = table("Power cuts", "disk", "cuts", "false alarms", "sectors compared", "writes", "flushes", "legally lost")
    for disk in result.integrity.disks:
        cells = (disk.rounds, disk.rounds_lost, disk.sectors_checked, disk.writes, disk.flushes, disk.unflushed)
        shown.add_row(disk.disk, *map(str, cells))
    console.print(shown)
    found = result.integrity
    bound = f"{found.loss_bound:.2%}" if found.loss_bound is not None else "not known"
    console.print(f"{found.cuts_lost} false alarms in {found.cuts} cuts: below {bound} with 95 % confidence")
    console.print(f"{result.sentence}\ntook {time.monotonic() - begun:.0f} s", soft_wrap=True)
    sys.exit(result.verdict != "PASS")


if __name__ == "__main__":
    main()
