"""The counters of a disk and the rates between two of them."""

from __future__ import annotations

import msgspec

from plugpull.history.counters import Counters, Rates, counters_of, rates_between

# A SATA disk under Linux 6.12: 17 numbers (discards and flushes at the end), then reads and writes in flight.
STAT = "  1520   310   60800   2210   740   1180   153600   9120   3   4210   11410   5 0 40 1 22 80       1        2\n"


def test_the_fields_are_those_of_the_kernels_documentation() -> None:
    counters = counters_of(9, STAT)
    assert counters == Counters(
        diskseq=9,
        read_bytes=60800 * 512,
        written_bytes=153600 * 512,
        reads=1520,
        writes=740,
        reads_in_flight=1,
        writes_in_flight=2,
        busy_ms=4210,
    )
    assert (counters.moved, counters.completed, counters.in_flight) == (214400 * 512, 2260, 3)


def test_kernels_before_4_18_have_fewer_numbers() -> None:
    assert counters_of(0, "1 2 3 4 5 6 7 8 9 10 11 0 4") == Counters(0, 3 * 512, 7 * 512, 1, 5, 0, 4, 10)


def test_a_history_has_them_as_an_array_in_the_order_it_always_had() -> None:
    line = b"[9,31129600,78643200,1520,740,1,2,4210]"
    counters = msgspec.json.decode(line, type=Counters)
    assert counters == counters_of(9, STAT)
    assert msgspec.json.encode(counters) == line


def test_rates_are_bytes_by_time() -> None:
    one, two = Counters(1, 1000, 5000, 0, 0, 0, 0, 0), Counters(1, 3000, 5500, 0, 0, 0, 0, 0)
    rates = rates_between(one, two, 0.5)
    assert rates == Rates(read=4000.0, write=1000.0)
    assert (rates.total, rates.went_back, rates.forward()) == (5000.0, False, rates)


def test_counters_that_go_back_are_seen() -> None:
    one, two = Counters(1, 1000, 5000, 0, 0, 0, 0, 0), Counters(1, 1200, 0, 0, 0, 0, 0, 0)
    rates = rates_between(one, two, 1.0)
    assert rates.went_back
    assert rates.forward() == Rates(200.0, 0.0)
