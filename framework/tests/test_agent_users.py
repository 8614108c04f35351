"""Who has a device open that the guard could not claim."""

from __future__ import annotations

import os
from pathlib import Path

from plugpull.dut.agent.users import in_use, users_of

BECAUSE = "a filesystem is mounted from it"


def test_a_process_that_has_the_device_open_is_named() -> None:
    before = users_of("/dev/full")
    with open("/dev/full", "rb"):
        during = users_of("/dev/full")
    own = f"(process {os.getpid()})"
    assert not any(own in one for one in before)
    (mine,) = (one for one in during if own in one)
    assert mine == f"{Path('/proc/self/comm').read_text().strip()} {own}"


def test_the_refusal_names_it_beside_what_the_kernel_may_hold() -> None:
    with open("/dev/full", "rb"):
        said = in_use("full", BECAUSE)
    assert said.startswith(f"full is in use: {BECAUSE}. full: open in ")
    assert f"(process {os.getpid()})" in said


def test_nothing_is_named_that_does_not_have_it_open(tmp_path: Path) -> None:
    process = tmp_path / "7" / "fd"
    process.mkdir(parents=True)
    (tmp_path / "7" / "comm").write_text("fio\n")
    (process / "0").symlink_to("/dev/zero")
    (process / "1").symlink_to(tmp_path / "gone")
    assert users_of("/dev/full", str(tmp_path)) == []
    assert in_use("full", BECAUSE, str(tmp_path)) == f"full is in use: {BECAUSE}"
    assert users_of("/dev/zero", str(tmp_path)) == ["fio (process 7)"]


def test_what_cannot_be_read_is_no_reason_to_fail(tmp_path: Path) -> None:
    (tmp_path / "8").mkdir()
    assert users_of("/dev/no-such-device") == []
    assert users_of("/dev/full", str(tmp_path / "gone")) == []
    assert users_of("/dev/full", str(tmp_path)) == []
