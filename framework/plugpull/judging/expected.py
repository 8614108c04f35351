"""Findings that a kernel is known to cause: expected ones, which stay findings and are marked as expected.

``ScenarioBegun.expected`` has the entries that concern a scenario, as its author wrote them (``expected_findings.py``).
An entry covers a finding only if the kernel, the check, the subject and the whole summary fit. A text of an entry is
compared literally, apart from these in it:

- ``{victim}``: a disk that this scenario cut off; ``{survivor}``: another disk of the rig;
- ``{subject}``: the subject of the finding;
- ``{name}`` with any other name: a number, at most the one that ``at_most`` has under this name;
- ``{...}``: any text, at most twice.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping

from msgspec.structs import replace

from plugpull.finding import Finding
from plugpull.history.events import ExpectedFinding, ExpectedShape
from plugpull.history.reader import Story
from plugpull.judging.results import ExpectedResult

ANY = "..."
ROLES = ("victim", "survivor", "subject")
MOST_ANY = 2
"""More than these would make a comparison slow."""
NUMBER = r"\d+(?:\.\d+)?"
_NAME = re.compile(r"[\w-]+", re.ASCII)
_PLACE = re.compile(r"\{([a-z_]\w*|\.\.\.)\}")
_RELEASE = re.compile(r"(\d+)\.(\d+)(?:\.(\d+))?(?:-(\d+))?(?![\d.])")
_RANGE = re.compile(r">=(\S+)(?: <(\S+))?")


def release_of(kernel: str) -> tuple[int, ...] | None:
    """A kernel's release as numbers that can be compared: (version, patch level, sublevel, ABI number of the package).

    >>> release_of("6.1.0-56-amd64"), release_of("6.12.107+deb12-amd64")
    ((6, 1, 0, 56), (6, 12, 107, 0))
    """
    found = _RELEASE.match(kernel)
    return None if found is None else tuple(int(number or 0) for number in found.groups())


def in_range(kernel: str, wanted: str) -> bool:
    """Whether a kernel is in a range such as ">=6.1.0-1 <6.1.0-56". Without an end, no fix is known. Raises
    ``ValueError`` if it is not a range."""
    found = _RANGE.fullmatch(wanted)
    first = release_of(found[1]) if found else None
    end = release_of(found[2]) if found and found[2] else None
    if found is None or first is None or (found[2] and end is None):
        raise ValueError(f"{wanted!r} is not a range of kernels such as '>=6.1.0-1 <6.1.0-56'")
    release = release_of(kernel)
    return release is not None and first <= release and (end is None or release < end)


def concerns(entry: ExpectedFinding, scenario: str) -> bool:
    """Whether an entry is about a scenario: its id without folders, or all of its parameters."""
    name = scenario.rpartition("/")[2]
    return name == entry.scenario or name.startswith(entry.scenario + "[")


def pattern_of(text: str, roles: Mapping[str, Collection[str]]) -> re.Pattern[str]:
    """What a text of an entry stands for, with the names that each role may have. Raises ``ValueError`` if a number's
    name occurs twice or too much is left open."""
    made, names = [], set[str]()
    pieces = _PLACE.split(text)
    if pieces[1::2].count(ANY) > MOST_ANY:
        raise ValueError(f"{text!r} has {{...}} more than {MOST_ANY} times")
    for literal, name in zip(pieces[::2], [*pieces[1::2], ""], strict=True):
        made.append(re.escape(literal))
        if name in ROLES:
            known = roles.get(name, ())
            made.append(f"(?:{'|'.join(map(re.escape, known))})" if known else "(?!)")
        elif name == ANY:
            made.append(".*")
        elif name:
            if name in names:
                raise ValueError(f"{text!r} has {{{name}}} twice")
            names.add(name)
            made.append(f"(?P<{name}>{NUMBER})")
    return re.compile("".join(made), re.DOTALL)


def _covers(shape: ExpectedShape, finding: Finding, roles: Mapping[str, Collection[str]]) -> bool:
    if finding.check != shape.check or not pattern_of(shape.subject, roles).fullmatch(finding.subject):
        return False
    found = pattern_of(shape.summary, {**roles, "subject": (finding.subject,)}).fullmatch(finding.summary)
    return found is not None and all(
        float(found[name]) <= shape.at_most[name] for name in found.groupdict() if name in shape.at_most
    )


def mark_expected(story: Story, kernel: str, findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """The findings, those that an entry covers with its name, and its reference as the last line of their evidence."""
    entries = _applicable(story, kernel)
    victims = {victim for cut in story.cut_records for victim in cut.armed.victims}
    disks = story.rig.get("disk")
    declared = (
        [str(disk.get("name", "")) for disk in disks if isinstance(disk, dict)] if isinstance(disks, list) else []
    )
    roles = {"victim": sorted(victims), "survivor": sorted({*declared} - victims)}
    return tuple(_marked(finding, entries, roles) for finding in findings)


def _marked(finding: Finding, entries: tuple[ExpectedFinding, ...], roles: Mapping[str, Collection[str]]) -> Finding:
    for entry in entries:
        if any(_covers(shape, finding, roles) for shape in entry.findings):
            said = f"expected of this kernel ({entry.name}): {entry.reference}; {entry.evidence}"
            return replace(finding, expected=entry.name, evidence=(*finding.evidence, said))
    return finding


def _applicable(story: Story, kernel: str) -> tuple[ExpectedFinding, ...]:
    """The entries about this scenario on this kernel and its own modules. One that cannot be read covers nothing."""
    replaced = _replaced(story)
    own = (entry for entry in story.begun.expected if entry.module not in replaced)
    return tuple(entry for entry in own if not entry_faults(entry) and _on(entry, kernel))


def _replaced(story: Story) -> set[str]:
    """The modules that the run loaded another build of."""
    return {name.partition(" ")[0] for ready in story.readies[-1:] for name in ready.modules}


def _on(entry: ExpectedFinding, kernel: str) -> bool:
    return any(in_range(kernel, wanted) for wanted in entry.kernels)


def entry_faults(entry: ExpectedFinding) -> list[str]:
    """What is wrong with an entry, in sentences."""
    faults = [f"it has no {name}" for name in ("name", "scenario", "reference", "evidence") if not getattr(entry, name)]
    faults += [f"it has no {name}" for name in ("kernels", "findings") if not getattr(entry, name)]
    if not _NAME.fullmatch(entry.name):
        faults.append("its name must consist of letters, digits and hyphens")
    try:
        for wanted in entry.kernels:
            in_range("", wanted)
        for shape in entry.findings:
            pattern_of(shape.subject, {})
            numbers = pattern_of(shape.summary, {}).groupindex
            faults += [f"at_most has {name!r}, its summary has not" for name in shape.at_most if name not in numbers]
    except ValueError as error:
        faults.append(str(error))
    return faults


def expected_of(story: Story, kernel: str, findings: Iterable[Finding]) -> tuple[ExpectedResult, ...]:
    """Each entry that is about this scenario on this kernel, also one that found nothing. ``findings`` are marked."""
    names = [finding.expected for finding in findings]
    return tuple(
        ExpectedResult(
            name=entry.name,
            reference=entry.reference,
            evidence=entry.evidence,
            scenarios=1,
            matched=int(entry.name in names),
            findings=names.count(entry.name),
        )
        for entry in _applicable(story, kernel)
    )


def summed(expected: Iterable[ExpectedResult]) -> tuple[ExpectedResult, ...]:
    """The entries of several scenarios, each once."""
    made: dict[str, ExpectedResult] = {}
    for one in expected:
        sofar = made.get(one.name)
        made[one.name] = (
            one
            if sofar is None
            else replace(
                sofar,
                scenarios=sofar.scenarios + one.scenarios,
                matched=sofar.matched + one.matched,
                findings=sofar.findings + one.findings,
            )
        )
    return tuple(made.values())
