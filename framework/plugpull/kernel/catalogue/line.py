"""A line of a kernel log, taken apart once."""

from __future__ import annotations

from functools import cached_property

from plugpull.kernel.catalogue.classify import KernelEvent, classify_message
from plugpull.kernel.catalogue.device_names import Names, names_in
from plugpull.kernel.catalogue.prefix import split_prefix


class LogLine:
    """A line of a kernel log. Each property is computed at its first use and kept. ``event`` is for callers that have
    classified the line already."""

    def __init__(self, text: str, event: KernelEvent | None = None) -> None:
        self.text = text
        if event is not None:
            self.event = event

    @cached_property
    def _parts(self) -> tuple[str, str]:
        return split_prefix(self.text)

    @property
    def prefix(self) -> str:
        """What stands before the message: time stamp, host, caller."""
        return self._parts[0]

    @property
    def indented(self) -> str:
        """The message with the spaces it begins with: those show which lines are part of a call trace."""
        return self._parts[1].rstrip()

    @cached_property
    def body(self) -> str:
        """The message."""
        return self._parts[1].strip()

    @cached_property
    def event(self) -> KernelEvent | None:
        """The catalogue's meaning of the message; ``None`` if it is not in the catalogue."""
        return classify_message(self.body, self.text)

    @cached_property
    def names(self) -> Names:
        """Every device name in the message."""
        return names_in(self.body)
