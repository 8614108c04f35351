"""Drivers by name: the built-in ones, and those that other packages add by entry point."""

from __future__ import annotations

import importlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from typing import Generic, TypeVar

from plugpull.errors import UsageError

K = TypeVar("K")


@dataclass(frozen=True)
class DriverRegistry(Generic[K]):
    """All drivers of one sort of device. ``named("ykush")`` imports the driver's module and returns its ``KIND``."""

    sort: str
    """Of what they are drivers, for messages: ``switch``, ``meter``."""
    group: str
    """The entry-point group: NAME = "module:KIND"."""
    type: type[K]
    """What a ``KIND`` must be."""
    built_in: Mapping[str, str]
    """``module:KIND`` by name."""

    def names(self) -> tuple[str, ...]:
        """All drivers by name, the built-in ones first."""
        return (*self.built_in, *(point.name for point in self._installed() if point.name not in self.built_in))

    def named(self, name: str) -> K:
        """The driver of this name. Raises UsageError if there is none, or if its package cannot be imported."""
        try:
            found = self._loaded(name)
        except (ImportError, AttributeError) as error:
            raise UsageError(f"the {self.sort} driver {name!r} cannot be loaded: {error}") from None
        if found is None:
            raise UsageError(f"there is no {self.sort} driver {name!r}", hint=f"use one of {', '.join(self.names())}")
        if not isinstance(found, self.type):
            due = f"{self.type.__module__}.{self.type.__qualname__}"
            raise UsageError(f"the entry point of {self.sort} driver {name!r} is not a {due}")
        return found

    def all(self) -> Iterator[K]:
        """Every driver that can be loaded on this machine."""
        for name in self.names():
            try:
                yield self.named(name)
            except UsageError:
                continue

    def _installed(self) -> Iterator[EntryPoint]:
        yield from entry_points(group=self.group)

    def _loaded(self, name: str) -> object:
        if name in self.built_in:
            module, _, attribute = self.built_in[name].partition(":")
            return getattr(importlib.import_module(module), attribute)
        return next((point.load() for point in self._installed() if point.name == name), None)
