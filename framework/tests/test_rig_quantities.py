"""Sizes and rates as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugpull.rig.quantities import (
    LARGEST,
    QuantityError,
    format_rate,
    format_size,
    parse_duration,
    parse_rate,
    parse_size,
)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        (67108864, 64 << 20),
        ("64 MiB", 64 << 20),
        ("64MiB", 64 << 20),
        (" 1.5 KiB ", 1536),
        ("10 GB", 10**10),
        ("3 kB", 3000),
        ("3 KB", 3000),
        ("512 B", 512),
    ],
)
def test_sizes(text: object, size: int) -> None:
    assert parse_size(text) == size


def test_rates() -> None:
    assert parse_rate("2 MiB/s") == 2 << 20
    assert parse_rate("1.5MB/s") == 1_500_000
    assert parse_rate("0.7 MiB/s") == 734003
    assert parse_rate(100) == 100


@pytest.mark.parametrize(
    ("value", "what", "hint"),
    [
        ("64", 'the size "64" has no unit', "64 MiB"),
        ("40020664320", 'the size "40020664320" has no unit', "40020664320 B"),
        ("64 M", 'the size "64 M" has the unknown unit "M"', "64 MiB"),
        ("64 mib", 'the size "64 mib" has the unknown unit "mib"', "64 MiB"),
        ("5 parsecs", 'the size "5 parsecs" has the unknown unit "parsecs"', ""),
        ("2 MiB/s", '"2 MiB/s" is a rate, but a size is wanted', "2 MiB"),
        ("0.3 B", 'the size "0.3 B" is not a whole number of bytes', ""),
        (0, "a size must be more than 0", ""),
        (-1, "a size must be more than 0", ""),
        (1 << 63, "this size is too large: the most there can be is 8 EiB less one byte", ""),
        (True, 'this is not a size: write a whole number of bytes, or text such as "64 MiB"', ""),
        (1.5, 'this is not a size: write a whole number of bytes, or text such as "64 MiB"', ""),
        ("", '"" is not a size: write a whole number of bytes, or text such as "64 MiB"', ""),
        ("\u0663 MiB", '"\u0663 MiB" is not a size: write a whole number of bytes, or text such as "64 MiB"', ""),
    ],
)
def test_sizes_that_are_none(value: object, what: str, hint: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_size(value)
    assert (caught.value.what, caught.value.hint) == (what, hint)


@pytest.mark.parametrize(
    ("value", "hint"), [("2 MiB", "2 MiB/s"), ("2 Mbps", "2 MB/s"), ("2", "2 MiB/s"), ("2 mb/s", "2 MB/s")]
)
def test_rates_that_are_none(value: object, hint: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_rate(value)
    assert caught.value.hint == hint
    assert parse_rate(hint) > 0


def test_formatting() -> None:
    assert format_size(64 << 20) == "64 MiB"
    assert format_size(10**10) == "10 GB"
    assert format_size(40020664320) == "37.3 GiB"
    assert format_size(0) == "0 B"
    assert format_rate(2 << 20) == "2 MiB/s"
    assert format_rate(1234.4) == "1234 B/s"


@settings(max_examples=100, deadline=None)
@given(st.integers(1, LARGEST // 2))
def test_what_is_formatted_can_be_parsed(rate: int) -> None:
    assert parse_rate(format_rate(rate)) == pytest.approx(rate, rel=0.06)


@settings(max_examples=100, deadline=None)
@given(st.text() | st.integers() | st.floats() | st.none() | st.lists(st.integers()))
def test_anything_is_a_size_or_a_quantity_error(value: object) -> None:
    for parse in (parse_size, parse_rate):
        try:
            assert 0 < parse(value) <= LARGEST
        except QuantityError:
            continue


@pytest.mark.parametrize(
    ("text", "seconds"), [(30, 30.0), (0.5, 0.5), ("30 s", 30.0), ("500ms", 0.5), (" 1.5 s ", 1.5), ("2 min", 120.0)]
)
def test_durations(text: object, seconds: float) -> None:
    assert parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("value", "what", "hint"),
    [
        ("30", 'the duration "30" has no unit', "30 s"),
        ("30 sec", 'the duration "30 sec" has the unknown unit "sec"', "30 s"),
        ("2 m", 'the duration "2 m" has the unknown unit "m"', "2 min"),
        ("5 furlongs", 'the duration "5 furlongs" has the unknown unit "furlongs"', ""),
        ("-1 s", '"-1 s" is not a duration: write a number of seconds, or text such as "30 s"', ""),
        (0, "a duration must be more than 0 and at most 3600 s", ""),
        ("61 min", "a duration must be more than 0 and at most 3600 s", ""),
        (float("nan"), "a duration must be more than 0 and at most 3600 s", ""),
        (True, 'this is not a duration: write a number of seconds, or text such as "30 s"', ""),
    ],
)
def test_durations_that_are_none(value: object, what: str, hint: str) -> None:
    with pytest.raises(QuantityError) as caught:
        parse_duration(value)
    assert (caught.value.what, caught.value.hint) == (what, hint)
