"""Random choices come from streams with names: one draw more from one does not change the others."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from desks import desk
from dry_runs import dry_run
from hypothesis import given, settings
from hypothesis import strategies as st

from plugpull.faults import at_random
from plugpull.history import events as ev
from plugpull.streams import DATA, TRIGGERS, VICTIMS, Streams

NAMES = (VICTIMS, TRIGGERS, DATA)


def drawn(order: list[str], seed: int = 7, scenario: str = "a") -> dict[str, list[float]]:
    """What each stream gives when they are drawn from in this order."""
    streams = Streams(seed, scenario)
    values: dict[str, list[float]] = {name: [] for name in NAMES}
    for name in order:
        values[name].append(streams.of(name).random())
    return values


def test_streams_differ_by_name_seed_and_scenario() -> None:
    first = [drawn([name])[name][0] for name in NAMES]
    first += [drawn([DATA], seed=8)[DATA][0], drawn([DATA], scenario="b")[DATA][0]]
    assert len(set(first)) == len(first)


@settings(deadline=None)
@given(st.lists(st.sampled_from(NAMES)))
def test_what_a_stream_gives_depends_on_no_other_stream(order: list[str]) -> None:
    for name, values in drawn(order).items():
        assert drawn([name] * len(values))[name] == values


def test_a_trigger_draws_the_same_moment_whatever_else_is_drawn(tmp_path: Path) -> None:
    def moments() -> Iterator[str]:
        for draws in (0, 3):
            with desk(tmp_path) as on_desk:
                for _ in range(draws):
                    on_desk.context.random.getrandbits(64)
                    on_desk.context.streams.of(VICTIMS).random()
                yield at_random(0, 0.02).wait(on_desk.context)

    assert len(set(moments())) == 1


SCENARIO = """
from plugpull.history import events as ev

def test_it(rig):
    for _ in range({victims}):
        rig.choose_victim()
    streams = rig.context.streams
    rig.context.recorder.record(ev.Note(text=f"{{streams.of('triggers').random()}} {{rig.context.random.random()}}"))
    rig.play()
"""


def test_a_scenario_that_chooses_once_more_keeps_its_moments_and_data(tmp_path: Path) -> None:
    said = []
    for victims in (1, 2):
        folder = tmp_path / str(victims)
        ran = dry_run(folder, {"test_s.py": SCENARIO.format(victims=victims)}, "--plugpull-seed", "5")
        (story,) = ran.history.stories
        said += [note.text for note in story.of(ev.Note)]
    assert len(said) == 2
    assert len(set(said)) == 1
