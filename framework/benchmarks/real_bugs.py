"""Real bugs of distribution kernels: stock scenarios on the packages before and after a fix.

The bugs are in ``real_bugs.toml``. Before the fix, a scenario must FAIL with a finding that describes the bug; after
it, it must PASS. ``-n`` is how often each side is run, ``--after`` how often the fixed one. ``--page 1`` only writes
``framework/REAL_BUGS.md`` from the file. Packages are downloaded once (100 to 170 MB each) and never installed. A run
takes half a minute to two.
"""

from __future__ import annotations

import subprocess
import sys
import tomllib
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from urllib.parse import quote
from urllib.request import urlretrieve

from benchmarks.measure import ROOT, begin, console, notify, scratch, table
from plugpull.cache import Cache
from plugpull.judging.results import ScenarioResult, Verdict
from plugpull.judging.results_io import read_results

DATA = Path(__file__).with_suffix(".toml")
PAGE = ROOT / "framework" / "REAL_BUGS.md"
COMMAND = "python framework/benchmarks/real_bugs.py"


@dataclass(frozen=True)
class RealBug:
    """One bug; the fields are explained in ``real_bugs.toml``."""

    name: str
    title: str
    fixed_in: str
    before: str
    after: str
    rig: str
    scenario: str
    check: str
    words: str
    story: str
    before_runs: list[int]
    after_runs: list[int]
    finding: str


@dataclass(frozen=True)
class Tried:
    """A bug that no run showed: what was run, how often, and what is known of the reason."""

    title: str
    fixed_in: str
    before: str
    scenario: str
    runs: int
    why: str


@dataclass(frozen=True)
class Unfixed:
    """A bug for which no fix is known: the kernels on which it was shown, and what shows where it is."""

    name: str
    title: str
    rig: str
    scenario: str
    check: str
    story: str
    shown: list[str]
    witness: str
    finding: str


def unfixed(file: Path = DATA) -> tuple[Unfixed, ...]:
    """The bugs without a known fix."""
    return tuple(Unfixed(**entry) for entry in tomllib.loads(file.read_text()).get("unfixed", ()))


def known(file: Path = DATA) -> tuple[tuple[RealBug, ...], tuple[Tried, ...]]:
    """The bugs that were shown, and those that were tried."""
    data = tomllib.loads(file.read_text())
    bugs = tuple(RealBug(**entry) for entry in data.get("bug", ()))
    return bugs, tuple(Tried(**entry) for entry in data.get("tried", ()))


def package_of(kernel: str) -> str:
    """The packages that ``--kernel`` gets, without the places they come from."""
    return " ".join(part.rpartition("/")[2].partition("_")[0] for part in kernel.split(","))


def _of_unfixed(bug: Unfixed) -> list[str]:
    return [
        f"## {bug.title}",
        "",
        f"{bug.story} No fix is known.",
        "",
        "| | |",
        "|---|---|",
        f"| name | `{bug.name}` |",
        f'| run | `plugpull run scenarios --rig rigs/{bug.rig}.toml -k "{bug.scenario}" --kernel PACKAGE` |',
        *(f"| shown | {one} |" for one in bug.shown),
        f"| without it | {bug.witness} |",
        f"| finding | `{bug.check}`: {bug.finding} |",
        "",
    ]


