"""What a check is: data, and a pure function from one scenario's history to a judgement."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from plugpull.checks.claims import Claim
from plugpull.finding import Finding
from plugpull.judging.results import Conclusion, Integrity, Measurement, Survivor

if TYPE_CHECKING:
    from plugpull.history.reader import Story


class Judgement(msgspec.Struct, frozen=True, kw_only=True):
    """What a check made of a history.

    ``findings`` accuse the DUT, an enclosure or a disk. ``unknowns`` say, a sentence each, which evidence was missing;
    one is enough to keep the check from passing. ``worst`` is the worst case seen, for the table of the report; what
    stands in brackets is left out of the scenario's sentence. ``measured``, ``limit``, ``unit`` and ``smallest`` are
    the same as numbers, where the check measures something (see ``CheckResult``). ``measurements`` are all that it
    measured, ``conclusions`` what a study makes of them. ``Collector`` gathers these.
    """

    findings: tuple[Finding, ...] = ()
    unknowns: tuple[str, ...] = ()
    worst: str = ""
    subject: str = ""
    survivors: tuple[Survivor, ...] = ()
    integrity: Integrity | None = None
    measured: float | None = None
    limit: float | None = None
    unit: str = ""
    smallest: float | None = None
    measurements: tuple[Measurement, ...] = ()
    conclusions: tuple[Conclusion, ...] = ()


class Check(msgspec.Struct, frozen=True, tag_field="check", tag=lambda name: name.lower()):
    """Base of all checks. Parameters are fields, so a history can carry the checks it is to be judged by."""

    def judge(self, story: Story) -> Judgement:
        """What the history says about this. Findings stand whatever evidence is missing elsewhere."""
        raise NotImplementedError

    def claims(self, story: Story) -> Iterable[Claim]:
        """The evidence that a PASS of this check rests on. ``checks/reach.py`` asks whether it is all there."""
        return ()


class Named(Protocol):
    """Anything with a name, such as a disk of a rig."""

    @property
    def name(self) -> str: ...


Disks = str | Named | Iterable[str | Named]
"""How scenarios say which disks: a name, something with a name, or several of these."""


def disk_names(disks: Disks) -> tuple[str, ...]:
    """The names, in the order given. Raises ``TypeError`` for what is neither a name nor has one."""
    if isinstance(disks, str):
        return (disks,)
    name = getattr(disks, "name", None)
    if isinstance(name, str):
        return (name,)
    if isinstance(disks, Iterable):
        return tuple(name for disk in disks for name in disk_names(disk))
    raise TypeError(f"expected a disk, its name, or several of them, not {disks!r}")


def check_name(check: Check | type[Check]) -> str:
    """The name a scenario calls the check by, such as ``kept_pace``."""
    return str(check.__struct_config__.tag)


def encode_check(check: Check) -> dict[str, Any]:
    """The check as data, for ``Judged``: just what is read back from a history."""
    data: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(check))
    return data


def decode_check(data: dict[str, Any]) -> Check:
    """The check from ``Judged``. Knows every check whose module was imported, those of a test suite too.

    Raises ``ValueError`` when there is no such check, ``msgspec.ValidationError`` when its parameters do not fit.
    """
    name = data.get("check")
    for kind in _kinds(Check):
        if check_name(kind) == name:
            return msgspec.convert(data, kind)
    raise ValueError(f"there is no check {name!r} in this version")


def _kinds(kind: type[Check]) -> Iterator[type[Check]]:
    for child in kind.__subclasses__():
        yield child
        yield from _kinds(child)
