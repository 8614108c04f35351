"""Packs of a long history: what is read with them is what its text says, whatever they or the text have become."""

from __future__ import annotations

import random
from array import array
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from benchmarks.long_shape import Shape
from benchmarks.long_story import LongStory
from plugpull.history import events as ev
from plugpull.history import packed_text, packs
from plugpull.history.columns import Column, unchanged
from plugpull.history.packs import COLUMNS_FILE, Pack, pack_column, read_packs, write_pack
from plugpull.history.reader import History, read_history
from plugpull.history.recorder import Recorder
from plugpull.history.sample_lines import Part, SampleDecoder

SHAPE = Shape(hours=0.05, disks=2, cuts=2)
Lines = list[bytes]


def events() -> Iterable[ev.Event]:
    """Some minutes; half of the samples have the numbers of their reports."""
    report = 1000
    for event in LongStory(SHAPE).events():
        if isinstance(event, ev.Sampled) and (event.at or 0.0) > 100.0:
            report += 1
            event = msgspec.structs.replace(event, report=report)
        yield event


@pytest.fixture(scope="module", autouse=True)
def of_few_seals() -> Iterator[None]:
    """Packs of few lines, so that a short history has several."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_text, "SECTIONS", 3)
        yield


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run directory with a history and its packs, which no test changes."""
    run = tmp_path_factory.mktemp("recorded")
    with Recorder(run / "history.jsonl", packed_from=0) as recorder:
        for event in events():
            recorder.record(event)
    return run


@pytest.fixture
def run(recorded: Path, tmp_path: Path) -> Path:
    for name in ("history.jsonl", COLUMNS_FILE):
        (tmp_path / name).write_bytes((recorded / name).read_bytes())
    return tmp_path


def by_text(run: Path) -> History:
    """The history as it is read without packs."""
    (run / COLUMNS_FILE).unlink(missing_ok=True)
    return read_history(run)


def packs_of(run: Path) -> list[Pack]:
    with (run / COLUMNS_FILE).open("rb") as file:
        return list(read_packs(file))


def rewrite(run: Path, made: Iterable[Pack]) -> None:
    with (run / COLUMNS_FILE).open("wb") as file:
        file.write(packs.MAGIC)
        for pack in made:
            write_pack(file, pack)


