"""Rules about what a rig needs, and may not have, because of the kind of its DUT."""

from __future__ import annotations

from collections.abc import Iterator

from plugpull.rig import lint_virtual
from plugpull.rig.draft import Draft, DraftTable
from plugpull.rig.drivers import VIRTUAL_DRIVER
from plugpull.rig.mistakes import Mistake, quote

_KINDS_WITH = {
    "memory": ("virtual",),
    "cpus": ("virtual",),
    "memory_debugging": ("virtual",),
    "host": ("ssh",),
    "ssh_options": ("ssh",),
    "sudo": ("ssh", "local"),
    "python": ("ssh", "local"),
    "console": ("ssh",),
    "console_speed": ("ssh",),
}
"""Keys of [dut] that only some kinds of DUT have."""


_EMULATED = {
    "disk": ("cache", "eviction", "write_back", "latency", "fua", "write_through", "logical_block"),
    "controller": ("rate",),
    "hub": ("rate",),
}
"""Keys of emulated devices only. A real disk may have a ``rate``: its known transfer rate."""


def dut_fits(draft: Draft) -> Iterator[Mistake]:
    """A rig with a virtual DUT needs other keys than one with a real DUT."""
    kind = draft.dut_kind
    if kind is None:
        return
    yield from _dut(draft, kind)
    if kind == "virtual":
        yield from lint_virtual.lint(draft)
        for labgrid in draft.of("labgrid"):
            place = draft.source.key(labgrid.path)
            what = "a place of labgrid stands for a real rig, and this DUT is virtual: every run has its own"
            yield Mistake(draft.source.path, place.line, place.column, what)
    else:
        yield from _real(draft, kind)


def _dut(draft: Draft, kind: str) -> Iterator[Mistake]:
    for dut in draft.of("dut"):
        for key, kinds in _KINDS_WITH.items():
            if key in dut.values and kind not in kinds:
                what = f"{quote(key)} is for a DUT of kind {' or '.join(map(quote, kinds))}, and this one is {kind}"
                yield draft.misplaced(dut, key, what)
        if kind == "ssh" and "host" not in dut.values and "host" not in dut.broken:
            what = '[dut] has no "host": the machine to connect to, a name or "user@name" as in your ssh configuration'
            yield draft.mistake(dut, "host", what)
        yield from _console(draft, dut)
        if kind == "local" and "power" in dut.values:
            what = (
                "the DUT is this very machine: cutting its power would end plugpull too, and nothing would restore it"
            )
            yield draft.misplaced(dut, "power", what)


def _console(draft: Draft, dut: DraftTable) -> Iterator[Mistake]:
    console = dut.get("console")
    if isinstance(console, str) and not console.startswith("/"):
        example = quote("/dev/serial/by-id/usb-FTDI-if00-port0")
        what = f"{quote(console)} is not the path of a serial port, such as {example}"
        if ":" in console:
            what += "; plugpull does not listen on the network: write netconsole's output into a named pipe"
        yield draft.misplaced(dut, "console", what)
    elif "console_speed" in dut.values and "console" not in dut.values and "console" not in dut.broken:
        yield draft.misplaced(dut, "console_speed", '"console_speed" needs a "console"')


def _real(draft: Draft, kind: str) -> Iterator[Mistake]:
    for controller in draft.of("controller"):
        if "path" not in controller.values and "path" not in controller.broken:
            what = f'{controller.label} has no "path": its PCI address, such as "0000:00:14.0"'
            yield draft.mistake(controller, "path", what)
    for table, keys in _EMULATED.items():
        for entry in draft.of(table):
            for key in keys:
                if key in entry.values:
                    what = f"{quote(key)} is how an emulated {table} behaves, and this DUT is {kind}"
                    yield draft.misplaced(entry, key, what)
    for switch in draft.of("switch"):
        if switch.get("driver") == VIRTUAL_DRIVER:
            what = f'the driver "{VIRTUAL_DRIVER}" only works when the DUT is virtual, and this one is {kind}'
            yield draft.mistake(switch, "driver", what)
    for defect in draft.of("defect"):
        place = draft.source.key(defect.path)
        what = f"only a virtual bench can have defects on purpose, and this DUT is {kind}"
        yield Mistake(draft.source.path, place.line, place.column, what)
