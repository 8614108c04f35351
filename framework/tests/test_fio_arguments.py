"""The arguments that fio gets, with the fio that is installed."""

from __future__ import annotations

from pathlib import Path

import pytest
from fios import BLOCK, SPAN, fio, needs_fio
from hypothesis import given, settings
from hypothesis import strategies as st

from plugpull.load.patterns import (
    SMALLEST_SPAN,
    UNKNOWN_RATE_SPAN,
    Pattern,
    fill_arguments,
    load_arguments,
    sequential_read,
    sequential_write,
    span_of,
    verify_arguments,
)
from plugpull.rig.model import Disk


@needs_fio
@pytest.mark.parametrize(
    "arguments",
    [
        pytest.param(load_arguments(sequential_write, SPAN), id="write"),
        pytest.param(load_arguments(sequential_read, SPAN), id="read"),
        pytest.param(load_arguments(sequential_write, SPAN, in_file=True), id="write in a file"),
        pytest.param(fill_arguments(sequential_write, SPAN), id="fill"),
        pytest.param(verify_arguments(sequential_write, ((0, SPAN),)), id="verify"),
        pytest.param(verify_arguments(sequential_write, ((0, BLOCK), (2 * BLOCK, BLOCK))), id="verify two ranges"),
    ],
)
def test_fio_takes_our_arguments(tmp_path: Path, arguments: list[str]) -> None:
    file = tmp_path / "medium"
    file.write_bytes(bytes(SPAN))
    status, output = fio(file, ["--parse-only", *arguments])
    assert status == 0, output
    assert file.read_bytes() == bytes(SPAN)


@needs_fio
@pytest.mark.parametrize("arguments", [load_arguments(sequential_write, SPAN), fill_arguments(sequential_write, SPAN)])
def test_no_file_is_made_where_a_disk_was(tmp_path: Path, arguments: list[str]) -> None:
    status, output = fio(tmp_path / "gone", arguments)
    assert status != 0, output
    assert not (tmp_path / "gone").exists()


def disk(size: int, rate: int | None) -> Disk:
    return Disk(name="disk1", at="usb.1", serial="S", size=size, rate=rate)


@settings(deadline=None)
@given(
    size=st.integers(2 << 20, 1 << 44),
    rate=st.none() | st.integers(1, 1 << 31),
    block=st.sampled_from([512, 4096, BLOCK, 1 << 20]),
)
def test_a_span_is_whole_blocks_on_the_disk(size: int, rate: int | None, block: int) -> None:
    span = span_of(disk(size, rate), Pattern("p", "write", block))
    assert span % block == 0
    assert block <= span <= size // 2
    assert span <= max(SMALLEST_SPAN, UNKNOWN_RATE_SPAN if rate is None else rate)
