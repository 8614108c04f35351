"""One event of a log or of a scenario's history, with the devices that it is about."""

from __future__ import annotations

from dataclasses import dataclass

from plugpull.kernel.catalogue.classify import KernelEvent
from plugpull.kernel.diagnosis.scope import Level


@dataclass(frozen=True)
class Happening:
    """One event. ``place`` is its line in a log, or its number in a history; ``devices`` are keys of devices;
    ``expected`` is true if a cut or a resume explains it; ``driver`` is the device's at that moment, if known."""

    place: int
    at: float | None
    event: KernelEvent
    body: str
    devices: tuple[str, ...]
    level: Level
    expected: bool = False
    driver: str = ""
    frames: tuple[str, ...] = ()

    @property
    def kind(self) -> str:
        return self.event.kind
