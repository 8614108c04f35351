"""Templates are kept compiled, and a compiled one counts only for what it was made of."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from jinja2 import Environment, FileSystemLoader
from jinja2.bccache import Bucket

from plugpull.report.compiled import CompiledTemplates


class Counted(CompiledTemplates):
    """Counts the templates that were compiled."""

    def __init__(self, folder: Path, options: dict[str, object]) -> None:
        super().__init__(folder, options)
        self.compiled = 0

    def set_bucket(self, bucket: Bucket) -> None:
        self.compiled += 1
        super().set_bucket(bucket)


@pytest.fixture(autouse=True)
def writing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path / "compiled"))
    (tmp_path / "page.html.j2").write_text("{{ one }} and two")


def rendered(folder: Path, **options: object) -> tuple[str, int]:
    """The page, and how many templates were compiled for it."""
    cache = Counted(folder, options)
    page = Environment(loader=FileSystemLoader(folder), bytecode_cache=cache).get_template("page.html.j2")
    return page.render(one="one"), cache.compiled


def kept(folder: Path) -> Path:
    return CompiledTemplates(folder, {}).file("page.html.j2")


def test_a_template_is_compiled_once(tmp_path: Path) -> None:
    assert rendered(tmp_path) == ("one and two", 1)
    assert rendered(tmp_path) == ("one and two", 0)
    assert kept(tmp_path).is_relative_to(tmp_path / "compiled")


def test_a_changed_template_is_compiled_again(tmp_path: Path) -> None:
    rendered(tmp_path)
    (tmp_path / "page.html.j2").write_text("{{ one }} and three")
    assert rendered(tmp_path) == ("one and three", 1)


def test_other_options_or_another_jinja_compile_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rendered(tmp_path)
    assert rendered(tmp_path, autoescape=True)[1] == 1
    monkeypatch.setattr("jinja2.__version__", "0.0")
    assert rendered(tmp_path, autoescape=True)[1] == 1


@pytest.mark.parametrize("share", [0.0, 0.2, 0.5, 0.9])
def test_a_damaged_file_is_compiled_again(share: float, tmp_path: Path) -> None:
    rendered(tmp_path)
    data = kept(tmp_path).read_bytes()
    kept(tmp_path).write_bytes(data[: int(len(data) * share)])
    assert rendered(tmp_path) == ("one and two", 1)


def test_where_nothing_can_be_written_it_is_compiled_each_time(tmp_path: Path) -> None:
    (tmp_path / "compiled").write_text("a file is in the way")
    assert rendered(tmp_path) == ("one and two", 1)
    assert rendered(tmp_path) == ("one and two", 1)


def test_python_s_own_switch_is_obeyed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    rendered(tmp_path)
    assert not kept(tmp_path).exists()
