"""Reads ``results.json`` of any version since schema 1, from any machine.

Only the keys that are there are used, and only if they have the right type: a run from another machine, or from an
older or newer plugpull, must never stop the archive. All text is made safe for a terminal and limited in length.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from itertools import islice
from math import fsum

import msgspec

from plugpull.archive.disks import disk_notes, identities_of
from plugpull.archive.foreign import LONGEST, Object, line, number, part, parts, text
from plugpull.archive.quantities import values_of
from plugpull.archive.records import JUDGED, FailureReason, Outcome, RunRecord, Value
from plugpull.archive.verdicts import EXPECTED
from plugpull.errors import UsageError
from plugpull.judging.results import RESULTS_VERSION
from plugpull.plain import clean_line

MOST_SCENARIOS = 100_000
QUOTING = frozenset({"kernel_clean", "kernel_between", "no_errors", "undisturbed"})
"""Checks whose findings quote a kernel message: its kind distinguishes them."""
FIRST_TURN = "[0001]"
"""How the id of a soak's first turn ends."""
_IN_NAME = re.compile(r"(\d{4})(\d\d)(\d\d)T(\d\d)(\d\d)(\d\d)Z")


class UnreadableRun(UsageError):
    """This is not a ``results.json`` that can be read. The text says why."""


def read_run(content: bytes, folder: str = "") -> RunRecord:
    """The record of one run. ``folder`` is the name of its directory. Raises UnreadableRun."""
    try:
        found = msgspec.json.decode(content)
    except (ValueError, RecursionError) as error:  # a msgspec.DecodeError is a ValueError
        raise UnreadableRun(clean_line(f"not JSON: {error}")) from None
    if not isinstance(found, dict):
        raise UnreadableRun("not a results file: it is not an object")
    version = found.get("schema")
    if not isinstance(version, int) or isinstance(version, bool):
        raise UnreadableRun("not a results file: it has no schema version")
    if not 1 <= version <= RESULTS_VERSION:
        raise UnreadableRun(f"it has schema version {version}, but this plugpull reads {RESULTS_VERSION}")
    if not isinstance(found.get("scenarios"), list):
        raise UnreadableRun("not a results file: it has no list of scenarios")
    return _run(found, folder)


def _run(found: Object, folder: str) -> RunRecord:
    dut = part(found, "dut")
    kernel = text(dut, "kernel")
    identities = identities_of(found)
    outcomes = tuple(_outcomes(found, kernel, identities))
    scenarios = list(parts(found, "scenarios"))
    cuts = [cut for scenario in scenarios for cut in parts(scenario, "cuts")]
    started, started_text = _started(text(found, "started"), folder)
    seed = found.get("seed")
    return RunRecord(
        rig=text(found, "rig"),
        kernel=kernel or next((text(scenario, "kernel") for scenario in scenarios if text(scenario, "kernel")), ""),
        started=started,
        started_text=started_text,
        plugpull=text(found, "plugpull"),
        bench={"": "", "virtual": "virtual"}.get(text(dut, "kind"), "real"),
        seed=seed if isinstance(seed, int) and not isinstance(seed, bool) and abs(seed) < 1 << 63 else None,
        verdict=text(found, "verdict"),
        seconds=number(found.get("seconds")),
        complete=found.get("complete") is not False,
        dated=_moment(text(found, "started")) is not None,
        cuts_planned=len(cuts),
        cuts_done=sum(cut.get("acknowledged_at") is not None for cut in cuts),
        declared=_declared(found, dut, kernel),
        outcomes=outcomes,
        notes=(*_notes(found), *disk_notes(found, identities)),
    )


# --- parts of a run --------------------------------------------------------------------------------------------------


def _moment(written: str) -> float | None:
    """Seconds since the epoch, if this is a time."""
    with suppress(ValueError, OverflowError):
        moment = datetime.fromisoformat(written)
        return moment.replace(tzinfo=moment.tzinfo or UTC).timestamp()
    return None


def _started(written: str, folder: str) -> tuple[float, str]:
    """When the run began: as it says, or as the name of its directory says."""
    if (moment := _moment(written)) is not None:
        return moment, written
    if named := _IN_NAME.search(folder):
        year, month, day, hour, minute, second = map(int, named.groups())
        with suppress(ValueError, OverflowError):
            named_at = datetime(year, month, day, hour, minute, second, tzinfo=UTC)
            return named_at.timestamp(), named_at.isoformat().replace("+00:00", "Z")
    return 0.0, clean_line(folder)


def _declared(found: Object, dut: Object, kernel: str) -> dict[str, str]:
    """What may change values, as far as the run says it. The rig is known by its cut points and its machine."""
    points = sorted(map(str, part(part(found, "coverage"), "points")))
    machine = [str(dut[key]) for key in ("accel", "cpus") if isinstance(dut.get(key), str | int)]
    modules = dut.get("modules")
    named = {
        "kernel": kernel,
        "plugpull": text(found, "plugpull"),
        "rig": clean_line(" ".join([*points, *machine])) if points else "",
        "drivers": clean_line(" ".join(map(str, modules))) if isinstance(modules, list) else "",
        "firmware": _firmware(found) or _firmware(dut),
    }
    return {name: value for name, value in named.items() if value}


