"""Tests of reading lines many at a time: what is read is what one by one would give, however damaged a line is."""

from __future__ import annotations

import gzip
import random
from functools import partial
from io import BufferedReader, BytesIO
from pathlib import Path

import msgspec
import pytest

from plugpull.history import segments
from plugpull.history.counters import Counters
from plugpull.history.events import Sampled
from plugpull.history.sample_lines import Part, SampleDecoder, SampleSpan, decode_lines, numbers_of
from plugpull.history.samples import SampleTable
from plugpull.history.seals import numbered
from plugpull.history.segments import DAMAGED, FOLDER, HistoryLines, lines_of


def line(
    number: int, names: tuple[str, ...] = ("sda", "sdb"), *, cpu: tuple[int, int] = (0, 0), report: int = 0
) -> bytes:
    disks = {
        name: Counters(place + 1, 4096 * number, 512, 7 * number, 1, 4, 0, 100 * number)
        for place, name in enumerate(names)
    }
    event = Sampled(at=30.0 + number / 8, report=report, disks=disks, cpu=cpu)
    return numbered(msgspec.json.encode(event), number)


def seen(parts: list[Part] | None) -> object:
    """All that is known of samples, for comparing."""
    if parts is None:
        return None
    table = SampleTable()
    for part in parts:
        table.add(part)
    table.close()
    return [n for part in parts for n in numbers_of(part)], repr(table.samples(range(len(table))))


def one_by_one(lines: list[bytes]) -> object:
    found = [decode_lines([each]) for each in lines]
    return None if None in found else seen([each for each in found if each is not None])


MIXED = {
    "alike": [line(number) for number in range(1, 7)],
    "with the CPU": [line(number, cpu=(number % 2 * 40, number % 2 * 80)) for number in range(1, 7)],
    "with a report": [line(number, report=number) for number in range(1, 7)],
    "names with digits": [line(number, ("nvme0n1", "sda", "md127")) for number in range(1, 7)],
    "one name becomes another": [line(1, ("md0",)), line(2, ("md1",)), line(3, ("md11",)), line(4, ("md0",))],
    "a disk comes and goes": [line(1), line(2, ()), line(3, ("sda",)), line(4), line(5, ("sdb", "sda"))],
    "huge numbers": [line(1), line(2).replace(b"8192", b"9" * 30), line(3)],
    "a negative number": [line(1), line(2).replace(b"8192", b"-8192"), line(3)],
    "no number": [line(1), line(2).replace(b',"n":2', b""), line(3)],
    "no time": [line(1), line(2).replace(b'"at":30.25,', b""), line(3)],
}


@pytest.mark.parametrize("lines", MIXED.values(), ids=MIXED)
def test_samples_are_decoded_together_as_one_by_one(lines: list[bytes]) -> None:
    assert seen(SampleDecoder().decode(lines)) == one_by_one(lines) is not None


def test_lines_that_differ_in_numbers_only_are_one_span() -> None:
    for name in ("alike", "with the CPU", "with a report", "names with digits"):
        assert [type(part) for part in SampleDecoder().decode(MIXED[name]) or ()] == [SampleSpan]


@pytest.mark.parametrize("name", ["alike", "names with digits"])
def test_a_damaged_sample_is_never_decoded_as_another(name: str) -> None:
    first, second, third = MIXED[name][:3]
    decoder = SampleDecoder()
    for place in range(len(second)):
        for byte in (b"", b"0", b"7", b",", b".", b"a", b'"', b"]", b"-", b"00", second[place : place + 1] * 2):
            lines = [first, second[:place] + byte + second[place + 1 :], third]
            assert seen(decoder.decode(lines)) == one_by_one(lines), lines[1]


def test_a_name_that_is_listed_twice_counts_once() -> None:
    lines = [line(number).replace(b'"sdb"', b'"sda"') for number in (1, 2)]
    assert seen(SampleDecoder().decode(lines)) == one_by_one(lines)


@pytest.mark.parametrize("limit", [-1, 1, 5, 64, 1000])
@pytest.mark.parametrize("at_once", [1, 7, 100, 4096])
def test_lines_read_many_at_a_time_are_those_of_readline(
    monkeypatch: pytest.MonkeyPatch, limit: int, at_once: int
) -> None:
    monkeypatch.setattr(segments, "AT_ONCE", at_once)
    dice = random.Random(limit * at_once)
    for _ in range(20):
        data = b"".join(dice.choice((b"\n", b"a\r", b"bc" * dice.randrange(9), b"d\n")) for _ in range(60))
        expected = list(iter(partial(BytesIO(data).readline, limit), b""))
        assert [one for many in lines_of(BufferedReader(BytesIO(data)), limit) for one in many] == expected


def test_a_damaged_segment_keeps_what_comes_before_the_damage(tmp_path: Path) -> None:
    lines = [line(number) for number in range(1, 4001)]
    (tmp_path / FOLDER).mkdir()
    packed = gzip.compress(b"".join(lines))
    (tmp_path / FOLDER / "00001.jsonl.gz").write_bytes(packed[: len(packed) * 3 // 4])
    (tmp_path / "history.jsonl").write_bytes(line(4001))
    with HistoryLines(tmp_path / "history.jsonl") as found:
        read = list(found)
    kept = read.index(DAMAGED)
    assert read == [*lines[:kept], DAMAGED, line(4001)]
    assert kept > 2000
