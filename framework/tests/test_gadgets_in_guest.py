"""The drivers of HID switches in the guest: through stock hidapi, pykush and the kernel's USB stack."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest
from chains import chain
from long_tests import only_if_asked

from fixtures.boards.board import Lie
from fixtures.gadgets.plugged import plugged
from fixtures.lab import Lab, desk

pytestmark = pytest.mark.bench
PATIENT, HASTY = 30.0, 1.0
"""Seconds a device gets in steps where it answers, and where it does not."""
SLACK = 10.0
"""Seconds beyond a deadline, for a guest on a busy machine."""
SCRIPT = Path(__file__).parent / "hid_in_guest.py"
YKUSH = {"driver": "ykush", "ports": 3, "mechanism": "vbus", "serial": "YK12345", "timeout": PATIENT}
RELAY = {"driver": "hid-relay", "ports": 2, "mechanism": "mains", "serial": "ABCDE", "timeout": PATIENT}
MICROCHIP, V_USB = 0x04D8, 0x16C0


def do(made: Lab, *steps: list[Any]) -> list[dict[str, Any]]:
    """The outcome of each step."""
    made.put("/root/hid_in_guest.py", SCRIPT.read_bytes())
    done = made.run(["python3", "/root/hid_in_guest.py", json.dumps(steps)], timeout=120)
    outcomes = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.status, len(outcomes)) == (0, len(steps)), done
    return outcomes


def came(outcome: dict[str, Any]) -> Any:
    assert "error" not in outcome, outcome
    return outcome["came"]


def assert_refused(outcome: dict[str, Any], says: str, within: float) -> None:
    assert says in outcome.get("error", ""), outcome
    assert outcome["hint"]
    assert outcome["seconds"] < within + SLACK, outcome


def cuts_made(made: Lab, count: int) -> None:
    """Wait for what the double asked for: it answers its driver first."""
    deadline = time.monotonic() + PATIENT
    while len(made.cuts) < count and time.monotonic() < deadline:
        time.sleep(0.05)  # the lab makes a list


def a_lie(control: str, lie: Lie, port: str, on: bool) -> list[list[Any]]:
    """Five steps: the second from the start is the one that has to fail."""
    hasty = lie in (Lie.SILENT, Lie.LATE)
    return [
        ["lie", control, lie.value],
        ["patience", HASTY if hasty else PATIENT],
        ["set", port, on],
        ["lie", control, "none"],
        ["patience", PATIENT],
    ]


def test_a_ykush() -> None:
    lies = {
        Lie.SILENT: "gave no answer",
        Lie.HALF: "gave only 10 bytes",
        Lie.OTHER: "with the answer to 02",
        Lie.STUCK: "port 1 was switched off, and the YKUSH says it is on",
        # After an answer that never came, each state is asked for twice.
        Lie.STALE: "its answers about port 1 come late, and do not agree",
        Lie.LATE: "gave no answer",
    }
    with chain(desk(1)) as made, plugged(made, "ykush", cuts={1: "disk1"}) as double:
        steps: list[list[Any]] = [["until", MICROCHIP, 1], ["found", "ykush"], ["open", YKUSH]]
        steps += [["set", "1", False], ["read", "1"], ["set_many", ["1", "2", "3"], True], ["read", "1"]]
        first = len(steps)
        for lie in lies:
            steps += [["set", "1", True], *a_lie(double.control, lie, "1", False)]
        last = len(steps)
        steps += [["set", "1", True], ["read", "1"]]
        outcomes = do(made, *steps)
        assert came(outcomes[1]) == [["YKUSH", "YK12345", 3]]
        assert came(outcomes[2])["firmware"] == "2.1"
        assert [came(outcome) for outcome in outcomes[4:7]] == [False, 1, True]
        for number, (lie, says) in enumerate(lies.items()):
            step = outcomes[first + 6 * number :]
            came(step[0])
            assert_refused(step[3], says, HASTY if lie in (Lie.SILENT, Lie.LATE) else PATIENT)
        assert came(outcomes[last + 1]) is True
        cuts_made(made, 2)
        assert made.cuts[:2] == [("disk1", "cable", False), ("disk1", "cable", True)]


@only_if_asked
def test_a_ykush_that_is_unplugged_and_one_too_many() -> None:
    with chain(desk(1)) as made, plugged(made, "ykush") as double:
        outcomes = do(
            made,
            ["until", MICROCHIP, 1],
            ["as_nobody", YKUSH],
            ["open", {**YKUSH, "serial": "YK99999"}],
            ["open", YKUSH],
            *a_lie(double.control, Lie.UNPLUGGED, "1", False),
            ["set", "1", True],
            ["close"],
        )
        assert_refused(outcomes[1], "cannot be read", PATIENT)
        assert 'ATTRS{idProduct}=="f2f7"' in outcomes[1]["hint"]
        assert_refused(outcomes[2], "no YKUSH with the serial number YK99999", PATIENT)
        assert "YK12345" in outcomes[2]["hint"]
        came(outcomes[3])
        assert "error" in outcomes[6], outcomes
        assert_refused(outcomes[9], "does not work any more", PATIENT)
        # Where no udevd runs, a process does not see what is plugged in after it has begun.
        for outcome in do(made, ["until", MICROCHIP, 1], ["open", YKUSH], ["set", "1", False]):
            came(outcome)
        with plugged(made, "ykush"):
            _, refused = do(made, ["until", MICROCHIP, 2], ["open", YKUSH])
            assert_refused(refused, "both have the serial number YK12345", PATIENT)


@only_if_asked
def test_a_hid_relay_board() -> None:
    lies = {
        Lie.SILENT: "does not work any more",
        Lie.HALF: "not the 8 bytes",
        Lie.OTHER: "port 1 was switched on, and the board says it is off",
        Lie.STUCK: "port 1 was switched on, and the board says it is off",
        Lie.STALE: "port 1 was switched on, and the board says it is off",
    }
    with chain(desk(1)) as made, plugged(made, "hid-relay", serial="ABCDE", cuts={2: "disk1 power"}) as double:
        steps: list[list[Any]] = [["until", V_USB, 1], ["found", "hid-relay"], ["open", RELAY], ["set", "2", True]]
        steps += [["read", "2"], ["set", "2", False], ["read", "2"], ["set_many", ["1", "2"], True]]
        steps += [["set_many", ["1", "2"], False]]
        first = len(steps)
        for lie in lies:
            steps += [["set", "1", False], *a_lie(double.control, lie, "1", True)]
        steps += [["set", "1", True], ["read", "1"], *a_lie(double.control, Lie.UNPLUGGED, "1", False)]
        outcomes = do(made, *steps)
        assert came(outcomes[1]) == [["USBRelay2", "ABCDE", 2]]
        assert came(outcomes[2])["model"] == "USBRelay2"
        assert [came(outcome) for outcome in (outcomes[4], outcomes[6], outcomes[7])] == [True, False, 1]
        for number, says in enumerate(lies.values()):
            step = outcomes[first + 6 * number :]
            came(step[0])
            assert_refused(step[3], says, PATIENT)
        assert came(outcomes[-6]) is True
        assert_refused(outcomes[-3], "does not work any more", PATIENT)
        cuts_made(made, 2)
        assert made.cuts[:2] == [("disk1", "power", True), ("disk1", "power", False)]
        late = do(made, ["until", V_USB, 1], ["open", RELAY], *a_lie(double.control, Lie.LATE, "1", False))
        came(late[1])
        assert_refused(late[4], "does not work any more", HASTY)
