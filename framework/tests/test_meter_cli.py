"""The commands of ``plugpull meter``, on doubles."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from meter_doubles import SHELLY_NEW, hwmon_tree, web_double
from rig_builder import a_rig

from plugpull.cli import main
from plugpull.exit_status import EXIT_PASS, EXIT_UNKNOWN, EXIT_USAGE
from plugpull.meters.kinds import FoundMeter
from plugpull.meters.listing import find_meters, meter_tables
from plugpull.rig.load import parse_rig
from plugpull.switches.host_local import LocalHost


def shelf(folder: Path, url: str, chip: str = "ina226") -> str:
    root = str(folder / "class/hwmon")
    rig = a_rig("shelf", "local").controller().disk("disk1")
    rig = rig.table("meter", name="plug", driver="shelly", side="mains", disks=["disk1"], url=url)
    rig = rig.table("meter", name="chip", driver="hwmon", side="usb", disks=["disk1"], chip=chip, root=root)
    return str(rig.write(folder))


def test_reading_the_meters_of_a_rig(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hwmon_tree(tmp_path, 0, "ina226", "6-0040", power1_input=2_175_000)
    with web_double(SHELLY_NEW) as device:
        rig = shelf(tmp_path, device.url)
        assert main(["meter", "read", "--rig", rig]) == EXIT_PASS
        plug, chip = capsys.readouterr().out.splitlines()
        assert re.fullmatch(
            r"plug: 8\.6 W at \d\d:\d\d:\d\d\.\d{3}, within \d\.\d{3} s "
            r"\(231\.7 V, 0\.088 A, mains side, Shelly S3PL-00112EU at http://127\.0\.0\.1:\d+\)",
            plug,
        )
        assert chip.startswith("chip: 2.175 W at ")
        assert main(["meter", "read", "chip", "--count", "2", "--interval", "0", "--json", "--rig", rig]) == EXIT_PASS
        one, two = map(json.loads, capsys.readouterr().out.splitlines())
        assert (one["meter"], one["watts"], one["why"]) == ("chip", 2.175, "")
        assert two["wall"] > one["wall"]
        assert one["uncertainty"] > 0


def test_no_reading_is_not_zero_watts(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    hwmon_tree(tmp_path, 0, "ina226", "6-0040", power1_input="")
    with web_double({}) as device:
        rig = shelf(tmp_path, device.url)
        assert main(["meter", "read", "--rig", rig]) == EXIT_UNKNOWN
        out = capsys.readouterr().out
        assert "plug: no reading: it answers with the status 404" in out
        assert "chip: no reading: power1_input is not a number" in out
        assert "0 W" not in out
        assert main(["meter", "read", "--json", "--rig", rig]) == EXIT_UNKNOWN
        assert [json.loads(line)["watts"] for line in capsys.readouterr().out.splitlines()] == [None, None]


def test_a_meter_that_is_missing_does_not_stop_the_others(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with web_double(SHELLY_NEW) as device:
        assert main(["meter", "read", "--rig", shelf(tmp_path, device.url)]) == EXIT_UNKNOWN
    said = capsys.readouterr()
    assert "plug: 8.6 W" in said.out
    assert "meter chip: there is no chip ina226 on this machine" in said.err


def test_a_meter_that_no_rig_file_declares(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with web_double(SHELLY_NEW) as device:
        words = ["meter", "read", "--driver", "shelly", "--option", f"url={device.url}", "--option", "channel=0"]
        assert main(words) == EXIT_PASS
    assert capsys.readouterr().out.startswith("meter: 8.6 W at")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "say which meter"),
        (("--driver", "shely"), "there is no meter driver 'shely'"),
        (("--driver", "shelly"), 'has no "url"'),
        (("--driver", "shelly", "--option", "url"), "write KEY=VALUE"),
        (("--driver", "hwmon", "--option", "chip=a/b"), '"chip" cannot be'),
        (("plug", "--driver", "hwmon"), "names of meters go with --rig"),
        (("--rig", "shelf.toml", "--option", "a=b"), "goes with --driver"),
        (("other", "--rig", "shelf.toml"), "there is no meter named 'other'"),
        (("--rig", "bare.toml"), "has no [[meter]]"),
        (("--rig", "quick.toml"), "they exist only during a run"),
    ],
)
def test_wrong_usage(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    words: tuple[str, ...],
    said: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    Path(shelf(tmp_path, "http://127.0.0.1:1")).rename("shelf.toml")
    a_rig("bare", "local").controller().disk("disk1").write(tmp_path).rename("bare.toml")
    a_rig("quick").controller().disk("disk1").write(tmp_path).rename("quick.toml")
    assert main(["meter", "read", *words]) == EXIT_USAGE
    assert said in capsys.readouterr().err


def test_a_list_can_be_pasted() -> None:
    found = (
        FoundMeter("hwmon", "ina226", "6-0040", {"chip": "ina226", "device": "6-0040"}, "usb"),
        FoundMeter("hwmon", "ina226", "6-0041", {"chip": "ina226", "device": "6-0041"}, "usb", "a note"),
        FoundMeter("hwmon", "0\x1b[1m", 'a"b', {"chip": 'a"b'}, "usb"),
    )
    tables = meter_tables(found, via="dut")
    text = "\n".join(tables).replace("disks = []", 'disks = ["disk1"]')
    rig = parse_rig(a_rig("shelf", "ssh", host="dut").controller().disk("disk1").text + text)
    assert [one.name for one in rig.meter] == ["ina226", "ina226-2", "m"]
    assert [one.via for one in rig.meter] == ["dut"] * 3


def test_meters_that_cannot_be_found_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    listing = find_meters(LocalHost())
    assert "hwmon" in listing.looked
    assert set(listing.unseen) >= {"shelly", "tasmota", "um25c"}
    assert main(["meter", "list"]) == EXIT_PASS
    assert "cannot be found, only declared: shelly, tasmota, um25c" in capsys.readouterr().out
    assert main(["meter", "list", "--json"]) == EXIT_PASS
