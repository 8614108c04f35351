"""A run directory that somebody else prepared: nothing outside of it is written or copied in."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from stories import encode, healthy, run_of

from plugpull.archive.compare import compare
from plugpull.archive.compare_show import write
from plugpull.cli import main
from plugpull.files import directory_inside, read_inside, write_whole
from plugpull.judging.outcome import write_outcome

WRITTEN = ("results.json", "junit.xml", "report.html", "kernel.log", "console.log")
KEY = b"-----BEGIN OPENSSH PRIVATE KEY-----\n"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    directory = tmp_path / "run"
    (directory / "scenarios").mkdir(parents=True)
    (directory / "history.jsonl").write_bytes(encode(run_of(healthy().scenario())))
    return directory


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "id_ed25519").write_bytes(KEY)
    return folder


def console(run: Path, name: str, content: bytes) -> None:
    (run / "scenarios" / name).mkdir()
    (run / "scenarios" / name / "console.log").write_bytes(content)


@pytest.mark.parametrize("name", WRITTEN)
def test_a_file_outside_is_not_overwritten(run: Path, outside: Path, name: str) -> None:
    (run / name).symlink_to(outside / "id_ed25519")
    assert main(["report", str(run)]) == 0
    assert (outside / "id_ed25519").read_bytes() == KEY
    assert not (run / name).is_symlink()
    assert (run / name).is_file()


@pytest.mark.parametrize("name", WRITTEN)
def test_no_file_is_made_outside(run: Path, outside: Path, name: str) -> None:
    (run / name).symlink_to(outside / "new")
    (run / f".{name}.{os.getpid()}").symlink_to(outside / "new")
    assert main(["report", str(run)]) == 0
    assert not (outside / "new").exists()


def test_a_file_outside_is_not_copied_in(run: Path, outside: Path) -> None:
    console(run, "first", b"[    1.0] hello\n")
    (run / "scenarios" / "second").mkdir()
    (run / "scenarios" / "second" / "console.log").symlink_to(outside / "id_ed25519")
    (outside / "console.log").write_bytes(KEY)
    (run / "scenarios" / "third").symlink_to(outside)
    write_outcome(run)
    assert (run / "console.log").read_bytes() == b"# first\n[    1.0] hello\n\n"


def test_a_folder_of_scenarios_that_is_a_link_is_not_followed(run: Path, outside: Path) -> None:
    (outside / "one").mkdir()
    (outside / "one" / "console.log").write_bytes(KEY)
    (run / "scenarios").rmdir()
    (run / "scenarios").symlink_to(outside)
    write_outcome(run)
    assert (run / "console.log").read_bytes() == b""


def test_a_pipe_that_never_ends_is_not_waited_for(run: Path) -> None:
    console(run, "first", b"hello\n")
    (run / "scenarios" / "second").mkdir()
    os.mkfifo(run / "scenarios" / "second" / "console.log")
    write_outcome(run)
    assert (run / "console.log").read_bytes() == b"# first\nhello\n\n"


def test_a_run_reached_through_a_link_of_one_s_own_is_fine(run: Path, tmp_path: Path) -> None:
    (tmp_path / "latest").symlink_to(run)
    assert main(["report", str(tmp_path / "latest")]) == 0
    assert all((run / name).is_file() for name in WRITTEN)


def test_consoles_are_in_the_order_they_were_run(run: Path) -> None:
    for number, name in enumerate(("b", "a")):
        console(run, name, b"")
        os.utime(run / "scenarios" / name / "console.log", (number, number))
    write_outcome(run)
    assert (run / "console.log").read_text() == "# b\n\n# a\n\n"


def test_a_comparison_replaces_links_too(run: Path, outside: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    out.mkdir()
    for name in ("compare.json", "compare.html"):
        (out / name).symlink_to(outside / "id_ed25519")
    write(compare([run, run]), out)
    assert (outside / "id_ed25519").read_bytes() == KEY


def test_what_cannot_be_written_leaves_what_was_there(tmp_path: Path) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(OSError, match="directory"):
        write_whole(tmp_path / "taken", b"x")
    assert [path.name for path in tmp_path.iterdir()] == ["taken"]


def test_of_a_file_without_end_only_so_much_is_read(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "big").write_bytes(b"x" * 1000)
    with directory_inside(tmp_path, "sub") as folder:
        assert read_inside(folder, "big", 10)[1] == b"x" * 10
    with pytest.raises(OSError), directory_inside(tmp_path, "nothere"):  # noqa: PT011
        pass
