"""Rules about the switches themselves: their drivers, keys and mechanisms, and how they are reached."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from pydantic import ValidationError
from pydantic.fields import FieldInfo

from plugpull.errors import UsageError
from plugpull.rig.draft import Draft
from plugpull.rig.mistakes import Mistake, closest, quote
from plugpull.rig.model import DeclaredSwitch, Mechanism
from plugpull.rig.source import KeyPath
from plugpull.rig.validation_messages import mistakes_of


def known_drivers(draft: Draft) -> Iterator[Mistake]:
    """Every driver exists and can be loaded."""
    for switch in draft.of("switch"):
        name = switch.get("driver")
        if name is None or draft.dut_kind in ("virtual", None) or draft.driver(switch) is not None:
            continue
        known = draft.drivers.names()
        if name not in known:
            near = closest(name, known)
            what = f"there is no switch driver {quote(name)}" + ("" if near else f": there are {', '.join(known)}")
            yield draft.mistake(switch, "driver", what, near)
            continue
        try:
            draft.drivers.kind_named(name)
        except UsageError as error:
            yield draft.mistake(switch, "driver", error.what)


def driver_keys(draft: Draft) -> Iterator[Mistake]:
    """A switch has only the common keys and those of its driver, and all that its driver needs."""
    for switch in draft.of("switch"):
        driver = draft.driver(switch)
        if driver is None:
            continue
        own = {key: value for key, value in switch.values.items() if key not in DeclaredSwitch.model_fields}
        fields = {**DeclaredSwitch.model_fields, **driver.options.model_fields}

        def having(table: KeyPath, known: Mapping[str, FieldInfo] = fields) -> Mapping[str, FieldInfo]:
            return known

        try:
            driver.options.model_validate(own)
        except ValidationError as error:
            yield from mistakes_of(error, draft.source, at=switch.path, fields=having)


def mechanisms(draft: Draft) -> Iterator[Mistake]:
    """A switch has a mechanism that is possible for its kind."""
    for switch in draft.of("switch"):
        driver, mechanism = draft.driver(switch), switch.get("mechanism")
        if driver is None or mechanism is None or Mechanism(mechanism) in driver.mechanisms:
            continue
        possible = ", ".join(quote(one) for one in Mechanism if one in driver.mechanisms)
        what = f"a {driver.name} switch cannot interrupt {mechanism}: its ports can be wired to interrupt {possible}"
        yield draft.mistake(switch, "mechanism", what)


def control(draft: Draft) -> Iterator[Mistake]:
    """A switch is reached from the machine that its control cable is plugged into."""
    kind = draft.dut_kind
    for switch in draft.of("switch"):
        if kind == "virtual":
            if switch.get("via") == "dut":
                what = 'the switches of a virtual bench are its own: "via" is for real ones'
                yield draft.misplaced(switch, "via", what)
        elif kind == "ssh" and switch.get("control") is not None and switch.get("via") == "controller":
            what = (
                f"the control cable of {quote(str(switch.name))} is plugged into the DUT, so it is reached from there"
            )
            yield draft.mistake(switch, "control", f'{what}: write via = "dut"')
