"""The live and the plain view, fed with a made-up run."""

from __future__ import annotations

import io
import threading
from collections.abc import Iterable

import pytest
import report_stories as made
from rich.console import Console

from plugpull.history import events as ev
from plugpull.judging.results import Verdict
from plugpull.report.live import LiveView, PlainView, View, view_for


def screen(width: int = 140) -> Console:
    return Console(file=io.StringIO(), record=True, width=width, height=50, force_terminal=True, legacy_windows=False)


def shown(view: LiveView) -> str:
    console = screen()
    console.print(view.render())
    return console.export_text()


def fed(events: Iterable[ev.Event], until: float) -> LiveView:
    view = LiveView(screen())
    for event in events:
        if event.at is None or event.at <= until:
            view.feed(event)
    return view


def row(text: str, disk: str) -> str:
    return next(line for line in text.splitlines() if line.startswith(disk))


def test_every_disk_has_a_row_with_its_role_state_and_rate() -> None:
    text = shown(fed(made.run().stories[made.PASSING], until=made.START + 8.0))
    assert "temporary cable cut while writing" in text
    assert "8.0 s" in text
    assert "armed" in text
    for disk, kname, role in (("disk1", "sda", "victim"), ("disk2", "sdb", "survivor"), ("disk3", "sdc", "survivor")):
        cells = row(text, disk).split()
        assert cells[1:3] == [role, kname]
        assert "MB/s" in cells
        assert "█" in cells[-1]


def test_a_disk_that_was_cut_is_gone_and_its_sparkline_has_a_hole() -> None:
    text = shown(fed(made.run().stories[made.PASSING], until=made.CUT_AT + 2.0))
    cells = row(text, "disk1").split()
    assert cells[2] == "gone"
    assert "·" in cells[-1]
    assert "·" not in row(text, "disk2").split()[-1][8:]


def test_a_stalled_disk_is_at_the_floor_though_it_is_there() -> None:
    text = shown(fed(made.run().stories[made.FAILING], until=made.CUT_AT + 2.0))
    cells = row(text, "disk3").split()
    assert cells[2] == "sdc"
    assert "MB/s" not in cells
    assert cells[-1].endswith("▁▁")


def test_faults_edges_and_kernel_messages_are_listed_as_they_happen() -> None:
    text = shown(fed(made.run().stories[made.PASSING], until=made.CUT_AT + 1.0))
    assert "cut 1: disk1.cable off, commanded (cables.1)" in text
    assert "[ 113.303] kernel: usb 1-1: USB disconnect, device number 2" in text
    assert "disk1 detached (was sda)" in text


def test_it_runs_on_a_terminal_and_leaves_only_the_verdicts() -> None:
    console = screen()
    with LiveView(console) as view:
        for event in made.run().stories[made.PASSING]:
            view(event)
        view.verdict(made.PASSING, Verdict.PASS, made.passing().sentence)
    assert "PASS scenarios/test_cable.py" in console.export_text()


def test_feeding_from_many_threads_while_it_draws_loses_nothing() -> None:
    view = LiveView(screen())
    events = made.run().stories[made.PASSING]
    failed: list[BaseException] = []

    def feed() -> None:
        try:
            for event in events:
                view.feed(event)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=feed) for _ in range(4)]
    for thread in threads:
        thread.start()
    while any(thread.is_alive() for thread in threads):
        shown(view)
    assert failed == []
    assert "disk3" in shown(view)


def test_a_new_scenario_starts_with_an_empty_table() -> None:
    view = fed(made.run().stories[made.PASSING], until=made.END)
    view.feed(ev.ScenarioBegun(id="t::test_next", wall="", seed=1))
    text = shown(view)
    assert "next" in text
    assert not any(line.startswith("disk1") for line in text.splitlines())


def test_hostile_words_are_neither_markup_nor_escapes() -> None:
    view = LiveView(screen())
    view.feed(ev.KernelMessage(at=1.0, text="[bold]\x1b[2J[/nonsense] \x07"))
    view.feed(ev.RigFault(at=1.0, summary="[/] \x1b]0;title\x07"))
    text = shown(view)
    assert "[bold]" in text
    assert "\x1b" not in text
    assert "␛[2J" in text


def plain(events: Iterable[ev.Event]) -> list[str]:
    console = Console(file=io.StringIO(), record=True, width=80)
    view = PlainView(console)
    for event in events:
        view(event)
    view.verdict(made.PASSING, Verdict.PASS, "all went well")
    return console.export_text().splitlines()


def test_plain_lines_tell_the_story_with_the_time_of_the_dut() -> None:
    lines = plain(made.run().stories[made.PASSING])
    for line in (
        f"[ 104.220] scenario {made.PASSING} begins (row X06)",
        "[ 105.620] phase load",
        "[ 113.220] cut 1: disk1.cable off, commanded (cables.1)",
        "[ 113.338] disk1 detached (was sda)",
        "[ 116.730] disk1 attached as sda at 480 Mb/s (256 MiB, 0000:00:05.0/1:0)",
        f"[ 124.220] PASS {made.PASSING}: all went well",
    ):
        assert line in lines
    assert not any("kernel:" in line for line in lines), "the kernel has a log of its own"


def test_plain_lines_tell_faults_of_the_bench_and_how_to_mend_them() -> None:
    lines = plain(made.run().stories[made.UNKNOWN])
    assert "[       ?] rig: hubs: /dev/ttyUSB0 did not answer within 2 s (hint: plug the relay board in)" in lines


def test_the_view_fits_the_console(monkeypatch: pytest.MonkeyPatch) -> None:
    def kind(view: View) -> type:
        return type(view)

    monkeypatch.setenv("TERM", "xterm")
    assert kind(view_for(screen())) is LiveView
    assert kind(view_for(Console(file=io.StringIO()))) is PlainView
    monkeypatch.setenv("TERM", "dumb")
    assert kind(view_for(screen())) is PlainView
