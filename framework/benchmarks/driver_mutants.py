"""Driver mutants: bugs put into the kernel's drivers, md and filesystems, each run through a stock scenario. Each must
be found and named.

Each module is rebuilt from the distribution's source of the guest's kernel (a download of 140 MB the first time)
and replaces the kernel's own. A bug counts as found when the verdict is FAIL, and as named when a finding of the
responsible check describes it. ``--only`` runs some of them; ``--unmodified`` runs the unchanged modules, which must
pass. Takes a minute or two for each.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))
os.environ.setdefault("PLUGPULL_DRIVER_BUGS", "1")

import driver_build
import filesystem_bugs
from defects_bench import RIG

from benchmarks.driver_bugs.due import MUTANTS as DUE
from benchmarks.driver_bugs.first import MUTANTS as FIRST
from benchmarks.driver_bugs.first import PREAMBLE, STORAGE, Mutant
from benchmarks.driver_bugs.fixed import MUTANTS as FIXED
from benchmarks.driver_bugs.fresh import MUTANTS as FRESH
from benchmarks.driver_bugs.md import MD
from benchmarks.driver_bugs.md import MUTANTS as OF_MD
from benchmarks.driver_bugs.more import MUTANTS as MORE
from benchmarks.driver_bugs.others import MUTANTS as OTHERS
from benchmarks.driver_bugs.paths import MUTANTS as PATHS
from benchmarks.driver_bugs.recovery import MUTANTS as RECOVERY
from benchmarks.driver_bugs.regressions import MUTANTS as REGRESSIONS
from benchmarks.driver_bugs.state import MUTANTS as STATE
from benchmarks.driver_bugs.unasked import MUTANTS as UNASKED
from benchmarks.measure import ROOT, begin, console, scratch, table
from plugpull.finding import Finding
from plugpull.judging.results import ScenarioResult, Verdict
from plugpull.judging.results_io import read_results

MUTANTS = (*FIRST, *OTHERS, *MORE, *FRESH, *OF_MD, *PATHS, *DUE, *RECOVERY, *STATE, *FIXED, *UNASKED, *REGRESSIONS)
UAS_RIG = RIG.replace('at = "usb.1"\n', 'at = "usb.1"\nprotocol = "uas"\n').replace("SMALL-", "MUTANT-")
"""Two disks, the victim driven by uas."""


def edit(tree: Path, mutant: Mutant, *, bug: bool) -> None:
    """Change the kernel's tree. Raises ValueError where a piece is not there exactly once."""
    if mutant.folder.startswith("fs/"):
        filesystem_bugs.find_headers(tree, mutant.module)
    for file in PREAMBLE if mutant.folder == STORAGE else ():
        _replace(tree / mutant.folder / file, *PREAMBLE[file])
    if bug:
        for file, old, new in ((mutant.file, mutant.old, mutant.new), *mutant.more):
            _replace(tree / mutant.folder / file, old, new)


def _replace(file: Path, old: str, new: str) -> None:
    text = file.read_text()
    if text.count(old) != 1:
        raise ValueError(f"{file}: {text.count(old)} times there: {old.strip().splitlines()[0]}")
    file.write_text(text.replace(old, new))


def build(mutant: Mutant, *, bug: bool) -> Path:
    def change(tree: Path) -> None:
        edit(tree, mutant, bug=bug)

    part = driver_build.MD if mutant.folder == MD else driver_build.USB_SCSI
    if mutant.folder.startswith("fs/"):
        part = driver_build.FILESYSTEMS
    return driver_build.driver(mutant.folder, mutant.module, change, repr((mutant, PREAMBLE, bug)), part)


def run(mutant: Mutant, module: Path, folder: Path) -> Iterator[ScenarioResult]:
    rig = ROOT / "rigs" / f"{mutant.rig}.toml"
    if mutant.rig == "uas":
        rig = folder / "uas.toml"
        rig.write_text(UAS_RIG)
    out = folder / mutant.name
    what = ["run", str(ROOT / "scenarios"), "-k", mutant.scenario, "--rig", str(rig), "--module", str(module)]
    command = [sys.executable, "-m", "plugpull", *what, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    if not (out / "latest").is_dir():
        raise SystemExit(f"{mutant.name} was not run:\n{done.stdout}\n{done.stderr}")
    yield from read_results((out / "latest").resolve()).scenarios


def named(mutant: Mutant, findings: Iterable[Finding]) -> Finding | None:
    """The finding that says what is wrong."""
    for finding in findings:
        said = " ".join((finding.summary, *finding.evidence))
        if finding.check in mutant.checks and any(word in said for word in mutant.words):
            return finding
    return None


def chosen(only: str) -> tuple[Mutant, ...]:
    """The mutants whose name has one of these words in it, which are separated by commas."""
    return tuple(one for one in MUTANTS if any(word in one.name for word in only.split(",")))


def main() -> int:
    arguments = begin(
        __doc__,
        only=(str, "", "mutants whose name has this in it, or several of them, separated by commas"),
        unmodified=(int, 0, "1: run the modules without their bugs; they have to pass"),
        out=(str, "", "directory that keeps the runs, to judge them again; without it they are removed"),
    )
    shown = table("driver mutants", "mutant", "verdict", "found by", "what was said")
    wrong = 0
    with scratch() as temporary:
        folder = Path(arguments.out).absolute() if arguments.out else temporary
        folder.mkdir(parents=True, exist_ok=True)
        for mutant in chosen(arguments.only):
            results = list(run(mutant, build(mutant, bug=not arguments.unmodified), folder))
            findings = [finding for result in results for finding in result.findings]
            verdict = max(
                (result.verdict for result in results), key=[Verdict.PASS, Verdict.UNKNOWN, Verdict.FAIL].index
            )
            right = named(mutant, findings)
            good = verdict is Verdict.PASS if arguments.unmodified else right is not None
            wrong += not good
            finding = right or (findings[0] if findings else None)
            said = finding.summary if finding else results[0].sentence
            shown.add_row(mutant.name, verdict.value, right.check if right else "-", said[:160])
            console.print(f"{mutant.name}: {verdict.value}{'' if good else ' (WRONG)'}: {said}", markup=False)
    console.print(shown)
    console.print(f"{shown.row_count - wrong} of {shown.row_count} as they should be")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
