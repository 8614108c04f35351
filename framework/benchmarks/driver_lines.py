"""Which parts of a driver do recorded scenarios reach? A bug in a part that none reaches cannot be found.

``driver_lines.py build DIR`` builds drivers and md of the guest's kernel so that they log each basic block when it runs
first, and copies them to DIR. Run any scenarios with them, ``plugpull run --module DIR/usb-storage.ko ...``, and then
``driver_lines.py show DIR RUN...``: for each module how many of its basic blocks ran, the functions that never did, and
the source lines of those that did in part. ``--only`` takes some modules. What runs before the guest's snapshot is
made, such as the loading of a module, is not seen. The modules are slower than the kernel's own, so verdicts on speed
do not count.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
os.environ.setdefault("PLUGPULL_DRIVER_BUGS", "1")

import driver_build
from driver_build import MD, USB_SCSI, Part

from plugpull.history.events import KernelMessage
from plugpull.history.reader import read_history


class Driver(NamedTuple):
    """A module, its folder in the kernel's source, and one of its files."""

    module: str
    folder: str
    file: str
    part: Part


DRIVERS = (
    Driver("usb-storage", "drivers/usb/storage", "usb.c", USB_SCSI),
    Driver("uas", "drivers/usb/storage", "uas.c", USB_SCSI),
    Driver("sd_mod", "drivers/scsi", "sd.c", USB_SCSI),
    Driver("scsi_mod", "drivers/scsi", "scsi.c", USB_SCSI),
    Driver("usbcore", "drivers/usb/core", "hub.c", USB_SCSI),
    Driver("md-mod", "drivers/md", "md.c", MD),
    Driver("raid1", "drivers/md", "raid1.c", MD),
    Driver("raid10", "drivers/md", "raid10.c", MD),
    Driver("raid456", "drivers/md", "raid5.c", MD),
)
_SEEN = re.compile(r" (\S+)\+0x([0-9a-f]+)/0x[0-9a-f]+ \[(\w+)\]")
_FUNCTION = re.compile(r"^([0-9a-f]+) <(.+)>:$")
_INSTRUCTION = re.compile(r"^\s+([0-9a-f]+):\t(?!.*R_X86_64)")
_NOTED = "__sanitizer_cov_trace_pc"
_ONCE = (".init", ".exit")
"""Sections whose code runs only while a module is loaded or removed."""

Place = tuple[str, int]
"""A function and the offset in it that a call to the noting returns to, as the kernel prints an address."""


class Block(NamedTuple):
    """A basic block: its section, its place, and its address in that section."""

    section: str
    place: Place
    address: int


@dataclass
class Reached:
    """What ran of one function: the numbers of its blocks that did and did not, and the lines of the latter."""

    ran: int = 0
    not_run: int = 0
    lines: set[str] = field(default_factory=set)


def seen(texts: Iterable[str]) -> dict[str, set[Place]]:
    """The places in messages of the kernel log, by the module's name in the kernel."""
    found: dict[str, set[Place]] = defaultdict(set)
    for text in texts:
        if text.startswith("plugpull_lines:"):
            for function, offset, module in _SEEN.findall(text):
                found[module].add((function, int(offset, 16)))
    return found


def blocks(disassembly: Iterable[str]) -> Iterator[Block]:
    """The basic blocks in the output of ``objdump -dr --no-show-raw-insn``: what follows each call of the noting."""
    section, function, base, noted = "", "", 0, False
    for line in disassembly:
        if line.startswith("Disassembly of section "):
            section = line.split()[-1].rstrip(":")
        elif begins := _FUNCTION.match(line):
            base, function, noted = int(begins[1], 16), begins[2], False
        elif "R_X86_64" in line:
            noted = noted or _NOTED in line
        elif instruction := _INSTRUCTION.match(line):
            if noted:
                address = int(instruction[1], 16)
                yield Block(section, (function, address - base), address)
            noted = False


def lines_of(file: Path, wanted: Sequence[Block]) -> dict[Block, str]:
    """The source line of each block, as ``scsiglue.c:394``."""
    found: dict[Block, str] = {}
    for section in sorted({block.section for block in wanted}):
        here = [block for block in wanted if block.section == section]
        asked = "".join(f"{block.address - 1:#x}\n" for block in here)
        said = _output(["addr2line", "-e", str(file), "-j", section], asked).splitlines()
        found |= {block: line.rpartition("/")[2].partition(" ")[0] for block, line in zip(here, said, strict=True)}
    return found


def reached(file: Path, places: set[Place]) -> dict[str, Reached]:
    """What ran of each function of a module."""
    disassembly = _output(["objdump", "-dr", "--no-show-raw-insn", str(file)])
    known = [block for block in blocks(disassembly.splitlines()) if not block.section.startswith(_ONCE)]
    lines = lines_of(file, known)
    found: dict[str, Reached] = defaultdict(Reached)
    for block in known:
        function = found[block.place[0]]
        if block.place in places:
            function.ran += 1
        else:
            function.not_run += 1
            function.lines.add(lines[block])
    return found


def _output(command: Sequence[str], given: str = "") -> str:
    return subprocess.run(command, input=given, capture_output=True, text=True, check=True).stdout


def _chosen(only: str) -> tuple[Driver, ...]:
    names = only.split(",") if only else [one.module for one in DRIVERS]
    return tuple(one for one in DRIVERS if one.module in names)


def _build(given: argparse.Namespace) -> None:
    given.dir.mkdir(parents=True, exist_ok=True)
    for one in _chosen(given.only):
        place = driver_build.noting(one.folder, one.module, one.file, one.part)
        for name in (f"{one.module}.ko", f"{one.module}.debug"):
            shutil.copy(place / name, given.dir)
        print(given.dir / f"{one.module}.ko", flush=True)


def _show(given: argparse.Namespace) -> None:
    texts = (
        event.text for run in given.run for story in read_history(run).stories for event in story.of(KernelMessage)
    )
    places = seen(texts)
    for one in _chosen(given.only):
        file, name = given.dir / f"{one.module}.debug", one.module.replace("-", "_")
        if name not in places or not file.is_file():
            continue
        functions = reached(file, places[name])
        ran = sum(function.ran for function in functions.values())
        every = ran + sum(function.not_run for function in functions.values())
        some = sum(bool(function.ran) for function in functions.values())
        print(f"{one.module}: {ran} of {every} basic blocks ran, in {some} of {len(functions)} functions")
        for function, found in sorted(functions.items(), key=lambda item: (bool(item[1].ran), item[0])):
            if found.not_run:
                what = f"{found.ran} of {found.ran + found.not_run}, not" if found.ran else "never:"
                print(f"  {function}: {what} {' '.join(sorted(found.lines))}")


def main() -> None:
    """Build modules, or show what ran."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    commands = parser.add_subparsers(required=True)
    building = commands.add_parser("build", help="build the modules into a directory")
    showing = commands.add_parser("show", help="show what ran in recorded runs")
    for each, action in ((building, _build), (showing, _show)):
        each.add_argument("dir", type=Path, help="where the modules are")
        each.add_argument("--only", default="", metavar="MODULES", help="some modules, separated by commas")
        each.set_defaults(action=action)
    showing.add_argument("run", type=Path, nargs="+", help="a run directory")
    arguments = parser.parse_args()
    arguments.action(arguments)


if __name__ == "__main__":
    main()
