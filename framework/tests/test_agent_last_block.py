"""A disk that reports more sectors than it has is to blame for being refused; one that went away is not."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import pytest
from agents import PATIENCE
from test_agent_link import link_by_hand, request

from plugpull.dut.agent import disks
from plugpull.dut.agent.last_block import BLOCK, ends_early
from plugpull.dut.conversation.link import GuardRefused
from plugpull.errors import DutError

SIZE = 16 * BLOCK


@contextmanager
def medium(path: Path, size: int) -> Iterator[int]:
    path.write_bytes(bytes(size))
    fd = os.open(path, os.O_RDWR)
    try:
        yield fd
    finally:
        os.close(fd)


@pytest.mark.parametrize(("there", "early"), [(SIZE, False), (SIZE - 512, True), (BLOCK, True), (0, False)])
def test_a_disk_ends_early_if_only_its_end_cannot_be_read(tmp_path: Path, there: int, early: bool) -> None:
    with medium(tmp_path / "disk", there) as fd:
        assert ends_early(fd, SIZE) is early


@pytest.mark.parametrize(("there", "broken"), [(SIZE // 2, True), (0, False)])
def test_the_guard_names_a_disk_that_reports_too_many_sectors(tmp_path: Path, there: int, broken: bool) -> None:
    with medium(tmp_path / "disk", there) as fd, pytest.raises(disks.Refused) as refusal:
        disks._refuse_used("sda", fd, SIZE, str(tmp_path), "8:0", {})
    assert isinstance(refusal.value, disks.Broken) is broken
    last = f"sda cannot be read at sector {SIZE // 512 - 1}, the last of the disk: READ CAPACITY reports too many"
    assert (str(refusal.value) == last) is broken


@pytest.mark.parametrize(("broken", "raised"), [(True, DutError), (False, GuardRefused)])
def test_a_disk_that_is_to_blame_is_named_instead_of_the_bench(broken: bool, raised: type[Exception]) -> None:
    with link_by_hand() as (link, theirs, _), ThreadPoolExecutor(1) as pool:
        asked = pool.submit(link.call, "writer.start", PATIENCE)
        answer = {"id": request(theirs)["id"], "ok": False, "refused": True, "broken": broken, "why": "too many"}
        theirs.sendall(json.dumps(answer).encode() + b"\n")
        with pytest.raises(raised, match="too many"):
            asked.result(PATIENCE)
