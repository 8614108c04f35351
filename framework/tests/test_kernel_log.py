"""Reading whole logs: the same answers as line by line, whatever bytes are in them."""

from __future__ import annotations

import io
import json
import re
import subprocess
import sys
from functools import cache

import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from plugpull.kernel.catalogue.classify import classify, subject_of
from plugpull.kernel.catalogue.entries import BEGINNINGS, ENTRIES
from plugpull.kernel.catalogue.prefix import split_prefix
from plugpull.kernel.catalogue.wording import examples_of
from plugpull.kernel.diagnosis import line_shapes
from plugpull.kernel.diagnosis import log_reader as log
from plugpull.kernel.diagnosis.line_shapes import LineShapes, shape_of
from plugpull.kernel.diagnosis.log_reader import read_log
from plugpull.kernel.diagnosis.show import as_json, as_text
from plugpull.kernel.diagnosis.unwrap import unwrapped


@cache
def lines() -> list[bytes]:
    """Lines of the catalogue's entries. They take a second to make, which is only due when they are needed."""
    examples = (example for entry in ENTRIES for example in examples_of(entry.wording, BEGINNINGS))
    return [example.encode() for example in examples if classify(example) is not None]


LINES = st.deferred(lambda: st.sampled_from(lines()))
PIECES = st.one_of(
    LINES,
    st.sampled_from(
        [b"\n", b"\r\n", b"\0", b"[   12.345678] ", b"<4>", b"Oct 18 21:39:38 host kernel: ", b"error", b"\xff"]
    ),
    st.binary(max_size=40),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=30))
@example([b"[   12.345678] usb-storage 1-2:1.0: sdb1ut of memory[   12.345678] sdb1 invoked oom-killer: sdb1"])
def test_any_bytes_are_read_as_line_by_line(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    plain = re.sub(rb"\x1b\[[\d;]*[mK]", b"", data.replace(b"\0", b""))
    # Lines that a mail program broke are joined: test_kernel_whole_logs.py.
    assume(not unwrapped(plain).joints)
    expected = {
        number: event
        for number, line in enumerate(plain.split(b"\n"), start=1)
        if (event := classify(line.decode("utf-8", "replace").rstrip("\r"))) is not None
    }
    assert {each.line: each.event for each in read_log(io.BytesIO(data), "log")} == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(LINES, max_size=20), st.integers(2000, 5000))
def test_where_a_block_ends_does_not_matter(lines: list[bytes], block: int) -> None:
    data = b"".join(b"[    1.000000] " + line + b"\n" for line in lines)
    original, log.BLOCK = log.BLOCK, block
    try:
        assert [found.line for found in read_log(io.BytesIO(data), "log")] == list(range(1, len(lines) + 1))
    finally:
        log.BLOCK = original


def test_a_line_without_an_end_takes_no_memory() -> None:
    class Endless(io.RawIOBase):
        given = 0

        def read(self, size: int = -1) -> bytes:
            self.given += size
            return b"x" * size if self.given < 64 << 20 else b""

    assert list(read_log(Endless(), "pipe")) == []


def test_the_plain_output_loads_no_code_for_stories() -> None:
    body = "import plugpull.kernel.diagnosis.show, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, check=True).stdout.split()
    assert "plugpull.kernel.diagnosis.log_reader" in loaded
    assert not [name for name in loaded if name.startswith(("plugpull.history", "plugpull.kernel.diagnosis.culprit"))]


def test_text_folds_repeats_and_json_does_not() -> None:
    line = b"[   12.345678] I/O error, dev sdb, sector %d op 0x1:(WRITE) flags 0x8800 phys_seg 1 prio class 2\n"
    data = b"random: crng init\n" + b"".join(line % sector for sector in range(5))
    events = list(read_log(io.BytesIO(data), "a.log"))
    first, *_, last = as_text(events)
    assert first.startswith("      2:    12.345678 block.error")
    assert first.endswith("(and 4 more like it)")
    assert last.split() == ["5", "block.error", "sdb"]
    assert next(iter(as_text(events, several=True))).startswith("a.log:2:    12.345678 block.error")
    row = json.loads(as_json(events[0]))
    text = "[   12.345678] I/O error, dev sdb, sector 0 op 0x1:(WRITE) flags 0x8800 phys_seg 1 prio class 2"
    assert row == {
        "file": "a.log",
        "line": 2,
        "kind": "block.error",
        "severity": "error",
        "subject": "sdb",
        "time": 12.345678,
        "text": text,
    }
    assert list(as_text([])) == ["no messages about storage, USB or a broken kernel"]


@pytest.mark.parametrize(
    "prefix", ["", "[   12.345678] ", "Nov 12 13:45:01 host kernel: ", "<6>[  123.456789][  T123] "]
)
def test_lines_that_differ_in_digits_are_split_alike(prefix: str) -> None:
    """What is remembered of a line is true of the next one of its shape."""
    shapes = LineShapes()
    other = str.maketrans("123456789", "912345678")
    for line in lines():
        first = prefix + line.decode()
        # The digits of a name, such as ntfs3's, stay.
        second = re.sub(r"(?<![A-Za-z\d])\d+", lambda number: number[0].translate(other), first)
        for text in (first, second):
            shape = shape_of(text.encode())
            body = split_prefix(text)[1].strip()
            assert shapes.message(shape, text) == body
            assert shapes.subject(shape, body) == subject_of(body)


def test_the_memory_for_shapes_is_bounded() -> None:
    shapes = LineShapes()
    for number in range(2 * line_shapes.MOST):
        text = f"usb 1-1: {'x' * (number % 200)}{chr(97 + number % 26)}{number // 200 * 'y'}"
        assert shapes.message(shape_of(text.encode()), text) == text
    assert len(shapes._messages) <= line_shapes.MOST


def test_an_unnamed_line_hides_none_with_other_digits() -> None:
    """Lines of one shape share the answer that nothing names them only if their digits make no difference."""
    deferred = b"ahci 29000000.sata: probe failed, error -517\n"
    failed = b"ahci 29000000.sata: probe failed, error -110\n"
    ordinary = b"usb 1-2: Product: Flash 16\n"
    log = deferred + failed + deferred + ordinary * 2 + b"usb 1-2: reset high-speed USB device number 16\n"
    assert [(each.line, each.event.kind) for each in read_log(io.BytesIO(log), "log")] == [
        (2, "ata.error"),
        (6, "usb.reset"),
    ]


def test_the_memory_for_unnamed_shapes_is_bounded() -> None:
    shapes = LineShapes()
    for number in range(2 * line_shapes.MOST):
        shapes.keep_unnamed(b"usb 1-1: " + chr(0x100 + number).encode(), (), "")
    assert len(shapes._unnamed) <= line_shapes.MOST
    shapes.keep_unnamed(b"usb 1-1: x<0>usb 1-1: y", (), "")
    assert not shapes.is_unnamed(b"usb 1-1: x<0>usb 1-1: y", ())


def test_a_line_that_is_no_slice_is_split_each_time() -> None:
    shapes = LineShapes()
    for text in ("\x1b[32m[   12.345678] \x1b[0musb 1-1: x", "[   12.345678] usb 1-1: é", '{"MESSAGE": "usb 1-1: x"}'):
        assert shapes.message(shape_of(text.encode()), text) == split_prefix(text)[1].strip()
        assert shapes.subject(shape_of(text.encode()), "usb 1-1: x") == "1-1"
    assert shapes._messages == {}
