"""Data of survivors that went wrong while another disk's cable was cut: found and named, each kind by itself.

fio's own verification accepts all four but the last: every pass and disk of a load has the same payload there.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from defects_bench import run_small

from plugpull.exit_status import EXIT_FAIL
from plugpull.judging.results import Verdict

pytestmark = pytest.mark.bench


@pytest.mark.parametrize(
    ("kind", "every", "words"),
    [
        ("lost-write", 3, ("durable lost", "stale")),
        ("lost-pass", 25, ("durable lost", "stale")),
        ("crossed", 0, ("foreign",)),
        ("torn-write", 3, ("torn",)),
    ],
)
def test_what_went_wrong_with_a_survivors_data_is_named(
    tmp_path: Path, kind: str, every: int, words: tuple[str, ...]
) -> None:
    parameter = f"every = {every}\n" if every else ""
    defect = f'\n[[defect]]\nkind = "{kind}"\ndisk = "survivor"\n{parameter}'
    ended = run_small(tmp_path, defect, "-k", "while_writing")
    assert (ended.status, ended.only.verdict) == (EXIT_FAIL, Verdict.FAIL), ended.output
    found = [finding for finding in ended.only.findings if finding.check == "data_intact"]
    assert [finding.subject for finding in found] == ["survivor"], ended.only.findings
    assert any(word in found[0].summary for word in words), found[0].summary
    assert any("read again" in line for line in found[0].evidence), found[0].evidence
