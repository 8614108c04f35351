"""A scan of files ends with the scenario that asked for it."""

from __future__ import annotations

from unittest.mock import Mock

import pytest

from plugpull.errors import RigError
from plugpull.integrity.writing.files.session import FileJob, FileRunner


@pytest.mark.parametrize("reason", [KeyboardInterrupt(), RigError("the agent is lost", hint="start it again")])
@pytest.mark.parametrize("answer", [{"scan1-disk1": {"stuck": False, "process": {}}}, RigError("no answer", hint="")])
def test_a_scan_that_is_interrupted_is_ended(reason: BaseException, answer: object) -> None:
    context = Mock()
    context.wait_for.side_effect = reason
    context.bench.link.call.side_effect = [answer]
    with pytest.raises(type(reason)) as raised:
        FileRunner(context).finish(FileJob("scan1-disk1", "disk1", "sda", 0, scan=True))
    assert raised.value is reason
    (call,) = context.bench.link.call.call_args_list
    assert (call.args[0], call.kwargs["jobs"]) == ("jobs.stop", ["scan1-disk1"])


def test_a_scan_that_ended_is_not_ended_again() -> None:
    context = Mock()
    job = FileJob("scan1-disk1", "disk1", "sda", 0, scan=True)
    job.ended.set()
    FileRunner(context).finish(job)
    assert context.bench.link.call.call_args_list == []
    assert context.recorder.record.call_count == 1
