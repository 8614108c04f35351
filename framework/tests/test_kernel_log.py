"""Reading whole logs: the same answers as line by line, whatever bytes are in them."""

from __future__ import annotations

import io
import json
import re

from hypothesis import assume, given, settings
from hypothesis import strategies as st

from plugpull.kernel.catalogue.classify import classify
from plugpull.kernel.catalogue.entries import BEGINNINGS, ENTRIES
from plugpull.kernel.catalogue.wording import examples_of
from plugpull.kernel.diagnosis import log_reader as log
from plugpull.kernel.diagnosis.log_reader import read_log
from plugpull.kernel.diagnosis.show import as_json, as_text
from plugpull.kernel.diagnosis.unwrap import ENOUGH

LINES = [
    example.encode()
    for entry in ENTRIES
    for example in examples_of(entry.wording, BEGINNINGS)
    if classify(example) is not None
]
PIECES = st.one_of(
    st.sampled_from(LINES),
    st.sampled_from(
        [b"\n", b"\r\n", b"\0", b"[   12.345678] ", b"<4>", b"Oct 18 21:39:38 host kernel: ", b"error", b"\xff"]
    ),
    st.binary(max_size=40),
)


@settings(max_examples=300, deadline=None)
@given(st.lists(PIECES, max_size=30))
def test_any_bytes_are_read_as_line_by_line(pieces: list[bytes]) -> None:
    data = b"".join(pieces)
    plain = re.sub(rb"\x1b\[[\d;]*[mK]", b"", data.replace(b"\0", b""))
    # Lines that end so are a mail in quoted-printable, and joined.
    assume(plain.count(b"=\n") < ENOUGH)
    expected = {
        number: event
        for number, line in enumerate(plain.split(b"\n"), start=1)
        if (event := classify(line.decode("utf-8", "replace").rstrip("\r"))) is not None
    }
    assert {each.line: each.event for each in read_log(io.BytesIO(data), "log")} == expected


@settings(max_examples=100, deadline=None)
@given(st.lists(st.sampled_from(LINES), max_size=20), st.integers(2000, 5000))
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
