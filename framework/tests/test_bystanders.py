"""Bystanders seen from outside the guest: any write to a medium is noticed, wherever and whatever was written."""

from __future__ import annotations

from pathlib import Path

import pytest

from plugpull.history.events import SeenFromOutside
from plugpull.virtual.bystanders import fill, look

SIZE = 4 << 20


@pytest.fixture
def medium(tmp_path: Path) -> Path:
    path = tmp_path / "bystander.medium"
    with path.open("wb") as file:
        file.truncate(SIZE)
    fill(path, "bystander")
    return path


def seen(medium: Path) -> SeenFromOutside:
    return look(medium, "bystander", 1.0)


def test_one_that_nobody_touched_is_as_it_was(medium: Path) -> None:
    assert (seen(medium).ok, seen(medium).detail) == (True, "")
    assert medium.stat().st_blocks * 512 < SIZE, "the holes were filled"


@pytest.mark.parametrize("at", [0, 700, 1 << 20, 3_000_000, SIZE - 1])
@pytest.mark.parametrize("data", [b"\0", b"\xff"])
def test_one_byte_shows(medium: Path, at: int, data: bytes) -> None:
    before = medium.read_bytes()
    with medium.open("r+b") as file:
        file.seek(at)
        file.write(data)
    changed = medium.read_bytes() != before
    assert seen(medium).ok is not changed
    if changed:
        assert seen(medium).detail == f"1 sectors have changed, the first is sector {at // 512}"


def test_a_medium_that_was_zeroed_shows_it(medium: Path) -> None:
    medium.write_bytes(bytes(SIZE))
    assert not seen(medium).ok
