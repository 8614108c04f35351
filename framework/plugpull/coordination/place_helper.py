"""Run by an interpreter that has labgrid: asks its coordinator, a JSON line at a time.

``python place_helper.py [COORDINATOR]``. Ends with its standard input, and cancels its reservation then. Standard
library and labgrid only.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import sys
from importlib import metadata
from typing import Any

OLDEST = 25
"""The first version of labgrid with this protocol (gRPC). Older coordinators speak another one."""
DEFAULT = "127.0.0.1:20408"
LONGEST = 10.0
"""Seconds that the coordinator gets for one answer."""
STATES = ("waiting", "allocated", "acquired", "expired", "invalid")
"""labgrid/remote/common.py, ReservationState."""


class Reserver:
    """Requests of one run to the coordinator. ``messages`` is labgrid's module of message classes."""

    def __init__(self, session: Any, messages: Any) -> None:
        self._session, self._messages = session, messages
        self._token = ""

    async def answer(self, request: dict[str, Any]) -> dict[str, Any]:
        what = request.get("do")
        if what == "look":
            return await self._look()
        if what == "reserve":
            return await self._reserve(str(request["place"]))
        if what == "poll":
            return await self._poll()
        if what == "schedule":
            return await self._schedule()
        await self.cancel()
        return {}

    async def _look(self) -> dict[str, Any]:
        """Every place and reservation."""
        # Without the stream, nobody would answer, and places would be those of earlier.
        if self._session.stopping.is_set() or not await self._session.sync_with_coordinator():
            raise ConnectionError("the coordinator closed the connection")
        found = await self._session.stub.GetReservations(self._messages.GetReservationsRequest())
        paths = [
            (exporter, group, entry.cls, name)
            for exporter, groups in self._session.resources.items()
            for group, entries in groups.items()
            for name, entry in entries.items()
            if entry.data  # an entry whose exporter is gone is empty
        ]
        return {
            "places": {name: _place(place, paths) for name, place in self._session.places.items()},
            "reservations": [_reservation(each) for each in found.reservations],
        }

    async def _reserve(self, place: str) -> dict[str, Any]:
        filters = {"main": self._messages.Reservation.Filter(filter={"name": place})}
        request = self._messages.CreateReservationRequest(filters=filters, prio=0.0)
        made = (await self._session.stub.CreateReservation(request)).reservation
        self._token = made.token
        return {"token": made.token, "state": _state(made.state)}

    async def _poll(self) -> dict[str, Any]:
        request = self._messages.PollReservationRequest(token=self._token)
        return {"state": _state((await self._session.stub.PollReservation(request)).reservation.state)}

    async def _schedule(self) -> dict[str, Any]:
        """Have the coordinator give free places away. It does so every 15 s, and whenever somebody reserves."""
        filters = {"main": self._messages.Reservation.Filter(filter={"plugpull": "nothing"})}
        request = self._messages.CreateReservationRequest(filters=filters, prio=0.0)
        made = (await self._session.stub.CreateReservation(request)).reservation
        await self._session.stub.CancelReservation(self._messages.CancelReservationRequest(token=made.token))
        return {}

    async def cancel(self) -> None:
        """Cancel the reservation, if there is one and the coordinator can be reached."""
        if self._token:
            request = self._messages.CancelReservationRequest(token=self._token)
            self._token = ""
            with contextlib.suppress(Exception):  # it expires by itself
                await asyncio.wait_for(self._session.stub.CancelReservation(request), 5.0)


def _place(place: Any, paths: list[Any]) -> dict[str, Any]:
    unmatched = [match for match in place.matches if not any(match.ismatch(path) for path in paths)]
    return {
        "acquired": place.acquired or "",
        "reservation": place.reservation or "",
        "changed": place.changed,
        "unmatched": [str(match) for match in unmatched],
    }


def _reservation(each: Any) -> dict[str, Any]:
    main = each.filters["main"].filter if "main" in each.filters else {}
    return {
        "token": each.token,
        "owner": each.owner,
        "state": _state(each.state),
        "created": each.created,
        "place": each.allocations.get("main", "") or main.get("name", ""),
    }


def _state(number: int) -> str:
    return STATES[number] if 0 <= number < len(STATES) else "unknown"


def _why(error: Exception) -> str:
    details = getattr(error, "details", None)  # of gRPC
    return str(details() if callable(details) else error) or type(error).__name__


def _failure(error: Exception) -> dict[str, Any]:
    """An error as an answer. ``unavailable``: it may work again later; ``refused``: it will not."""
    code = getattr(error, "code", None)  # of gRPC
    name = getattr(code(), "name", "") if callable(code) else ""
    later = name in ("UNAVAILABLE", "DEADLINE_EXCEEDED") or isinstance(error, TimeoutError | ConnectionError)
    return {"ok": False, "kind": "unavailable" if later else "refused", "why": _why(error)}


async def _serve(reserver: Reserver, loop: asyncio.AbstractEventLoop, out: Any) -> None:
    try:
        while line := await loop.run_in_executor(None, sys.stdin.readline):
            try:
                found = {"ok": True, **await asyncio.wait_for(reserver.answer(json.loads(line)), LONGEST)}
            except Exception as error:
                found = _failure(error)
            print(json.dumps(found), file=out, flush=True)
    except BrokenPipeError:
        pass  # the run is gone
    finally:
        await reserver.cancel()


def main() -> None:
    out = sys.stdout
    sys.stdout = sys.stderr  # labgrid prints what is not an answer
    try:
        version = metadata.version("labgrid")
        if int(version.split(".")[0]) < OLDEST:
            raise ImportError(f"labgrid {version} speaks another protocol: {OLDEST} or newer is needed")
        from labgrid.remote.client import start_session
        from labgrid.remote.generated import labgrid_coordinator_pb2 as messages
    except Exception as error:
        print(json.dumps({"ok": False, "kind": "missing", "why": str(error)}), file=out, flush=True)
        return
    address = (sys.argv[1:2] or [""])[0] or os.environ.get("LG_COORDINATOR") or DEFAULT
    loop = asyncio.new_event_loop()
    asyncio.set_event_loop(loop)  # gRPC takes the current one
    try:
        session = start_session(address, loop=loop)
    except Exception as error:
        why = _why(error) or "no answer"
        print(json.dumps({"ok": False, "kind": "unreachable", "why": why, "address": address}), file=out, flush=True)
        return
    print(json.dumps({"ok": True, "address": address}), file=out, flush=True)
    loop.run_until_complete(_serve(Reserver(session, messages), loop, out))


if __name__ == "__main__":
    main()
