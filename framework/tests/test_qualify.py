"""The verdict on a port: each defect that it can have, and a healthy port."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import pytest
from rig_builder import a_rig

from plugpull.qualify.citation import problem
from plugpull.qualify.judgement import findings, latencies, spread, unknowns, verdict
from plugpull.qualify.measured import MeasuredPort, PortCycle, PortEdge, Vbus
from plugpull.qualify.qualification import Qualification, SwitchDevice, read_qualification
from plugpull.rig.load import RigFileErrors, load_rig
from plugpull.rig.model import DeclaredSwitch, Mechanism

OFF, ON = PortEdge(0.010, 0.050, False), PortEdge(0.012, 1.400, True)
HEALTHY = MeasuredPort(
    "disk1.cable", Mechanism.VBUS, ("disk1",), (PortCycle(OFF, ON),) * 3, 30.0, None, Vbus(0.02, 5.1)
)


def changed(**changes: Any) -> MeasuredPort:
    return dataclasses.replace(HEALTHY, **changes)


def cycle(**changes: Any) -> MeasuredPort:
    return changed(cycles=(dataclasses.replace(HEALTHY.cycles[0], **changes), *HEALTHY.cycles[1:]))


def test_a_good_port() -> None:
    assert (findings(HEALTHY), unknowns(HEALTHY), verdict(HEALTHY)) == ([], [], "PASS")


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (cycle(off=PortEdge(0.01, None, False)), "it did not cut: disk1 stayed, 1 of 3 times"),
        (cycle(on=PortEdge(0.01, None, True)), "disk1 did not come back, 1 of 3 times"),
        (cycle(off=PortEdge(0.01, 0.05, True)), "its read-back is wrong, 1 of 6 times"),
        (cycle(on=PortEdge(0.01, 1.4, False)), "its read-back is wrong, 1 of 6 times"),
        (cycle(others=("sdc (X at 1.2)",)), "it is ganged with others, or disturbs them: sdc (X at 1.2) went away too"),
        (cycle(errors=("sdc: I/O error", "b")), "it disturbs its neighbours: sdc: I/O error (and 1 more)"),
        (changed(came_back=4.2), "power came back by itself after 4.2 s"),
        (changed(vbus=Vbus(4.9, 5.1)), "VBUS is still there when it is off: 4.90 V"),
        (changed(vbus=Vbus(powered_off=True)), "VBUS is still there when it is off, as a person saw"),
        (
            changed(mechanism=Mechanism.DATA, vbus=Vbus(0.1, 5.1)),
            "VBUS goes too when it is off (0.10 V): that is data+vbus, but it claims data",
        ),
        (changed(went=False), "it did not cut: disk1 stayed when it was left off"),
        (changed(returned=False), "disk1 did not come back after 30 s without power"),
        (
            cycle(off=PortEdge(3.0, 3.1, False)),
            "it took 3.0 s to acknowledge; a cut in the middle of a transfer needs 2 s or less",
        ),
    ],
)
def test_what_is_wrong_with_a_port(measured: MeasuredPort, said: str) -> None:
    assert findings(measured) == [said]
    assert verdict(measured) == "FAIL"


@pytest.mark.parametrize(
    ("measured", "said"),
    [
        (changed(cycles=()), "no cycle was measured"),
        (changed(held=0.0), "whether power comes back by itself was not measured"),
        (changed(vbus=None), "whether VBUS goes was not measured: use --vbus-command, or --ask"),
        (changed(vbus=Vbus()), "whether VBUS goes was not measured: use --vbus-command, or --ask"),
        (changed(vbus=Vbus(0.02, 0.02)), "the meter reads 0.02 V with the port on: it is not at this port's VBUS"),
        (changed(vbus=Vbus(4.9, 0.02)), "the meter reads 0.02 V with the port on: it is not at this port's VBUS"),
        (changed(lost=("3 messages of the DUT were lost",)), "3 messages of the DUT were lost"),
        (changed(victims=()), "no disk is behind disk1.cable, so no cut could be seen"),
    ],
)
def test_what_was_not_measured_is_not_good(measured: MeasuredPort, said: str) -> None:
    assert unknowns(measured) == [said]
    assert verdict(measured) == "UNKNOWN"


def test_vbus_is_only_asked_of_what_claims_to_cut_it() -> None:
    assert verdict(changed(mechanism=Mechanism.MAINS, vbus=None)) == "PASS"
    assert verdict(changed(mechanism=Mechanism.MAINS, vbus=Vbus(4.9, 5.1))) == "PASS"
    assert verdict(changed(mechanism=Mechanism.DATA, vbus=Vbus(4.9, 5.1))) == "PASS"
    assert verdict(changed(vbus=Vbus(powered_off=False))) == "PASS"


def test_latencies() -> None:
    found = latencies(cycle(off=PortEdge(0.030, None, False)))
    assert (found["off acknowledged"].least, found["off acknowledged"].most) == (0.010, 0.030)
    assert found["off seen"].count == 2
    assert found["on seen"].median == 1.400
    hundred = spread(range(1, 101))
    assert (hundred.least, hundred.median, hundred.p95, hundred.most) == (1, 50.5, 95, 100)


# --- citing the result ----------------------------------------------------------------------------------------

RESULT: dict[str, Any] = {
    "qualification": 1,
    "switch": {"driver": "ykush", "serial": "YK1"},
    "port": "1",
    "point": "disk1.cable",
    "mechanism": "vbus",
    "verdict": "PASS",
}
CITING = (
    a_rig("desk", "local")
    .switch("yk", "ykush", 3, "vbus", serial="YK1", qualification="yk.json")
    .controller()
    .disk("disk1", cable="yk.1")
)


def test_a_rig_may_cite_a_good_port(tmp_path: Path) -> None:
    (tmp_path / "yk.json").write_text(json.dumps(RESULT))
    CITING.write(tmp_path)
    assert load_rig(tmp_path / "rig.toml").switch[0].qualification == "yk.json"
    assert read_qualification(tmp_path / "yk.json") == Qualification(
        qualification=1,
        switch=SwitchDevice(driver="ykush", serial="YK1"),
        port="1",
        point="disk1.cable",
        mechanism="vbus",
        verdict="PASS",
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (None, "cannot read"),
        ("{", "is not a qualification"),
        ("[" * 5000, "is not a qualification"),
        (json.dumps({**RESULT, "qualification": 7}), "of version 7"),
        (
            json.dumps({**RESULT, "verdict": "FAIL", "findings": ["it did not cut"]}),
            "failed its qualification in yk.json: it did",
        ),
        (json.dumps({**RESULT, "verdict": "UNKNOWN", "unknowns": ["no meter"]}), "came to no verdict: no meter"),
        (json.dumps({**RESULT, "switch": {"driver": "uhubctl"}}), 'a switch with the driver "uhubctl"'),
        (json.dumps({**RESULT, "switch": {"driver": "ykush", "serial": "YK2"}}), "with the serial number YK2"),
        (json.dumps({**RESULT, "mechanism": "data"}), "is about data"),
    ],
)
def test_a_rig_that_cites_anything_else_is_refused_at_its_place(tmp_path: Path, text: str | None, said: str) -> None:
    if text is not None:
        (tmp_path / "yk.json").write_text(text)
    CITING.write(tmp_path)
    with pytest.raises(RigFileErrors) as raised:
        load_rig(tmp_path / "rig.toml")
    (mistake,) = raised.value.mistakes
    assert said in mistake.what
    assert (mistake.line, mistake.column) == (11, 17)


def test_a_switch_without_a_serial_number_may_cite_by_its_driver(tmp_path: Path) -> None:
    (tmp_path / "yk.json").write_text(json.dumps(RESULT))
    table = {"name": "yk", "driver": "ykush", "ports": 3, "mechanism": "vbus"}
    assert problem(tmp_path, "yk.json", DeclaredSwitch.model_validate(table)) is None