def page(bugs: tuple[RealBug, ...], tried: tuple[Tried, ...], open_bugs: tuple[Unfixed, ...] = ()) -> str:
    """``REAL_BUGS.md``."""
    lines = [
        "# Real bugs of distribution kernels",
        "",
        f"<!-- Written by `{COMMAND} --page 1` from `benchmarks/real_bugs.toml`: edit that, not this. -->",
        "",
        "Stock scenarios on stock rigs, run as they are on unmodified kernel packages from before and after a fix.",
        "Before it they FAIL with the finding below, after it they PASS. How often each was run is counted.",
        "",
        f"`{COMMAND} --only NAME -n 10` runs both sides of one, which downloads the packages",
        "(Debian's bookworm, bookworm-security, bookworm-backports and trixie-backports had them in November 2026).",
        "",
    ]
    for bug in bugs:
        lines += [
            f"## {bug.title}",
            "",
            f"{bug.story} Fixed in {bug.fixed_in}.",
            "",
            "| | |",
            "|---|---|",
            f"| name | `{bug.name}` |",
            f'| run | `plugpull run scenarios --rig rigs/{bug.rig}.toml -k "{bug.scenario}"` |',
            f"| before | `{package_of(bug.before)}`: FAIL in {bug.before_runs[0]} of {bug.before_runs[1]} runs |",
            f"| after | `{package_of(bug.after)}`: PASS in {bug.after_runs[0]} of {bug.after_runs[1]} runs |",
            f"| finding | `{bug.check}`: {bug.finding} |",
            "",
        ]
    lines += [line for one in open_bugs for line in _of_unfixed(one)]
    lines += ["## Tried and not shown", ""]
    lines += (
        ["| fix | fixed in | run on | scenario | runs | why |", "|---|---|---|---|---|---|"] if tried else ["None."]
    )
    lines += [
        f"| {one.title} | {one.fixed_in} | `{package_of(one.before)}` | {one.scenario} | {one.runs} | {one.why} |"
        for one in tried
    ]
    return "\n".join(lines) + "\n"


def kernel_argument(kernel: str) -> str:
    """What ``--kernel`` gets: package files are downloaded first."""
    if not kernel.startswith("http"):
        return kernel
    return ",".join(str(_downloaded(address)) for address in kernel.split(","))


def _downloaded(address: str) -> Path:
    name = address.rpartition("/")[2]

    def fetch(place: Path) -> None:
        notify(f"downloading {name}")
        urlretrieve(quote(address, safe=":/~"), place / name)

    key = f"deb-{sha256(address.encode()).hexdigest()[:16]}"
    return Cache.default(notify=notify).get("download", key, fetch, description=name) / name


def run(bug: RealBug, kernel: str, out: Path) -> ScenarioResult:
    """Run a bug's scenario once. Raises SystemExit if it gave no result."""
    what = ["run", str(ROOT / "scenarios"), "-k", bug.scenario, "--rig", str(ROOT / "rigs" / f"{bug.rig}.toml")]
    command = [sys.executable, "-m", "plugpull", *what, "--kernel", kernel_argument(kernel), "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=1200)
    scenarios = read_results((out / "latest").resolve()).scenarios if (out / "latest").is_dir() else ()
    if len(scenarios) != 1:
        raise SystemExit(f"{bug.name}: {len(scenarios)} scenarios were run\n{done.stdout}\n{done.stderr}")
    return scenarios[0]


def shows(bug: RealBug, result: ScenarioResult) -> str:
    """The finding that describes the bug; empty if there is none."""
    for finding in result.findings:
        if finding.check == bug.check and any(word in finding.summary for word in bug.words.split("|")):
            return finding.summary
    return ""


def main() -> int:
    arguments = begin(
        __doc__,
        n=(int, 1, "runs of each side"),
        after=(int, -1, "runs after the fix, if other than -n"),
        only=(str, "", "bugs whose name has this in it"),
        page=(int, 0, "1: write framework/REAL_BUGS.md and run nothing"),
        out=(str, "", "directory that keeps the runs; without it they are removed"),
    )
    bugs, tried = known()
    if arguments.page:
        PAGE.write_text(page(bugs, tried, unfixed()))
        return 0
    afterwards = arguments.n if arguments.after < 0 else arguments.after
    shown, wrong = table("real bugs", "bug", "before", "after", "what was said"), 0
    with scratch() as temporary:
        folder = Path(arguments.out).absolute() if arguments.out else temporary
        for bug in (one for one in bugs if arguments.only in one.name):
            before = [run(bug, bug.before, folder / bug.name / "before") for _ in range(arguments.n)]
            after = [run(bug, bug.after, folder / bug.name / "after") for _ in range(afterwards)]
            found = [said for result in before if (said := shows(bug, result))]
            passed = sum(result.verdict is Verdict.PASS for result in after)
            wrong += len(found) < arguments.n or passed < afterwards
            said = found[0] if found else before[0].sentence
            row = (f"{len(found)} of {arguments.n} found", f"{passed} of {afterwards} passed", said[:200])
            shown.add_row(bug.name, *row)
            console.print(f"{bug.name}: {'; '.join(row)}", markup=False)
    console.print(shown)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
