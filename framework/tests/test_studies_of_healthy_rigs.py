"""Studies of rigs without anything to find: the whole judgement."""

from __future__ import annotations

import random

from study_benches import StudyBench, a_rig, judged, writing

from plugpull.judging.judge import judge_story
from plugpull.load.designs import each_alone, scaling_design
from plugpull.studies import alone, scaling


def test_thirty_healthy_rigs_have_at_most_one_false_conclusion() -> None:
    false = []
    for number in range(30):
        draw = random.Random(f"healthy study {number}")
        rates = [2.0 * draw.gauss(1, 0.02) for _ in range(draw.randint(2, 6))]
        rig = a_rig(rates, noise=draw.choice([0.005, 0.01, 0.02]), seed=("study", number))
        repeats = draw.choice([3, 5])
        found = judged(StudyBench(rig, scaling_design(rig.names), repeats=repeats), scaling(rig.names))
        each = judged(StudyBench(rig, each_alone(rig.names), repeats=repeats), alone(rig.names))
        wrong = [one for one in (*found.conclusions, *each.conclusions) if one.kind != "no-bottleneck"]
        if wrong or found.findings or each.findings:
            false.append((number, wrong))
    assert len(false) <= 1, false


def test_a_scenario_carries_its_conclusions_and_the_run_has_them_all() -> None:
    rig = a_rig([1.4, 2.0, 2.0, 2.0])
    result = judge_story(StudyBench(rig, writing(each_alone(rig.names)), repeats=3).story(alone(rig.names)))
    assert [one.kind for one in result.conclusions] == ["outlier"]
    assert result.measurements[0].check == "alone"
