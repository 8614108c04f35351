"""One disk's counters in a sample, and the rates between two of them."""

from __future__ import annotations

from typing import NamedTuple

SECTOR = 512
"""Bytes of a sector in ``/sys/block/*/stat``, whatever the disk's own block size is."""


class Counters(NamedTuple):
    """What the kernel counted on one disk since it was attached: ``/sys/block/*/stat``, ``inflight`` and ``diskseq``.

    The source of each field is the kernel's Documentation/admin-guide/iostats.rst: ``reads`` is field 1 (completed),
    ``read_bytes`` field 3 (sectors), ``writes`` field 5, ``written_bytes`` field 7, ``busy_ms`` field 10. The two
    ``in_flight`` numbers are from ``inflight`` (Documentation/ABI/stable/sysfs-block). ``diskseq`` is 0 before Linux
    5.15. In a history this is an array of numbers in this order.
    """

    diskseq: int
    read_bytes: int
    written_bytes: int
    reads: int
    writes: int
    reads_in_flight: int
    writes_in_flight: int
    busy_ms: int

    @property
    def moved(self) -> int:
        """Bytes read and written."""
        return self.read_bytes + self.written_bytes

    @property
    def completed(self) -> int:
        """Reads and writes done."""
        return self.reads + self.writes

    @property
    def in_flight(self) -> int:
        """Requests given to the driver and not yet completed."""
        return self.reads_in_flight + self.writes_in_flight


NOTHING = Counters(0, 0, 0, 0, 0, 0, 0, 0)
"""A disk that is not in a sample has transferred nothing."""


class Rates(NamedTuple):
    """Bytes per second between two readings of the same counters; negative where a counter went back."""

    read: float
    write: float

    @property
    def total(self) -> float:
        return self.read + self.write

    @property
    def went_back(self) -> bool:
        """Whether a counter fell, which it does not while a disk stays attached."""
        return self.read < 0 or self.write < 0

    def forward(self) -> Rates:
        """The same with 0 for a counter that went back."""
        return Rates(max(0.0, self.read), max(0.0, self.write))


def rates_between(one: Counters, two: Counters, seconds: float) -> Rates:
    """The rates from ``one`` to ``two``, read ``seconds`` (more than 0) later."""
    return Rates((two.read_bytes - one.read_bytes) / seconds, (two.written_bytes - one.written_bytes) / seconds)


def counters_of(diskseq: int, text: str) -> Counters:
    """The counters from the text of ``stat`` (11 numbers, and more in newer kernels) followed by ``inflight`` (2)."""
    numbers = [int(word) for word in text.split()]
    reads, _, read_sectors, _, writes, _, written_sectors, _, _, busy_ms = numbers[:10]
    reading, writing = numbers[-2:]
    return Counters(
        diskseq=diskseq,
        read_bytes=read_sectors * SECTOR,
        written_bytes=written_sectors * SECTOR,
        reads=reads,
        writes=writes,
        reads_in_flight=reading,
        writes_in_flight=writing,
        busy_ms=busy_ms,
    )
