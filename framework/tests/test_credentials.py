"""Credentials in a rig file stay in it: none is in a history, a message or a lock file."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest
from rig_builder import a_rig

from plugpull.coordination.lease import resources
from plugpull.errors import RigError
from plugpull.rig.credentials import WITHHELD, recorded, without_userinfo
from plugpull.rig.model import DeclaredSwitch, Rig
from plugpull.switches.host import Completed
from plugpull.switches.host_local import MOST_OUTPUT, LocalHost
from plugpull.switches.kinds import open_switch
from plugpull.switches.person import TerminalPerson
from plugpull.switches.programs import error_line

SECRETS = ("hunter2", "s3cret", "t0ken", "pr1vate", "4711")
RIG = (
    a_rig("desk", "ssh", host="dut", ssh_options=["-o", "ProxyCommand=sshpass -p hunter2 ssh jump"])
    .switch(
        "curl",
        "command",
        2,
        "mains",
        on="curl -u admin:hunter2 http://pdu/on/{port}",
        off="curl -H 'X-Key: t0ken' http://pdu/off/{port}; exit 1",
    )
    .switch("daemon", "pdudaemon", 2, "mains", pdu="rack-7", server="http://admin:s3cret@pdu.example:16421")
    .controller()
    .disk("disk1", power="curl.1")
)


def rig(*switches: DeclaredSwitch) -> Rig:
    read = RIG.load()
    return read.model_copy(update={"switch": (*read.switch, *switches)})


def foreign(**options: object) -> DeclaredSwitch:
    """A switch of a driver that another package brings."""
    return DeclaredSwitch.model_validate({"name": "x", "driver": "x", "ports": 1, "mechanism": "mains", **options})


def test_no_credential_of_a_rig_file_is_recorded() -> None:
    whole = rig(foreign(password="hunter2", community="pr1vate", pin=4711, api_key="t0ken", odd={"a": ["s3cret"]}))
    text = json.dumps(recorded(whole))
    assert not [secret for secret in SECRETS if secret in text]
    assert "http://...@pdu.example:16421" in text
    assert Rig.model_validate_json(text).switch[0].options["on"] == WITHHELD


def test_what_is_no_credential_is_recorded() -> None:
    whole = rig(foreign(serial="YK1", device="/dev/ttyUSB0", channels=8, location="1-1.4", force=True))
    data = recorded(whole)
    assert data["switch"][1]["pdu"] == "rack-7"
    assert data["switch"][2] | {"serial": "YK1", "device": "/dev/ttyUSB0", "channels": 8, "force": True} == (
        whole.switch[2].model_dump(mode="json")
    )
    assert data["disk"] == whole.model_dump(mode="json")["disk"]


def test_no_credential_is_in_what_a_lease_says() -> None:
    text = " ".join(resources(rig(foreign(token="t0ken")), Path("desk.toml")))
    assert not [secret for secret in SECRETS if secret in text]


def test_switches_with_the_same_commands_are_one_switch_to_a_lease() -> None:
    one, other = rig(), rig()
    renamed = other.switch[0].model_copy(update={"name": "other"})
    assert resources(one, Path("a")) == resources(
        other.model_copy(update={"switch": (renamed, other.switch[1])}), Path("b")
    )


def test_no_credential_is_in_the_error_of_a_command() -> None:
    switch = open_switch(rig().switch[0], LocalHost(), TerminalPerson())
    with pytest.raises(RigError) as raised:
        switch.set("1", False)
    assert not [secret for secret in SECRETS if secret in str(raised.value)]
    assert "the command 'off' for port 1 ended with status 1" in str(raised.value)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("http://a:b@c/d", "http://...@c/d"),
        ("a:b@c:80", "...@c:80"),
        ("http://c/d@e", "http://c/d@e"),
        ("failed: https://tok@host/x and ftp://u:p@h", "failed: https://...@host/x and ftp://...@h"),
    ],
)
def test_what_is_before_the_at_of_an_address_is_left_out(text: str, shown: str) -> None:
    assert without_userinfo(text) == shown


# --- what programs say is bounded -----------------------------------------------------------------------------


def said(code: str, timeout: float = 60.0) -> Completed:
    return LocalHost().run([sys.executable, "-c", code], timeout)


def test_the_beginning_and_the_end_of_what_a_program_says_are_kept() -> None:
    done = said(
        "import sys; print('first'); sys.stdout.write('x' * 5_000_000); print('\\nlast'); sys.stderr.write('e')"
    )
    assert done.stdout.startswith("first\nx")
    assert done.stdout.endswith("\nlast\n")
    assert len(done.stdout) < 2 * MOST_OUTPUT + 100
    assert "bytes left out]" in done.stdout
    assert (done.status, done.stderr) == (0, "e")


def test_a_little_is_kept_whole() -> None:
    count = MOST_OUTPUT // 3 + 1000
    done = said(f"import sys; sys.stdout.buffer.write(('\\u26a1' * {count}).encode()); sys.exit(3)")
    assert (done.status, done.stdout) == (3, "\u26a1" * count)


def test_a_program_that_never_stops_talking_is_ended_at_its_deadline() -> None:
    with pytest.raises(RigError, match="did not end within"):
        said("import os\nwhile True: os.write(1, b'x' * 65536)", 1.0)


def test_little_of_what_a_program_says_goes_into_an_error() -> None:
    words = error_line(Completed(1, "", "\x1b[2J" + "x" * 100_000))
    assert len(words) <= 300
    assert "\x1b" not in words


def test_a_switch_whose_command_floods_is_obeyed_all_the_same(tmp_path: Path) -> None:
    declared = DeclaredSwitch.model_validate(
        {
            "name": "loud",
            "driver": "command",
            "ports": 1,
            "mechanism": "mains",
            "timeout": 60.0,
            "on": f"head -c 3000000 /dev/zero; echo on > {tmp_path}/port",
            "off": "true",
            "read": f"head -c 3000000 /dev/zero; echo; cat {tmp_path}/port",
        }
    )
    switch = open_switch(declared, LocalHost(), TerminalPerson())
    switch.set("1", True)
    assert switch.read("1") is True
    assert os.path.getsize(tmp_path / "port") == 3
