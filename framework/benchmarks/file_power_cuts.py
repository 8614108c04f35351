"""No false alarm from the oracle of files: healthy disks that lose their power while files on them are written.

For each filesystem, a disk with a volatile cache of 1 MiB, which empties itself in random order, loses its power again
and again. After each cut the kernel recovers the filesystem, which is scanned, checked and emptied; then it is written
again. A third of the cuts each: a storm of everything, of renames, and short sequences with a cut after their sync.
Anything that ``files_kept`` accuses is a false alarm. Printed: cuts that were judged, false alarms, cuts without a
judgement, what was compared, and the upper end of the 95 % interval of the probability of a false alarm. ``--out``
keeps the run, for ``planted_files.py``.
"""

from __future__ import annotations

import sys
import time
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from benchmarks.measure import begin, console, notify, scratch, table
from plugpull.checks import files_kept
from plugpull.errors import PlugpullError
from plugpull.integrity.file_patterns import FilePattern, ShortPlans, file_storm, rename_storm
from plugpull.judging.results import ScenarioResult
from plugpull.run import Options, Run, begin_run
from plugpull.scenario import ScenarioRig

PATTERNS: tuple[FilePattern, ...] = (file_storm, rename_storm, ShortPlans(2))
RIG = """
[rig]
name = "file-power-cuts"
[dut]
kind = "virtual"
[[switch]]
name = "mains"
driver = "virtual"
ports = 1
mechanism = "mains"
[[controller]]
name = "usb"
model = "qemu-xhci"
[[disk]]
name = "disk"
at = "usb.1"
serial = "FILECUT-1"
size = "320 MiB"
cache = "1 MiB"
eviction = "random"
rate = "16 MiB/s"
scratch = true
power = "mains.1"
"""


@dataclass
class Sums:
    """What became of the cuts of one filesystem. ``why`` are the reasons of cuts without a judgement."""

    judged: int = 0
    accused: int = 0
    compared: int = 0
    promised: int = 0
    seconds: float = 0.0
    why: list[str] = field(default_factory=list)
    accusations: list[str] = field(default_factory=list)

    def take(self, result: ScenarioResult) -> None:
        for measured in (one for one in result.measurements if one.name == "wrong files"):
            self.judged += measured.n
            self.compared += int(measured.parameters["names compared"])
            self.promised += int(measured.parameters["kept"])
        found = [one for one in result.findings if one.check == "files_kept"]
        self.accused += len(found)
        self.accusations += [one.summary for one in found]
        self.why += [why for why in result.unknowns if "files" in why or not found]


def main() -> None:
    options = begin(
        __doc__,
        n=(int, 100, "power cuts of each filesystem"),
        seed=(int, 1, "for the moments and the files"),
        filesystems=(str, "ext4,xfs,btrfs,f2fs,vfat,exfat", "which, separated by commas"),
        out=(str, "", "where the run is kept; it is removed without this"),
    )
    sums = {fstype: Sums() for fstype in options.filesystems.split(",")}
    with ExitStack() as stack:
        folder = Path(options.out) if options.out else stack.enter_context(scratch())
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "rig.toml").write_text(RIG)
        run = begin_run(Options(rig=folder / "rig.toml", out=folder, seed=options.seed), notify)
        try:
            # All filesystems with one pattern before the next: a benchmark that is interrupted has some of each.
            for at, pattern in enumerate(PATTERNS):
                for fstype, one in sums.items():
                    cuts = options.n // len(PATTERNS) + (at < options.n % len(PATTERNS))
                    if cuts:
                        one.take(_result(run, fstype, pattern, cuts))
                        show(sums)
        finally:
            run.finish()
    sys.exit(any(one.accused or one.why for one in sums.values()))


def _result(run: Run, fstype: str, pattern: FilePattern, cuts: int) -> ScenarioResult:
    begun, name = time.monotonic(), f"{fstype} {PATTERNS.index(pattern)}"
    try:
        with run.scenario(name) as opened:
            _cut_again_and_again(opened.open(), fstype, pattern, cuts)
    except PlugpullError as error:
        console.print(f"{name}: {error}")
    console.print(f"{name}: {cuts} cuts took {time.monotonic() - begun:.0f} s")
    return run.results[-1]


def _cut_again_and_again(rig: ScenarioRig, fstype: str, pattern: FilePattern, cuts: int) -> None:
    (disk,) = rig.disks
    rig.judge(files_kept())
    with rig.filesystem(disk, fstype) as volume, rig.files(volume, pattern) as files:
        for number in range(cuts):
            if isinstance(pattern, ShortPlans):
                files.played()
                when = None
            else:
                files.settle(0.3)
                when = files.something_to_lose(0.0, 0.3)
            with rig.cut(disk.power, when=when):
                pass
            if number + 1 < cuts:
                files.next_round()


def show(sums: dict[str, Sums]) -> None:
    shown = table("Power cuts under files", "filesystem", "cuts", "false alarms", "not judged", "compared", "promised")
    for fstype, one in sums.items():
        cells = (one.judged, one.accused, len(one.why), one.compared, one.promised)
        shown.add_row(fstype, *map(str, cells))
    console.print(shown)
    for fstype, one in sums.items():
        for text in (*one.accusations, *one.why):
            console.print(f"{fstype}: {text}", soft_wrap=True)
    judged, accused = sum(one.judged for one in sums.values()), sum(one.accused for one in sums.values())
    if judged and not accused:
        console.print(f"no false alarm in {judged} cuts: below {1 - 0.05 ** (1 / judged):.2%} with 95 % confidence")


if __name__ == "__main__":
    main()
