"""Rules about power meters: their drivers and keys, and the disks behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from plugpull.errors import UsageError
from plugpull.rig.draft import Draft, DraftTable
from plugpull.rig.drivers import MeterDriver
from plugpull.rig.mistakes import Mistake, closest, quote
from plugpull.rig.model import DeclaredMeter
from plugpull.rig.source import KeyPath
from plugpull.rig.validation_messages import mistakes_of


def meters(draft: Draft) -> Iterator[Mistake]:
    """A meter has a driver that exists and fits the bench, the keys of its driver, and disks behind it."""
    for meter in draft.of("meter"):
        driver = _driver(draft, meter)
        if isinstance(driver, Mistake):
            yield driver
        elif driver is not None:
            yield from _fits(draft, meter, driver)
            yield from _keys(draft, meter, driver)
        yield from _disks(draft, meter)


def _driver(draft: Draft, meter: DraftTable) -> MeterDriver | Mistake | None:
    name = meter.get("driver")
    if name is None:
        return None
    known = draft.meters.names()
    if name not in known:
        near = closest(name, known)
        what = f"there is no meter driver {quote(name)}" + ("" if near else f": there are {', '.join(known)}")
        return draft.mistake(meter, "driver", what, near)
    try:
        return draft.meters.kind_named(name)
    except UsageError as error:
        return draft.mistake(meter, "driver", error.what)


def _fits(draft: Draft, meter: DraftTable, driver: MeterDriver) -> Iterator[Mistake]:
    """Emulated disks draw no power that a real meter could measure, and real ones are not computed."""
    kind = draft.dut_kind
    if kind == "virtual" and not driver.virtual:
        what = f"the driver {quote(driver.name)} cannot measure emulated disks"
        yield draft.mistake(meter, "driver", f'{what}: use "virtual", which computes their power')
    elif kind is not None and kind != "virtual" and driver.virtual:
        what = f"the driver {quote(driver.name)} computes the power of emulated disks"
        yield draft.mistake(meter, "driver", f"{what}: a real bench needs a real meter")


def _keys(draft: Draft, meter: DraftTable, driver: MeterDriver) -> Iterator[Mistake]:
    own = {key: value for key, value in meter.values.items() if key not in DeclaredMeter.model_fields}
    fields = {**DeclaredMeter.model_fields, **driver.options.model_fields}

    def having(table: KeyPath) -> Mapping[str, FieldInfo]:
        return fields

    try:
        driver.options.model_validate(own)
    except ValidationError as error:
        yield from mistakes_of(error, draft.source, at=meter.path, fields=having)


def _disks(draft: Draft, meter: DraftTable) -> Iterator[Mistake]:
    behind, known = meter.get("disks"), draft.named("disk")
    if not isinstance(behind, list | tuple):
        return
    if not behind:
        yield draft.mistake(meter, "disks", f"{meter.label} has no disks behind it: name at least one")
    for number, disk in enumerate(behind):
        if disk in behind[:number]:
            yield draft.mistake(meter, "disks", f"{quote(disk)} is given twice", element=number)
        elif disk not in known and "disk" in draft.whole:
            what = f"there is no disk named {quote(disk)}"
            yield draft.mistake(meter, "disks", what, closest(disk, known), element=number)
