"""Rules about mistakes that involve two tables of a rig file.

Each rule is a function from the draft of a rig file to mistakes; ``RULES`` lists them. A rule reports nothing that
depends on a broken table, because that table's own mistake is reported already.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import cast

from plugpull.rig.draft import Draft, DraftTable
from plugpull.rig.lint_dut import dut_fits
from plugpull.rig.lint_meters import meters
from plugpull.rig.lint_outlets import cuts_itself_off, named_ports, outlets, shared
from plugpull.rig.lint_places import hub_chains, sockets, units, units_of_one, where
from plugpull.rig.lint_switches import control, driver_keys, known_drivers, mechanisms
from plugpull.rig.mistakes import Mistake, closest, quote
from plugpull.rig.quantities import QuantityError, parse_duration, parse_size
from plugpull.rig.validation_messages import header

SECTOR = 512
"""Bytes; the kernel counts every disk's size in these, whatever the disk's own sector size is."""

Rule = Callable[[Draft], Iterator[Mistake]]
"""A rule of rig files."""
_RESERVED = {"dut": "it is the device under test itself"}
_OTHER_ROOMS = ("plugpull.qualify.citation:cited_qualifications",)
"""Rules that belong to rooms which depend on this one: looked up by name when a file is read, as drivers are."""


def lint(draft: Draft) -> Iterator[Mistake]:
    """All mistakes that the rules find."""
    for rule in (*RULES, *map(_rule_named, _OTHER_ROOMS)):
        yield from rule(draft)


def _rule_named(name: str) -> Rule:
    module, _, function = name.partition(":")
    return cast("Rule", getattr(import_module(module), function))


def unique_names(draft: Draft) -> Iterator[Mistake]:
    """Everything has a name of its own: cut points and sockets are made of these names."""
    seen: dict[str, DraftTable] = {}
    for entry in draft.of("switch", "controller", "hub", "disk", "meter"):
        if entry.name is None:
            continue
        if entry.name in _RESERVED:
            yield draft.mistake(entry, "name", f"{quote(entry.name)} cannot be a name: {_RESERVED[entry.name]}")
        elif entry.name in seen:
            first = seen[entry.name]
            already = f"already used by {header(first.kind)} at line {draft.line(first, 'name')}"
            yield draft.mistake(entry, "name", f"the name {quote(entry.name)} is {already}")
        seen.setdefault(entry.name, entry)


def unique_serials(draft: Draft) -> Iterator[Mistake]:
    seen: dict[str, DraftTable] = {}
    for disk in draft.of("disk"):
        serial = disk.get("serial")
        if serial is None:
            continue
        if not serial.isprintable():
            yield draft.mistake(disk, "serial", "a serial number has printable characters only")
        if serial in seen and not units_of_one(seen[serial], disk):
            first = where(draft, seen[serial], "serial")
            yield draft.mistake(disk, "serial", f"the serial number {quote(serial)} is already used by {first}")
        seen.setdefault(serial, disk)


def has_disks(draft: Draft) -> Iterator[Mistake]:
    if "disk" in draft.whole and not any(draft.of("disk")):
        place = draft.source.key(("rig",))
        yield Mistake(
            draft.source.path, place.line, place.column, "this rig has no disks: declare at least one [[disk]]"
        )


def whole_sectors(draft: Draft) -> Iterator[Mistake]:
    for disk in draft.of("disk"):
        try:
            size = parse_size(disk.get("size"))
        except QuantityError:  # it has a mistake of its own
            continue
        if size % SECTOR:
            yield draft.mistake(disk, "size", f"a disk's size is a multiple of {SECTOR} bytes, and {size} is not")


def defect_disks(draft: Draft) -> Iterator[Mistake]:
    known = draft.named("disk")
    for defect in draft.of("defect"):
        disk = defect.get("disk")
        if disk is not None and disk not in known and "disk" in draft.whole:
            what = f"there is no disk named {quote(disk)}"
            yield draft.mistake(defect, "disk", what, closest(disk, known))


def stall_limits(draft: Draft) -> Iterator[Mistake]:
    """A single stall cannot be longer than all stalls together."""
    for disk in draft.of("disk"):
        limits = disk.get("limits")
        if not isinstance(limits, dict) or not {"max_stall", "all_stalls"} <= limits.keys():
            continue
        one, every = parse_duration(limits["max_stall"]), parse_duration(limits["all_stalls"])
        if one > every:
            what = f'"max_stall" is {one:g} s, which is more than the {every:g} s of "all_stalls"'
            yield draft.mistake(disk, "limits", what)


def members_are_scratch(draft: Draft) -> Iterator[Mistake]:
    for disk in draft.of("disk"):
        if disk.get("erase_members") is True and disk.get("scratch") is False:
            what = '"erase_members" has no effect on a disk that may not be erased: it needs scratch = true'
            yield draft.mistake(disk, "erase_members", what)


RULES: tuple[Rule, ...] = (
    unique_names,
    unique_serials,
    has_disks,
    whole_sectors,
    members_are_scratch,
    sockets,
    hub_chains,
    units,
    known_drivers,
    driver_keys,
    mechanisms,
    control,
    outlets,
    shared,
    named_ports,
    cuts_itself_off,
    dut_fits,
    meters,
    defect_disks,
    stall_limits,
)
