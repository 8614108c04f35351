"""Sizes and rates as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plugpull.rig.quantities import LARGEST, QuantityError, format_rate, format_size, parse_rate, parse_size


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
