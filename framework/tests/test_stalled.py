"""A disk stands still until the kernel has given a command up, answers again whatever happens, and it is recorded."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import Mock

import pytest

from plugpull.dut import stalled
from plugpull.dut.conversation.link import AgentGone
from plugpull.dut.stalled import Stalled
from plugpull.errors import NotServed, RigError
from plugpull.history import events as ev

ENDED = {"at": 12.0, "changed": [], "failed": {}, "until": 11.5, "disk": "running", "host": "running", "worked": True}


def context(counts: Sequence[int | BaseException | None], end: int | None = 1) -> Mock:
    made = Mock()
    made.now.side_effect = iter(range(10, 200))
    made.listener.lost = ""
    said = iter(counts)

    def call(op: str, *arguments: float, **others: object) -> object:
        if op == "stall":
            return {"at": 9.0, "given_up": counts[0], "changed": [], "failed": {}}
        if op == "stall.end":
            return {**ENDED, "given_up": end}
        value = next(said) if op == "stall.given_up" else None
        if isinstance(value, BaseException):
            raise value
        return value

    made.bench.link.call.side_effect = call
    return made


def stalls(made: Mock) -> list[bool]:
    return [one.args[1] for one in made.bench.stall.call_args_list]


def recorded(made: Mock) -> ev.DiskStalled:
    events = [one.args[0] for one in made.recorder.record.call_args_list]
    assert [event.moment for event in events if isinstance(event, ev.TimersSet)] == ["stalled", "stalled"]
    (event,) = (one for one in events if isinstance(one, ev.DiskStalled))
    return event


def test_it_answers_again_once_a_command_was_given_up() -> None:
    made = context([0, 0, 1, 1])
    with Stalled(made, "disk1", 1):
        assert stalls(made) == [True, False]
    event = recorded(made)
    assert (event.disk, event.given_up, event.disk_state, event.worked) == ("disk1", 1, "running", True)
    assert (event.spans, event.until, event.timeout) == (((10, 11),), 11.5, stalled.TIMEOUT)


def test_it_stands_still_as_often_as_asked() -> None:
    made = context([0, 1, 1, 2, 2], end=2)
    with Stalled(made, "disk1", 2):
        assert stalls(made) == [True, False, True, False]
    assert (recorded(made).given_up, len(recorded(made).spans)) == (2, 2)


def test_it_answers_again_once_the_whole_dut_stands_still() -> None:
    made = context([0, AgentGone("no answer"), 1])
    with Stalled(made, "disk1", 1):
        assert stalls(made) == [True, False]
    assert recorded(made).given_up == 1


def test_it_stands_still_again_if_nothing_was_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stalled, "MOST", 0.0)
    made = context([0, 0, 0, 0, 0, 0], end=0)
    with Stalled(made, "disk1", 1):
        assert stalls(made) == [True, False] * stalled.TRIES
    assert recorded(made).given_up == 0


def test_a_kernel_that_does_not_count_is_given_the_time() -> None:
    made = context([None, None, None], end=None)
    with Stalled(made, "disk1", 1):
        made.pause.assert_called_once_with(stalled.TIMEOUT + stalled.ROUNDED + stalled.LONGER)
    assert recorded(made).given_up is None


def test_it_answers_again_after_an_interruption() -> None:
    made = context([0, KeyboardInterrupt()])
    with pytest.raises(KeyboardInterrupt), Stalled(made, "disk1", 1):
        pass
    assert stalls(made) == [True, False]
    assert recorded(made).spans


def test_what_is_cut_meanwhile_keeps_what_was_counted_before() -> None:
    made = context([0, 1, 1], end=None)
    with Stalled(made, "disk1", 1):
        pass
    assert recorded(made).given_up == 1


def test_a_rig_whose_disks_nobody_can_stall_cannot_serve_it() -> None:
    made = context([0])
    made.bench.can_stall = False
    with pytest.raises(NotServed, match="stand still"):
        Stalled(made, "disk1", 1)
    made.bench.stall.assert_not_called()


def test_a_bench_that_is_gone_meanwhile_had_a_disk_that_stood_still() -> None:
    """What the kernel reported of its command is explained, whatever else broke."""
    made = context([0, 1])
    made.bench.stall.side_effect = [None, RigError("QEMU was killed")]
    with pytest.raises(RigError, match="QEMU was killed"), Stalled(made, "disk1", 1):
        pass
    assert recorded(made).spans == ((10, 11),)


def test_an_agent_that_is_gone_at_the_end_had_seen_it() -> None:
    made = context([0, 1, 1])
    with pytest.raises(AgentGone), Stalled(made, "disk1", 1):
        made.bench.link.call.side_effect = AgentGone("nothing was heard")
    events = [one.args[0] for one in made.recorder.record.call_args_list]
    (event,) = (one for one in events if isinstance(one, ev.DiskStalled))
    assert (event.given_up, event.worked) == (1, False)
