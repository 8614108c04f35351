"""Which studies ``plugpull measure`` runs: those of the rows that the rig file names, if it names any of a study."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from plugpull.plugin import pytest_collection_modifyitems


def _item(name: str, *rows: str, study: bool = False) -> Any:
    marks = [SimpleNamespace(name="row", args=(row,)) for row in rows]

    def iter_markers(kind: str) -> Iterator[Any]:
        return iter(marks if kind == "row" else [])

    return SimpleNamespace(
        name=name,
        iter_markers=iter_markers,
        get_closest_marker=lambda kind: SimpleNamespace() if study and kind == "study" else None,
    )


ITEMS = (
    _item("cable cut", "X06"),
    _item("disks", "X22", "R01", study=True),
    _item("sustained", "U05", study=True),
    _item("caches", "U01", study=True),
)


@pytest.mark.parametrize(
    ("rows", "studies", "kept"),
    [
        ("X06,X22,U05", "only", ["disks", "sustained"]),
        ("X06", "only", ["disks", "sustained", "caches"]),
        ("", "only", ["disks", "sustained", "caches"]),
        ("X06,X22,U05", "none", ["cable cut"]),
        ("X01", "none", []),
    ],
)
def test_the_rows_of_the_rig_file_choose_studies_if_they_name_any(rows: str, studies: str, kept: list[str]) -> None:
    options = {"--plugpull-rows": rows, "--plugpull-studies": studies}
    hook = SimpleNamespace(pytest_deselected=lambda items: None)
    items = list(ITEMS)
    pytest_collection_modifyitems(SimpleNamespace(getoption=options.get, hook=hook), items)  # type: ignore[arg-type]
    assert [item.name for item in items] == kept
