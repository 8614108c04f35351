"""Files that are not rig files. Any content of a file gives a Rig or a UsageError, and nothing else."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plugpull.errors import UsageError
from plugpull.rig.load import load_rig, parse_rig
from plugpull.rig.model import Rig

RIGS = Path(__file__).parents[2] / "rigs"
QUICK = (RIGS / "quick.toml").read_text()


def test_a_file_with_a_byte_order_mark_or_windows_line_ends_is_read(tmp_path: Path) -> None:
    path = tmp_path / "rig.toml"
    path.write_bytes(b"\xef\xbb\xbf" + QUICK.replace("\n", "\r\n").encode())
    assert load_rig(path).rig.name == "quick"


def failure(path: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_rig(path)
    return str(caught.value)


def test_files_that_are_no_rig_files(tmp_path: Path) -> None:
    (tmp_path / "quick.toml").write_text("")
    latin = tmp_path / "latin.toml"
    latin.write_bytes('[rig]\nname = "é'.encode() + b'\xe9"\n')
    large = tmp_path / "large.toml"
    large.write_bytes(b"#" * ((1 << 20) + 1))
    assert failure(latin) == f"{latin}:2:10: the byte 0xe9 is not UTF-8 text, which TOML files are written in"
    assert failure(tmp_path) == f"{tmp_path}: this is a directory, not a rig file"
    assert failure(large) == f"{large}: this file is larger than 1 MiB: it is hardly a rig file"
    assert failure(Path("/dev/null")) == "/dev/null: this is not a regular file"
    assert failure(tmp_path / "qick.toml") == (
        f'{tmp_path / "qick.toml"}: there is no such rig file; did you mean "{tmp_path / "quick.toml"}"?'
    )
    assert "there is no such rig file" in failure(tmp_path / "nowhere" / "x.toml")
    assert "cannot be read" in failure(tmp_path / "quick.toml" / "x.toml")
    assert "cannot be read" in failure(Path("x\0.toml"))
    assert "cannot be read" in failure(Path("x" * 5000))


def test_an_empty_file(tmp_path: Path) -> None:
    path = tmp_path / "empty.toml"
    path.write_text("")
    assert failure(path) == f"{path}:1:1: the file is empty: a rig file has at least [rig], [dut] and a [[disk]]"


@pytest.mark.parametrize("path", sorted(RIGS.glob("*.toml")), ids=lambda path: path.name)
def test_stock_rigs_are_good(path: Path) -> None:
    assert load_rig(path).rig.name == path.stem


LINES = QUICK.splitlines(keepends=True)
PIECES = st.sampled_from(
    [
        *("[rig]\n", "[[disk]]\n", "[[hub]]\n", "[disk]\n", "disk = [\n", "x = 1\n"),
        *('"""', "'", "{", "}", "[", "]", "=", "\n", ".", "\0", "\r", "é"),
        *('at = "hub1.1"\n', 'at = "hub2.99999999999999999999"\n', 'name = "hub1"\n', "ports = -1\n", "size = 1e400\n"),
    ]
)


def said_of(text: str) -> str:
    """What is wrong with a text; empty when it is a rig. Anything but a UsageError fails the test."""
    try:
        assert isinstance(parse_rig(text), Rig)
    except UsageError as error:
        return str(error)
    return ""


@settings(max_examples=60, deadline=None)
@given(st.text() | st.lists(PIECES | st.sampled_from(LINES), max_size=30).map("".join))
@example("a = " + "[" * 3000)
@example("a = " + "9" * 5000)
@example('[[hub]]\nname = "h"\nat = "h.' + "9" * 5000 + '"\n')
@example("disk = [[], {}, 1, {name = {}}]\nrig = []\ndut = 1\n")
def test_any_text_makes_a_rig_or_a_usage_error(text: str) -> None:
    said = said_of(text)
    assert not said or all(line.startswith("rig.toml:") for line in said.split("\n"))


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_spoilt_rig_file_makes_a_rig_or_a_usage_error(data: st.DataObject) -> None:
    """A good file with a few lines taken out, doubled or spoilt keeps most rules busy."""
    lines = list(LINES)
    for _ in range(data.draw(st.integers(1, 6))):
        where = data.draw(st.integers(0, len(lines) - 1))
        lines[where] = data.draw(st.sampled_from(["", lines[where] * 2]) | st.sampled_from(LINES) | PIECES)
    said_of("".join(lines))


@settings(max_examples=60, deadline=None)
@given(content=st.binary())
def test_any_bytes_make_a_rig_or_a_usage_error(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.toml"
    path.write_bytes(content)
    with contextlib.suppress(UsageError):
        assert isinstance(load_rig(path), Rig)
