"""The error story in the report: in scenarios with findings, and escaped like everything that comes from outside."""

from __future__ import annotations

from pathlib import Path

from stories import SURVIVORS, Bench, encode, healthy, run_of

from plugpull.checks import no_errors
from plugpull.history import events as ev
from plugpull.judging.outcome import write_outcome

CHECKS = (no_errors(SURVIVORS),)


def report(directory: Path, bench: Bench) -> str:
    (directory / "history.jsonl").write_bytes(encode(run_of(bench.scenario())))
    return write_outcome(directory)[1].read_text(encoding="utf-8")


def test_a_scenario_without_findings_has_none(tmp_path: Path) -> None:
    assert "Error story" not in report(tmp_path, healthy(checks=CHECKS))


def test_what_the_kernel_said_and_whom_it_accuses(tmp_path: Path) -> None:
    bench = healthy(checks=CHECKS)
    for at in (13.0, 13.5, 14.0):
        bench.add(ev.KernelMessage(at=at, text="I/O error, dev sdc, sector 81920 op 0x0:(READ) <b>", level=3))
    bench.add(ev.KernelMessage(at=14.1, text="sd 2:0:0:0: [sdc] the flux capacitor is <b>out of phase</b>", level=4))
    page = report(tmp_path, bench)
    assert "Error story: what the kernel said about disk2 (sdc)" in page
    assert "probably the <strong>medium</strong> (disk2 (sdc)): the errors repeat at one place: sector 81920" in page
    assert "sector 81920 op 0x0:(READ) &lt;b&gt;  (3 times in 1.000 s)" in page
    assert "Uncatalogued warnings" in page
    assert "out of phase&lt;/b&gt;" in page
    assert "<b>out" not in page
