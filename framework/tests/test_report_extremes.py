"""What packs store of the rates of a long scenario: its page is the same without them."""

from __future__ import annotations

import random
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest

from benchmarks.long_shape import Shape
from benchmarks.long_story import LongStory
from plugpull.history import packed_text, packs
from plugpull.history.extremes import BLOCK, ends_of_each, extremes_of, whole_blocks
from plugpull.history.packs import COLUMNS_FILE, Pack, read_packs, write_pack
from plugpull.history.reader import read_history
from plugpull.history.recorder import Recorder
from plugpull.history.tape import table_of
from plugpull.report import sampling
from plugpull.report.sampling import Column, Sampling


@pytest.fixture(scope="module", autouse=True)
def short() -> Iterator[None]:
    """Packs of few lines, and few samples that make a scenario long."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(packed_text, "SECTIONS", 3)
        patch.setattr(sampling, "LONG", 50)
        yield


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("recorded")
    with Recorder(run / "history.jsonl", packed_from=0) as recorder:
        for event in LongStory(Shape(hours=0.08, disks=4, cuts=2)).events():
            recorder.record(event)
    return run


@pytest.fixture
def run(recorded: Path, tmp_path: Path) -> Path:
    for name in ("history.jsonl", COLUMNS_FILE):
        (tmp_path / name).write_bytes((recorded / name).read_bytes())
    return tmp_path


@dataclass
class Drawn:
    """What is drawn of each attachment, and how many samples' rates were taken from packs."""

    columns: list[tuple[Column, Column]]
    stored: int


def drawn(run: Path, monkeypatch: pytest.MonkeyPatch, first: int = 0) -> Drawn:
    """``first``: the first row that is drawn."""
    (story,) = read_history(run).stories
    table, taken = table_of(story.events), [0]
    cuts = [(cut.off.commanded_at or 0.0, cut.on.commanded_at or 0.0) for cut in story.cut_records]
    stored = Sampling._stored

    def counted(*arguments: object) -> list[sampling.StoredPart]:
        found = stored(*arguments)  # type: ignore[arg-type]
        taken[0] += sum(part.end - part.begin for part in found)
        return found

    with monkeypatch.context() as patch:
        patch.setattr(Sampling, "_stored", counted)
        shown = Sampling(table, range(first, len(table))).thinned(cuts)
        return Drawn([shown.rates([key]) for key in table.streams], taken[0])


def rewrite(run: Path, rows: int = 0, **fields: object) -> None:
    """Change the packs of a run: their spans begin so many ``rows`` later; other ``fields`` are those of each disk."""
    with (run / COLUMNS_FILE).open("rb") as file:
        made = list(read_packs(file))
    with (run / COLUMNS_FILE).open("wb") as file:
        file.write(packs.MAGIC)
        for pack in made:
            write_pack(file, msgspec.structs.replace(pack, spans=_changed(pack, rows, fields)))


def _changed(pack: Pack, rows: int, fields: dict[str, object]) -> list[packs.PackedSpan]:
    return [
        msgspec.structs.replace(
            span, row=span.row + rows, disks=[msgspec.structs.replace(disk, **fields) for disk in span.disks]
        )
        for span in pack.spans
    ]


def test_the_same_is_drawn_with_packs_and_without(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = drawn(run, monkeypatch)
    (run / COLUMNS_FILE).unlink()
    text = drawn(run, monkeypatch)
    assert packed.columns == text.columns
    assert text.stored == 0
    assert packed.stored > 1000, "most rates are taken from packs"


def test_packs_of_other_rows_are_not_taken(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For example if samples before them were lost, or are of another scenario."""
    right = drawn(run, monkeypatch)
    rewrite(run, rows=BLOCK)
    wrong = drawn(run, monkeypatch)
    assert wrong.columns == right.columns
    assert wrong.stored == 0


def test_buckets_that_are_no_blocks_are_calculated(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packed = drawn(run, monkeypatch, first=7)
    (run / COLUMNS_FILE).unlink()
    assert packed.columns == drawn(run, monkeypatch, first=7).columns
    assert packed.stored == 0


def test_a_pack_without_extremes_is_as_good(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    right = drawn(run, monkeypatch)
    rewrite(run, extremes=(b"", b""))
    assert drawn(run, monkeypatch) == Drawn(right.columns, 0)


def test_a_pack_with_too_few_extremes_is_left_out(run: Path) -> None:
    text = read_history(run)
    rewrite(run, extremes=(bytes(16), b""))
    with (run / COLUMNS_FILE).open("rb") as file:
        assert list(read_packs(file)) == []
    assert read_history(run) == text


@pytest.mark.parametrize("seed", range(5))
def test_the_extremes_of_blocks_are_those_of_their_rates(seed: int) -> None:
    dice = random.Random(seed)
    row, count = dice.randrange(100), dice.randrange(1, 200)
    times, numbers = [1.0], [0]
    for _ in range(count - 1):
        times.append(times[-1] + dice.uniform(0.05, 0.2))
        numbers.append(numbers[-1] + dice.choice((0, 4096, 8192)))
    steps = [two - one for one, two in pairwise(times)]
    rates = {row + place: (numbers[place] - numbers[place - 1]) / steps[place - 1] for place in range(1, count)}
    wanted: list[float] = []
    for begin in range(0, row + count, BLOCK):
        block = [rates[each] for each in range(begin, begin + BLOCK) if each in rates]
        if len(block) == BLOCK:
            wanted += ends_of_each(block, BLOCK)
    assert array("d", extremes_of(numbers, steps, row)).tolist() == wanted
    assert len(whole_blocks(row, count)) * 2 == len(wanted)


def test_extremes_are_in_their_order() -> None:
    assert ends_of_each([3.0, 1.0, 2.0, 1.0, 2.0, 3.0, 9.0], 3) == [3.0, 1.0, 1.0, 3.0]
    assert ends_of_each([1.0, 2.0, 1.0, 2.0], 4) == [1.0, 2.0]
