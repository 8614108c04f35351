"""Edits of stamped data: ledgers and read-backs that are missing or not whole."""

from __future__ import annotations

from benchmarks.edits.events import either, of
from benchmarks.edits.registry import PASS, UNKNOWN, add, edit
from benchmarks.edits.sessions import Session, encode_found, round_of, with_stream
from benchmarks.edits.stamps import FIVE, POWER, STAMPED
from benchmarks.edits.tape import Tape


def _without(tape: Tape, kind: str, disk: str, nth: int = -1, piece: int | None = None) -> Tape:
    jobs = round_of(tape, disk, nth)
    events = [event for event in tape.all(of(kind)) if event["job"] in jobs]
    lost = events if piece is None else [events[piece]]
    return tape.drop(lambda event: any(event is one for one in lost))


for _disk in ("victim", "survivor"):
    _bases = STAMPED if _disk == "victim" else (*POWER, *FIVE)
    for _kind, _what in (
        ("ledger.begin", "beginning of the ledger"),
        ("ledger.end", "end of the ledger"),
        ("ledger.part", "whole ledger"),
        ("readback.begin", "beginning of the read-back"),
        ("readback.part", "whole read-back"),
        ("readback.end", "end of the read-back"),
    ):
        add(
            "stamps missing",
            f"{_what} of the {_disk}",
            UNKNOWN,
            "Without it, it cannot be said what the disk had promised or holds.",
            lambda tape, k=_kind, d=_disk: _without(tape, k, getattr(tape, d)),
            _bases,
        )
    for _piece, _what in ((0, "first"), (3, "fourth"), (-1, "last")):
        add(
            "stamps missing",
            f"{_what} piece of the {_disk}'s ledger",
            UNKNOWN,
            "A piece of the ledger is missing.",
            lambda tape, p=_piece, d=_disk: _without(tape, "ledger.part", getattr(tape, d), piece=p),
            _bases,
        )
    for _nth, _what in ((0, "first"), (2, "third"), (-1, "last")):

        def _no_round(tape: Tape, disk: str = _disk, nth: int = _nth) -> Tape:
            jobs = round_of(tape, getattr(tape, disk), nth)
            return tape.drop(lambda event: event.get("job") in jobs)

        add(
            "stamps missing",
            f"{_what} of five rounds of the {_disk}",
            UNKNOWN,
            "A round that was written and read back is missing.",
            _no_round,
            FIVE,
        )
add(
    "stamps missing",
    "last of five rounds of all disks",
    UNKNOWN,
    "Five cuts were made, and four rounds are on record.",
    lambda tape: _no_rounds(tape, -1),
    FIVE,
)
add(
    "stamps missing",
    "third of five rounds of all disks",
    UNKNOWN,
    "Five cuts were made, and four rounds are on record.",
    lambda tape: _no_rounds(tape, 2),
    FIVE,
)
add(
    "stamps missing",
    "no stamping at all",
    UNKNOWN,
    "Nothing was stamped, and it was asked whether anything was lost.",
    lambda tape: tape.drop(lambda e: e["type"].startswith(("ledger.", "readback."))),
    STAMPED,
)


def _no_rounds(tape: Tape, nth: int) -> Tape:
    jobs = [job for disk in tape.disks for job in round_of(tape, disk, nth)]
    return tape.drop(lambda event: event.get("job") in jobs)


@edit("stamps missing", UNKNOWN, STAMPED)
def victim_could_not_be_read_back(tape: Tape) -> Tape:
    """The disk was never read back: the record says why."""
    job = round_of(tape, tape.victim, -1)[1]
    tape = tape.drop(either(of("readback.part", job=job), of("readback.end", job=job)))
    return tape.change(of("readback.begin", job=job), error="the agent did not answer")


@edit("stamps missing", UNKNOWN, STAMPED)
def read_back_of_part_of_it(tape: Tape) -> Tape:
    """The read-back ends after half of what was to be read."""
    session = Session(tape, tape.victim)
    half = session.found[: len(session.found) // 2]
    return with_stream(tape, "readback", session.read["job"], encode_found(half))


@edit("stamps missing", UNKNOWN, STAMPED)
def ledger_of_another_session(tape: Tape) -> Tape:
    """The ledger's own first record names another session."""
    return tape.map(of("ledger.begin", disk=tape.victim), lambda event: event | {"session": event["session"] + 50})


@edit("stamps missing", (UNKNOWN, PASS), POWER)
def a_piece_came_twice(tape: Tape) -> Tape:
    """A piece of the ledger came twice, with the same bytes: it can never accuse the disk."""
    part = tape.all(of("ledger.part", disk=tape.victim))[3]
    return tape.double(lambda event: event is part)


@edit("stamps missing", UNKNOWN, POWER)
def a_piece_garbled(tape: Tape) -> Tape:
    """A piece of the ledger is not base64."""
    part = tape.all(of("ledger.part", disk=tape.victim))[3]
    return tape.map(lambda event: event is part, lambda event: event | {"data": "!!!!"})