def test_a_history_is_the_same_with_packs_and_without(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    decoded: Lines = []
    decode = SampleDecoder.decode

    def counted(self: SampleDecoder, lines: Lines) -> list[Part] | None:
        decoded.extend(lines)
        return decode(self, lines)

    monkeypatch.setattr(SampleDecoder, "decode", counted)
    packed = read_history(run)
    by_packs = len(decoded)
    text = by_text(run)
    assert packed == text
    assert not packed.flawed
    assert packed.complete
    assert by_packs < (len(decoded) - by_packs) / 3, "most samples are taken from packs"
    assert len(packed.stories[0].samples.reports) > 500


def test_all_that_is_known_of_the_samples_is_the_same(run: Path) -> None:
    one, two = read_history(run).stories[0].samples, by_text(run).stories[0].samples
    assert (one.at, one.cpus, one.reports, list(one.streams)) == (two.at, two.cpus, two.reports, list(two.streams))
    for key, stream in one.streams.items():
        other = two.streams[key]
        assert (stream.runs, stream.starts, list(stream.quiet)) == (other.runs, other.starts, list(other.quiet))
        for column, text in zip(stream.columns, other.columns, strict=True):
            assert (list(column.numbers), column.constant, column.negative, column.falls) == (
                list(text.numbers),
                text.constant,
                text.negative,
                text.falls,
            )


def one_digit(lines: Lines) -> Lines:
    place = next(i for i in range(len(lines) // 2, len(lines)) if b'"sda"' in lines[i])
    return [*lines[:place], lines[place].replace(b'"sda":[', b'"sda":[1'), *lines[place + 1 :]]


def one_missing(lines: Lines) -> Lines:
    return lines[: len(lines) // 2] + lines[len(lines) // 2 + 1 :]


def one_doubled(lines: Lines) -> Lines:
    return lines[: len(lines) // 2] + lines[len(lines) // 2 - 1 :]


def two_swapped(lines: Lines) -> Lines:
    middle = len(lines) // 2
    return [*lines[:middle], lines[middle + 1], lines[middle], *lines[middle + 2 :]]


def another_seal(lines: Lines) -> Lines:
    place = next(i for i in range(len(lines) // 2, len(lines)) if b'"seal"' in lines[i])
    return [*lines[:place], lines[place].replace(b'"digest":"', b'"digest":"0'), *lines[place + 1 :]]


def blank_line(lines: Lines) -> Lines:
    return [*lines[: len(lines) // 2], b"\n", *lines[len(lines) // 2 :]]


def cut_off(lines: Lines) -> Lines:
    return [*lines[: len(lines) // 2], lines[len(lines) // 2][:40]]


@pytest.mark.parametrize(
    "change", [one_digit, one_missing, one_doubled, two_swapped, another_seal, blank_line, cut_off]
)
def test_a_text_that_was_changed_is_judged_by_what_it_says_now(change: Callable[[Lines], Lines], run: Path) -> None:
    file = run / "history.jsonl"
    file.write_bytes(b"".join(change(file.read_bytes().splitlines(keepends=True))))
    edited, packed = read_history(run, edited=True), read_history(run)
    assert packed.flawed or not packed.complete
    (run / COLUMNS_FILE).unlink()
    assert packed == read_history(run)
    assert edited == read_history(run, edited=True)


def halved(data: bytes) -> bytes:
    return data[: len(data) // 2]


def garbled(data: bytes) -> bytes:
    return data[: len(data) // 2] + bytes(8) + data[len(data) // 2 + 8 :]


@pytest.mark.parametrize(
    "damage",
    [halved, garbled, lambda data: b"", lambda data: data[1:], lambda data: packs.MAGIC + b"\xff" * 99],
    ids=["half", "garbled", "empty", "another magic", "no pack"],
)
def test_damaged_packs_are_left_out(damage: Callable[[bytes], bytes], run: Path) -> None:
    file = run / COLUMNS_FILE
    file.write_bytes(damage(file.read_bytes()))
    assert read_history(run) == by_text(run)


def test_a_pack_that_does_not_fit_its_text_is_not_believed(run: Path) -> None:
    """Neither another last sample, nor lines that are not where it says, nor columns of other lengths."""
    good = packs_of(run)
    text = by_text(run)

    def changed(pack: Pack, **fields: object) -> Pack:
        return msgspec.structs.replace(pack, **fields)

    span = good[1].spans[-1]
    later = array("d", span.at)
    later[-1] += 0.5
    other = msgspec.structs.replace(span, at=later.tobytes())
    short = msgspec.structs.replace(span, at=span.at[:-8])
    wrong = [
        changed(good[1], spans=[*good[1].spans[:-1], other]),
        changed(good[1], spans=[*good[1].spans[:-1], short]),
        changed(good[1], others=[(place, begin + 1, end) for place, begin, end in good[1].others]),
        changed(good[1], begin=good[1].begin + 1),
        changed(good[1], first=good[1].first + 1),
        changed(good[1], sections=good[1].sections[:-1]),
        changed(good[1], sections=[changed_part(good[1], digest="0" * 64), *good[1].sections[1:]]),
        good[0],
    ]
    for pack in wrong:
        rewrite(run, [*good[:1], pack, *good[2:]])
        assert read_history(run) == text


def test_a_history_that_was_edited_is_what_its_lines_say(run: Path) -> None:
    """A pack that somebody forged together with its digests cannot be recognised; ``--edited`` does not read packs."""
    good = packs_of(run)
    span = good[1].spans[-1]
    times = array("d", span.at)
    times[-2] += (times[-1] - times[-2]) / 2
    forged = msgspec.structs.replace(
        good[1], spans=[*good[1].spans[:-1], msgspec.structs.replace(span, at=times.tobytes())]
    )
    rewrite(run, [good[0], forged, *good[2:]])
    plain, edited = read_history(run), read_history(run, edited=True)
    (run / COLUMNS_FILE).unlink()
    assert plain != read_history(run)
    assert edited == read_history(run, edited=True)


def changed_part(pack: Pack, **fields: object) -> packs.SealedPart:
    return msgspec.structs.replace(pack.sections[0], **fields)


def test_packs_of_another_history_are_left_out(run: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    other = tmp_path_factory.mktemp("other")
    with Recorder(other / "history.jsonl", packed_from=0) as recorder:
        for event in LongStory(replace(SHAPE, seed=2)).events():
            recorder.record(event)
    (run / COLUMNS_FILE).write_bytes((other / COLUMNS_FILE).read_bytes())
    assert read_history(run) == by_text(run)


def test_what_is_no_file_is_not_read(run: Path) -> None:
    (run / COLUMNS_FILE).unlink()
    (run / COLUMNS_FILE).symlink_to("/dev/zero")
    assert not read_history(run).flawed


def test_a_writer_that_was_killed_leaves_packs_that_fit(tmp_path: Path) -> None:
    """Another one goes on after it, and makes no more packs."""
    recorder, some = Recorder(tmp_path / "history.jsonl", packed_from=0), list(events())
    for event in some[:1500]:
        recorder.record(event)
    del recorder  # never closed: its process was killed
    made = packs_of(tmp_path)
    with Recorder(tmp_path / "history.jsonl", packed_from=0) as recorder:
        for event in some[1500:]:
            recorder.record(event)
    assert packs_of(tmp_path) == made
    assert made
    packed = read_history(tmp_path)
    assert not packed.flawed
    assert packed == by_text(tmp_path)


def test_a_history_that_begins_anew_has_no_packs_of_the_old_one(run: Path) -> None:
    (run / "history.jsonl").unlink()
    Recorder(run / "history.jsonl").close()
    assert not (run / COLUMNS_FILE).exists()


def test_a_closed_segment_has_no_packs(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl", packed_from=0) as recorder:
        for event in events():
            recorder.record(event)
        assert (tmp_path / COLUMNS_FILE).exists()
        recorder.close_segment()
    assert not (tmp_path / COLUMNS_FILE).exists()
    assert not read_history(tmp_path).flawed


def test_a_full_disk_costs_the_packs_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(packed_text, "write_pack", full)
    with Recorder(tmp_path / "history.jsonl", packed_from=0) as recorder:
        for event in events():
            recorder.record(event)
    assert not (tmp_path / COLUMNS_FILE).exists()
    history = read_history(tmp_path)
    assert history.complete
    assert not history.flawed


def test_a_short_history_has_no_packs(tmp_path: Path) -> None:
    with Recorder(tmp_path / "history.jsonl") as recorder:
        for event in events():
            recorder.record(event)
    assert not (tmp_path / COLUMNS_FILE).exists()


@pytest.mark.parametrize("seed", range(8))
def test_a_packed_column_is_like_one_of_its_numbers(seed: int) -> None:
    dice = random.Random(seed)
    for _ in range(60):
        packed, plain = Column(), Column()
        numbers: list[int] = []
        for _ in range(dice.randrange(1, 5)):
            most = dice.choice((0, 2, 300, 2**33))
            some = [dice.randrange(most + 1) for _ in range(dice.randrange(1, 6))]
            some = sorted(some) if dice.random() < 0.5 else some
            one = pack_column(some)
            assert one is not None
            if dice.random() < 0.3:
                packed.extend(some)
            else:
                packed.extend_packed(one, len(some))
            plain.extend(some)
            numbers += some
        assert list(packed.numbers) == list(plain.numbers) == numbers
        assert packed.constant == plain.constant
        assert packed.falls == plain.falls == any(one > two for one, two in pairwise(numbers))
        assert list(unchanged([packed])) == list(unchanged([plain]))


def test_numbers_that_do_not_fit_are_not_packed() -> None:
    assert pack_column([1, 2**63]) is None
    assert pack_column([-1, 2]) is None
    assert pack_column([7, 7]) == 7
