"""What the agent watches all the time: a healthy story passes, and all of it stands for every scenario."""

from __future__ import annotations

import pytest
from stories import healthy
from watched import blocked, watched

from plugpull.checks import Check, nothing_blocked, nothing_spins, same_properties, state_kept
from plugpull.judging.judge import judge_story
from plugpull.judging.results import Verdict


@pytest.mark.parametrize("check", [nothing_blocked(), nothing_spins(), same_properties(), state_kept()])
@pytest.mark.parametrize("bench", [watched, healthy])
def test_a_healthy_story_passes_whether_it_was_watched_or_not(check: Check, bench: object) -> None:
    judgement = bench().judge(check)  # type: ignore[operator]
    assert (judgement.findings, judgement.unknowns) == ((), ())


def test_all_of_it_stands_for_every_scenario() -> None:
    assert judge_story(watched().story()).verdict is Verdict.PASS
    bench = watched()
    bench.add(blocked(12.0))
    result = judge_story(bench.story())
    assert result.verdict is Verdict.FAIL
    assert "kernel thread kworker/1:2+usb_hub_wq (41) is blocked for 12.00 s in usb_stor_disconnect" in result.sentence