def _firmware(of: Object) -> str:
    value = of.get("firmware")
    if isinstance(value, dict | list) and value:
        return line(msgspec.json.encode(value, order="sorted").decode("utf-8", "replace"))
    return line(value)


def _notes(found: Object) -> Iterator[tuple[str, str]]:
    unknowns = found.get("unknowns")
    for reason in unknowns[:50] if isinstance(unknowns, list) else ():
        if isinstance(reason, str):
            yield "unknown", line(reason)
    for skipped in parts(found, "skipped"):
        yield "skipped", f"{text(skipped, 'id')}: {text(skipped, 'reason')}"


def _outcomes(found: Object, kernel: str, identities: Mapping[str, str]) -> Iterator[Outcome]:
    scenarios = list(islice(parts(found, "scenarios"), MOST_SCENARIOS))
    soaks = {name.removesuffix(FIRST_TURN) for one in scenarios if (name := text(one, "id")).endswith(FIRST_TURN)}
    turns: defaultdict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for scenario in scenarios:
        if name := text(scenario, "id"):
            whole = name.rpartition("[")[0]
            outcome = _outcome(scenario, whole if whole in soaks else name, kernel, identities)
            if whole in soaks:
                turns[whole, outcome.disk].append(outcome)
            else:
                yield outcome
    yield from map(_whole, turns.values())
    for skipped in parts(found, "skipped"):
        if name := text(skipped, "id"):
            yield Outcome(name, "SKIP", detail=text(skipped, "reason"))


def _whole(turns: Sequence[Outcome]) -> Outcome:
    """The turns of a soak that cut the same disk, as one: failed if one failed. Their values are repeats."""
    failed = sum(one.status == "FAIL" for one in turns)
    worst = next((one for status in ("FAIL", "PASS") for one in turns if one.status == status), turns[0])
    return replace(
        worst,
        detail=f"in {failed} of {len(turns)} turns: {worst.detail}" if failed else worst.detail,
        seconds=fsum(one.seconds or 0.0 for one in turns),
        reasons=tuple(sorted({reason for one in turns for reason in one.reasons})),
        values=tuple(value for one in turns for value in one.values),
    )


def _outcome(scenario: Object, name: str, kernel: str, identities: Mapping[str, str]) -> Outcome:
    status = text(scenario, "verdict")
    unknowns = scenario.get("unknowns")
    unknown = line(unknowns[0]) if isinstance(unknowns, list) and unknowns else ""
    finding = next(parts(scenario, "findings"), {})
    said = {"FAIL": text(finding, "summary"), "PASS": ""}.get(status, unknown)
    disk = _cut_first(scenario)
    return Outcome(
        scenario=name,
        status=status if status in JUDGED else status.upper()[:20] or "UNKNOWN",
        disk=identities.get(disk, disk),
        seconds=number(scenario.get("seconds")),
        reasons=tuple(sorted(set(_reasons(scenario)))) if status == "FAIL" else (),
        detail=said or (text(scenario, "sentence") if status != "PASS" else ""),
        kernel=text(scenario, "kernel") or kernel,
        # A bench that failed has measured nothing that can be compared.
        values=tuple(_of_identities(values_of(scenario), identities)) if status in JUDGED else (),
    )


def _cut_first(scenario: Object) -> str:
    """The disk or hub that was cut first: what the scenario chose. Later cuts depend on how far it came."""
    cut = next(parts(scenario, "cuts"), {})
    point = text(cut, "point").rpartition(".")[0]
    return point or "+".join(sorted(_victims(cut)))[:LONGEST]


def _of_identities(values: Iterator[Value], identities: Mapping[str, str]) -> Iterator[Value]:
    """The values by the identities of their disks."""
    for value in values:
        known = identities.get(value.subject)
        yield value if known is None else replace(value, subject=known)


def _victims(cut: Object) -> set[str]:
    victims = cut.get("victims")
    return {line(one) for one in victims if isinstance(one, str)} if isinstance(victims, list) else set()


def _reasons(scenario: Object) -> Iterator[FailureReason]:
    victims = {one for cut in parts(scenario, "cuts") for one in _victims(cut)}
    survivors = {text(each, "disk") for each in parts(scenario, "survivors")}
    for finding in parts(scenario, "findings"):
        check, subject = text(finding, "check"), text(finding, "subject")
        known = text(finding, "expected")
        kind = text(finding, "kind") or (kind_in(text(finding, "summary")) if check in QUOTING else "")
        kind = EXPECTED + known if known else kind
        yield FailureReason(check, kind, _role(subject, victims, survivors))


def _role(subject: str, victims: set[str], survivors: set[str]) -> str:
    if subject in victims:
        return "victim"
    if subject in survivors:
        return "survivor"
    return "dut" if subject.lower() in ("", "dut", "kernel") else "other"


def kind_in(summary: str) -> str:
    """The kind of the kernel message that a finding quotes, alone or after an introduction."""
    from plugpull.kernel.catalogue.classify import classify_message

    body = summary
    while True:
        event = classify_message(body, body)
        if event is not None:
            return event.kind
        _, colon, rest = body.partition(": ")
        if not colon:
            return ""
        body = rest
