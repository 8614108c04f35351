"""The story of a scenario, from its docstring."""

from __future__ import annotations

from plugpull.plugin_session import paragraphs


def test_each_paragraph_of_a_docstring_is_one_line() -> None:
    assert paragraphs("One cable is cut.\n") == "One cable is cut."
    assert paragraphs("Each disk alone,\n    then all.\n\n    \n    Nothing is\n    cut.\n    ") == (
        "Each disk alone, then all.\n\nNothing is cut."
    )
