"""Records that are there and say nothing: censuses without a kind, states without a boot id, empty properties."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace
from stories import Bench
from watched import watched

from plugpull.checks import nothing_left
from plugpull.checks.record.contents import missing_contents
from plugpull.checks.record.on_record import on_record
from plugpull.history import events as ev

THINGS: dict[str, tuple[str, ...]] = {"usb device": ("usb1",), "kernel thread": ("usb-storage",), "open file": ()}


def counted() -> Bench:
    """A healthy story with censuses that count things, caches and memory."""
    bench = watched()
    for at, moment in ((10.95, "begin"), (25.75, "end")):
        caches, memory = {"kmalloc-64": 4096}, {"Percpu": 4096}
        bench.add(ev.Census(at=at, moment=moment, things=THINGS, slab=caches, memory=memory))  # type: ignore[arg-type]
    return bench


def at_the_end(census: ev.Event) -> bool:
    return getattr(census, "moment", "") == "end"


def test_records_with_contents_are_whole() -> None:
    assert list(missing_contents(counted().story())) == []


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [
        ({"things": {kind: THINGS[kind] for kind in ("usb device", "open file")}}, "kernel thread"),
        ({"slab": {}}, "what its caches hold"),
        ({"memory": {}}, "Percpu in /proc/meminfo"),
    ],
)
def test_a_census_without_a_kind_that_the_other_has(changes: dict[str, object], lacks: str) -> None:
    bench = counted()
    bench.replace(ev.Census, at_the_end, **changes)
    (said,) = missing_contents(bench.story())
    assert said.startswith("the census of ")
    assert said.endswith(f"(end) lacks {lacks}")


def test_censuses_that_counted_nothing() -> None:
    bench = counted()
    bench.replace(ev.Census, things={})
    assert "the censuses counted nothing, not even USB root hubs" in missing_contents(bench.story())
    bench.replace(ev.DutReady, records=())
    assert list(missing_contents(bench.story())) == []


@pytest.mark.parametrize(
    ("changes", "lacks"),
    [({"boot_id": ""}, "its boot id"), ({"modules": {}, "memory": {}}, "its modules, its memory")],
)
def test_a_state_without_a_part_that_the_other_has(changes: dict[str, object], lacks: str) -> None:
    bench = counted()
    bench.replace(ev.DutState, at_the_end, **changes)
    assert list(missing_contents(bench.story())) == [f"the state of the kernel at the end lacks {lacks}"]


@pytest.mark.parametrize(("name", "said"), [("kernel", "version"), ("boot_id", "boot id")])
def test_the_agent_of_another_kernel(name: str, said: str) -> None:
    bench = counted()
    changes: dict[str, object] = {name: "another"}
    bench.replace(ev.DutReady, lambda event: True, **changes)
    state = bench.story().of(ev.DutState)[0]
    expected = f"the DUT's {said} was another when its agent answered, and {getattr(state, name)} at the beginning"
    assert list(missing_contents(bench.story())) == ([expected] if getattr(state, name) else [])


def _lose_size(event: ev.DiskProperties) -> ev.DiskProperties:
    return replace(event, values={name: value for name, value in event.values.items() if name != "size"})


@pytest.mark.parametrize(
    ("moment", "edit", "lack"),
    [
        ("end", _lose_size, "size"),
        ("end", lambda event: replace(event, values={}), "all of its properties"),
        ("attached", _lose_size, "size"),
    ],
)
def test_properties_that_are_missing(
    moment: str, edit: Callable[[ev.DiskProperties], ev.DiskProperties], lack: str
) -> None:
    bench = counted()
    last = [event for event in bench.events if isinstance(event, ev.DiskProperties) and event.moment == moment][-1]
    bench.events = [edit(last) if event is last else event for event in bench.events]
    said = list(missing_contents(bench.story()))
    assert len(said) == bool(lack)
    assert all(f"properties of {last.disk}" in one for one in said)
    if lack == "size":
        assert said[0].endswith(f"({moment}) lack size")


def test_a_disk_that_leaves_while_it_is_read_may_lack_some() -> None:
    bench = counted()
    came = [event for event in bench.events if isinstance(event, ev.DiskAttached) and event.disk][-1]
    at = (came.at or 0.0) + 0.1
    read = ev.DiskProperties(at=at, disk=came.disk, kname="sdx", diskseq=90, moment="attached", values={"ro": "0"})
    bench.add(replace(came, at=at - 0.05, kname="sdx", diskseq=90))
    bench.add(ev.DiskDetached(at=at + 1.0, disk=came.disk, kname="sdx", diskseq=90), read)
    assert list(missing_contents(bench.story())) == []


def test_an_empty_record_is_unknown() -> None:
    bench = counted()
    bench.replace(ev.Census, at_the_end, slab={})
    assert any("lacks what its caches hold" in one for one in bench.judge(on_record()).unknowns)


def test_a_boot_id_that_neither_state_has() -> None:
    bench = counted()
    bench.replace(ev.DutState, boot_id="", modules={})
    assert list(missing_contents(bench.story())) == [
        f"the state of the kernel at the {end} lacks its boot id" for end in ("beginning", "end")
    ]


def test_a_kind_that_was_not_counted_at_the_beginning_is_not_left_over() -> None:
    bench = counted()
    bench.replace(ev.Census, at_the_end, things={**THINGS, "kernel thread": ("usb-storage", "usb-storage")})
    assert bench.judge(nothing_left()).findings
    fewer = {kind: names for kind, names in THINGS.items() if kind != "kernel thread"}
    bench.replace(ev.Census, lambda census: census.moment == "begin", things=fewer)
    assert bench.judge(nothing_left()).findings == ()
    assert bench.judge(on_record()).unknowns
