"""apt's answers about packages are kept, until something changes that decides them."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from plugpull.cache import Cache
from plugpull.errors import UsageError
from plugpull.setup.apt import Apt, KernelPackage
from plugpull.virtual import chosen_packages as chosen
from plugpull.virtual.chosen_packages import chosen_packages

MDADM = KernelPackage("mdadm", "4.2-5")


@pytest.fixture
def lists(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "lists"
    folder.mkdir()
    monkeypatch.setattr(chosen, "_STATE", (str(folder), str(tmp_path / "not-there")))
    return folder


def answers(*packages: KernelPackage) -> tuple[list[int], Callable[[], tuple[KernelPackage, ...]]]:
    """The times that it was asked, and what to ask."""
    asked: list[int] = []

    def ask() -> tuple[KernelPackage, ...]:
        asked.append(1)
        return packages

    return asked, ask


@pytest.mark.parametrize("packages", [(MDADM,), ()])
def test_a_question_is_asked_once(tmp_path: Path, lists: Path, packages: tuple[KernelPackage, ...]) -> None:
    asked, ask = answers(*packages)
    for _ in range(2):
        assert chosen_packages(Cache(tmp_path / "cache"), Apt(), "package", ["mdadm"], ask) == packages
    assert len(asked) == 1


def test_another_question_or_another_package_is_asked(tmp_path: Path, lists: Path) -> None:
    asked, ask = answers(MDADM)
    for question, name in (("package", "mdadm"), ("needed", "mdadm"), ("package", "fio")):
        chosen_packages(Cache(tmp_path / "cache"), Apt(), question, [name], ask)
    assert len(asked) == 3


def test_it_is_asked_again_when_the_lists_change(tmp_path: Path, lists: Path) -> None:
    asked, ask = answers(MDADM)
    for second in (1, 2):
        os.utime(lists, (second, second))
        chosen_packages(Cache(tmp_path / "cache"), Apt(), "package", ["mdadm"], ask)
    assert len(asked) == 2


def test_an_error_is_not_kept(tmp_path: Path, lists: Path) -> None:
    def refuses() -> tuple[KernelPackage, ...]:
        raise UsageError("apt cannot install mdadm")

    cache = Cache(tmp_path / "cache")
    with pytest.raises(UsageError, match="apt cannot install mdadm"):
        chosen_packages(cache, Apt(), "package", ["mdadm"], refuses)
    assert chosen_packages(cache, Apt(), "package", ["mdadm"], answers(MDADM)[1]) == (MDADM,)
