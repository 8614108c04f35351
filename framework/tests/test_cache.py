"""The cache: an entry is built once for all processes, is never left in part, and is not removed while it is used."""

from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from plugpull import cache as cache_module
from plugpull.cache import Cache, parse_age
from plugpull.errors import RigError, UsageError
from plugpull.setup.place import lock

DEADLINE = 60.0

PROLOGUE = """
import os, sys, time
from pathlib import Path
from plugpull.cache import Cache
root = Path(sys.argv[1])
cache = Cache(root / "cache", notify=lambda text: (root / f"said-{os.getpid()}").write_text(text))
def wait_for(path):
    while not path.exists():
        time.sleep(0.01)
"""


def start(root: Path, body: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", PROLOGUE + textwrap.dedent(body), str(root)])


def wait_for(path: Path) -> None:
    deadline = time.monotonic() + DEADLINE
    while not path.exists():
        assert time.monotonic() < deadline, f"{path} never came"
        time.sleep(0.01)


def write(text: str) -> cache_module.Build:
    def build(place: Path) -> None:
        (place / "file").write_text(text)

    return build


def leftovers(root: Path) -> list[str]:
    return sorted(path.name for path in root.glob("*/*") if not path.name.endswith(".lock"))


def test_built_once_and_found_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    first = cache.get("image", "k1", write("one"), description="an image")
    again = cache.get("image", "k1", write("two"))
    assert first == again
    assert (again / "file").read_text() == "one"
    (entry,) = cache.entries()
    assert (entry.kind, entry.key, entry.description) == ("image", "k1", "an image")
    assert entry.size > 0


def test_trimming_keeps_the_most_recently_used_and_what_is_in_use(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for number in range(4):
        cache.get("image", f"k{number}", write("x"))
        os.utime(tmp_path / "image" / f"k{number}" / "entry.json", (1000 + number, 1000 + number))
    cache.get("other", "k", write("x"))
    fd = lock(str(tmp_path / "image" / "k0.lock"), shared=True)
    assert fd is not None
    cache.trim("image", keep=2)
    os.close(fd)
    assert [(entry.kind, entry.key) for entry in cache.entries() if entry.kind == "image"] == [
        ("image", "k0"),
        ("image", "k2"),
        ("image", "k3"),
    ]
    assert [entry.kind for entry in cache.entries()].count("other") == 1


def test_a_failed_build_leaves_nothing_and_can_be_tried_again(tmp_path: Path) -> None:
    cache = Cache(tmp_path)

    def fail(place: Path) -> None:
        (place / "half").write_text("x")
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        cache.get("image", "k1", fail)
    assert leftovers(tmp_path) == []
    assert cache.get("image", "k1", write("one")).is_dir()


def test_two_processes_at_once_build_once(tmp_path: Path) -> None:
    body = """
    def build(place):
        with open(root / "builds", "a") as log:
            log.write("built\\n")
        (root / "building").touch()
        wait_for(root / "go")
        (place / "file").write_text("whole")
    path = cache.get("image", "k1", build)
    assert (path / "file").read_text() == "whole"
    """
    both = [start(tmp_path, body), start(tmp_path, body)]
    wait_for(tmp_path / "building")
    deadline = time.monotonic() + DEADLINE
    while not (said := list(tmp_path.glob("said-*"))):  # the second one says that it waits
        assert time.monotonic() < deadline
        time.sleep(0.01)
    (tmp_path / "go").touch()
    assert [process.wait(DEADLINE) for process in both] == [0, 0]
    assert (tmp_path / "builds").read_text() == "built\n"
    assert "waiting for another run" in said[0].read_text()


def test_a_killed_build_is_swept_and_made_again(tmp_path: Path) -> None:
    body = """
    def build(place):
        (place / "half").write_text("half")
        (root / "building").touch()
        wait_for(root / "never")
    cache.get("image", "k1", build)
    """
    process = start(tmp_path, body)
    wait_for(tmp_path / "building")
    cache = Cache(tmp_path / "cache")
    cache.sweep()  # not ours to sweep while it is being made
    assert len(leftovers(tmp_path / "cache")) == 1
    process.send_signal(signal.SIGKILL)
    process.wait(DEADLINE)
    assert cache.entries() == []
    assert (cache.get("image", "k1", write("whole")) / "file").read_text() == "whole"
    assert leftovers(tmp_path / "cache") == ["k1"]


def test_a_build_killed_elsewhere_is_swept_by_the_next_build(tmp_path: Path) -> None:
    (tmp_path / "image" / "k1.building-dead" / "content").mkdir(parents=True)
    (tmp_path / "image" / "k2.removing-dead" / "content").mkdir(parents=True)
    Cache(tmp_path).get("image", "k3", write("x"))
    assert leftovers(tmp_path) == ["k3"]


def test_an_entry_in_use_is_not_cleared(tmp_path: Path) -> None:
    body = """
    with cache.use("image", "k1", lambda place: None):
        (root / "holding").touch()
        wait_for(root / "never")
    """
    process = start(tmp_path, body)
    wait_for(tmp_path / "holding")
    cache = Cache(tmp_path / "cache")
    cache.get("image", "k2", write("x"))
    cleared = cache.clear()
    assert [entry.key for entry in cleared.removed] == ["k2"]
    assert [entry.key for entry in cleared.in_use] == ["k1"]
    process.kill()  # the lock dies with its holder
    process.wait(DEADLINE)
    assert [entry.key for entry in cache.clear().removed] == ["k1"]
    assert list((tmp_path / "cache" / "image").iterdir()) == []


def test_hold_keeps_an_entry_and_misses_none(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    cache.get("image", "k1", write("x"))
    with cache.hold("image", "k1") as place:
        assert not cache.clear().removed
        assert (place / "file").exists()
    with pytest.raises(RigError, match="no image k2"), cache.hold("image", "k2"):
        pass


def test_clear_goes_by_age_and_kind(tmp_path: Path) -> None:
    cache = Cache(tmp_path)
    for kind, key in (("image", "old"), ("image", "new"), ("kernel", "old")):
        cache.get(kind, key, write("x"))
    for kind in ("image", "kernel"):
        os.utime(tmp_path / kind / "old" / "entry.json", (0, time.time() - 10 * 86400))
    assert [(e.kind, e.key) for e in cache.clear(older_than=86400, kind="image").removed] == [("image", "old")]
    cache.get("kernel", "old", write("x"))  # using it makes it young
    assert cache.clear(older_than=86400).removed == ()


def test_a_build_that_cannot_fit_is_refused_before_it_begins(tmp_path: Path) -> None:
    with pytest.raises(RigError) as caught:
        Cache(tmp_path).get("image", "k1", write("x"), description="the guest image", needs=1 << 60)
    assert "the guest image needs about" in caught.value.what
    assert "plugpull cache clear" in caught.value.hint


def test_a_disk_that_gets_full_is_the_rigs_trouble(tmp_path: Path) -> None:
    def fill(place: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with pytest.raises(RigError, match="the disk became full while making the guest image"):
        Cache(tmp_path).get("image", "k1", fill, description="the guest image", needs=1 << 20)
    assert leftovers(tmp_path) == []


def test_a_cache_that_cannot_be_made_is_a_usage_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        Cache(tmp_path / "file" / "cache").get("image", "k1", write("x"))


def test_names_that_would_leave_the_cache_are_refused(tmp_path: Path) -> None:
    for key in ("../x", "", ".x", "a/b", "x.lock"):
        with pytest.raises(ValueError, match="not a valid name"):
            Cache(tmp_path).get("image", key, write("x"))


def test_a_lock_whose_file_was_removed_is_not_taken_for_the_lock(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    first = lock(str(path))
    assert first is not None
    path.unlink()
    second = lock(str(path), wait=False)
    assert second is not None
    assert lock(str(path), wait=False) is None
    os.close(first)
    os.close(second)


def test_show_and_clear_print_what_there_is(tmp_path: Path) -> None:
    out = StringIO()
    console = Console(file=out, width=100)
    cache = Cache(tmp_path)
    cache_module.show(cache, console)
    cache.get("image", "k1", write("x"), description="the guest image")
    cache_module.show(cache, console)
    with cache.hold("image", "k1"):
        cache_module.clear(cache, console)
    cache_module.clear(cache, console)
    text = out.getvalue()
    assert "The cache is empty" in text
    assert "the guest image" in text
    assert "kept, because it is in use: image the guest image" in text
    assert "removed 1 entries" in text


def test_ages() -> None:
    assert parse_age("90m") == 5400
    assert parse_age("2w") == 14 * 86400
    with pytest.raises(UsageError, match="not an age"):
        parse_age("soon")


OTHERS = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a directory away")


def refused(call: Callable[[], object]) -> str:
    with pytest.raises(UsageError) as raised:
        call()
    return str(raised.value)


@OTHERS
@pytest.mark.parametrize("part", ["", "image", "image/k0", "journal"])
def test_what_another_user_made_is_not_used(tmp_path: Path, part: str) -> None:
    """It would be run: an environment, a kernel, what a journal says."""
    cache = Cache(tmp_path / "cache")
    cache.get("image", "k0", lambda folder: None)
    cache.journals()
    os.chown(cache.root / part, 65534, 65534)
    use = cache.journals if part == "journal" else lambda: cache.get("image", "k0", lambda folder: None)
    said = refused(use)
    expected = f"{cache.root / part} belongs to uid 65534, but this process has uid 0"
    assert expected.replace("/ ", " ") in said.replace("/ ", " ")
    assert "PLUGPULL_CACHE" in said


@pytest.mark.parametrize("mode", [0o777, 0o1777, 0o775])
def test_what_others_may_write_to_is_not_used(tmp_path: Path, mode: int) -> None:
    tmp_path.chmod(mode)
    said = refused(lambda: Cache(tmp_path).get("image", "k0", lambda folder: None))
    assert f"others may write to the cache directory {tmp_path}" in said
    assert refused(Cache(tmp_path).journals) == said
    assert tmp_path.stat().st_mode & 0o7777 == mode, "it may be /tmp: nothing about it is changed"


def test_directories_of_the_cache_are_private(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        cache = Cache(tmp_path / "deep" / "cache")
        cache.get("image", "k0", lambda folder: None)
        cache.journals()
    finally:
        os.umask(old)
    for folder in (cache.root, cache.root / "image", cache.root / "journal"):
        assert folder.stat().st_mode & 0o777 == 0o700, folder
    Cache(cache.root).get("image", "k0", lambda folder: None)


def test_who_waited_for_an_entry_does_not_wait_for_its_users(tmp_path: Path) -> None:
    """The one that made it uses it at once, and for long."""
    cache, building, built = Cache(tmp_path), threading.Event(), threading.Event()
    done, used = threading.Event(), threading.Event()

    def build(place: Path) -> None:
        building.set()
        assert built.wait(DEADLINE)
        (place / "file").write_text("whole")

    def first() -> None:
        with cache.use("image", "k1", build):
            used.set()
            assert done.wait(DEADLINE)

    waits: list[str] = []
    second = Cache(tmp_path, notify=waits.append)
    with ThreadPoolExecutor(2) as pool:
        making = pool.submit(first)
        assert building.wait(DEADLINE)
        # It holds the shared lock from the moment on at which the exclusive one is gone, as a fast user would.
        asking = pool.submit(second.get, "image", "k1", write("again"))
        while not waits:
            assert not asking.done()
            time.sleep(0.005)
        built.set()
        assert used.wait(DEADLINE)
        try:
            assert (asking.result(DEADLINE) / "file").read_text() == "whole"
        finally:
            done.set()
        making.result(DEADLINE)
