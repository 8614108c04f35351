"""Slow steps are shown while they run: lines in a log, a spinner on a terminal; the boot of a guest is one."""

from __future__ import annotations

import io
import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from rich.console import Console

from plugpull.cache import Cache
from plugpull.progress import Lines, Spinner, notify_for, step
from plugpull.virtual import snapshot
from plugpull.virtual.kernel import KernelTree
from plugpull.virtual.machine import Shape

TEXT = "booting kernel 6.12 once (tcg), about 10 s"


def terminal() -> Console:
    return Console(file=io.StringIO(), width=100, force_terminal=True, legacy_windows=False, _environ={"TERM": "xterm"})


def log() -> Console:
    return Console(file=io.StringIO(), width=100)


def written(console: Console) -> str:
    return cast("io.StringIO", console.file).getvalue()


def show(console: Console) -> str:
    with step(notify_for(console), TEXT) as stage:
        stage("making its image")
        stage("waiting for its agent")
    return written(console)


def test_a_log_gets_plain_lines() -> None:
    assert show(log()).splitlines() == [
        f"plugpull: {TEXT}",
        "plugpull:   making its image (0 s)",
        "plugpull:   waiting for its agent (0 s)",
        "plugpull:   done after 0 s",
    ]


def test_a_terminal_gets_one_line_with_the_elapsed_time() -> None:
    shown = show(terminal())
    assert f"{TEXT}: waiting for its agent" in shown
    assert "0:00:00" in shown
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", shown)
    assert plain.splitlines()[-1].endswith(f"plugpull: {TEXT}: done after 0 s")


@pytest.mark.parametrize(("console", "kind"), [(terminal(), Spinner), (log(), Lines)])
def test_where_the_output_goes_decides(console: Console, kind: type) -> None:
    assert isinstance(notify_for(console), kind)


def test_anything_that_takes_a_sentence_will_do() -> None:
    said: list[str] = []
    with step(said.append, TEXT) as stage:
        stage("making its image")
    assert said == [TEXT, "  making its image (0 s)", "  done after 0 s"]


@pytest.mark.parametrize("console", [terminal(), log()])
def test_a_step_that_fails_is_not_done(console: Console) -> None:
    with pytest.raises(ValueError, match="no agent"), step(notify_for(console), TEXT):
        raise ValueError("no agent")
    assert "done" not in written(console)


@pytest.mark.parametrize("console", [terminal(), log()])
def test_foreign_text_is_made_safe(console: Console) -> None:
    with step(notify_for(console), "booting \x1b[31m[red]") as stage:
        stage("\x1b]0;title\x07")
    assert "\x1b[31m" not in written(console)
    assert "\x1b]0" not in written(console)
    assert "[red]" in written(console)


def test_the_boot_of_a_guest_shows_its_stages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    machine = SimpleNamespace(channels={}, freeze=lambda state: None, close=lambda: None)
    link = SimpleNamespace(call=lambda op, timeout: {}, close=lambda: None)
    monkeypatch.setattr(snapshot, "required_modules", lambda *_: [])
    monkeypatch.setattr(snapshot, "snapshot_key", lambda *_: "key")
    monkeypatch.setattr(snapshot, "boot_image", lambda *_: b"")
    monkeypatch.setattr(snapshot, "boot", lambda *_: (machine, None, link))
    monkeypatch.setattr(snapshot, "clock_rate", lambda link: 1.0)
    said: list[str] = []
    kernel = cast("KernelTree", SimpleNamespace(version="6.12"))
    shape = cast("Shape", SimpleNamespace(accel="tcg", cpus=2, memory=0))
    for _ in range(2):
        with snapshot.hold_snapshot(Cache(tmp_path / "cache"), shape, kernel, said.append):
            pass
    stages: list[Any] = [re.sub(r" \(\d+ s\)$", "", line).strip() for line in said]
    assert stages[:-1] == [
        TEXT,
        "making its image",
        "waiting for its agent",
        "measuring its clock",
        "saving it for later runs",
    ], "and nothing the second time: the snapshot is in the cache"
    assert stages[-1].startswith("done after")
