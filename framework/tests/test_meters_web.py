"""Meters on the network: recorded answers, passwords, and devices that lie."""

from __future__ import annotations

import socket
import threading
import time
from typing import Any

import pytest
from meter_doubles import PATIENCE, SHELLY_NEW, SHELLY_OLD, TASMOTA, TASMOTA_PATH, opened_meter, wait_until, web_double

from plugpull.errors import RigError
from plugpull.meters import shelly, tasmota
from plugpull.meters.base import NoReading, PowerReading
from plugpull.meters.digest import authorization
from plugpull.switches.host_local import LocalHost

STATUS = "/rpc/Switch.GetStatus?id=0"
PASSWORD = "hunter2"


def new(**changes: Any) -> dict[str, Any]:
    return {**SHELLY_NEW, STATUS: {**SHELLY_NEW[STATUS], **changes}}


def old(**changes: Any) -> dict[str, Any]:
    return {**SHELLY_OLD, "/meter/0": {**SHELLY_OLD["/meter/0"], **changes}}


def energy(**changes: Any) -> dict[str, Any]:
    sensors = TASMOTA["StatusSNS"]
    return {TASMOTA_PATH: {"StatusSNS": {**sensors, "ENERGY": {**sensors["ENERGY"], **changes}}}}


def reading_of(
    driver: str, bodies: dict[str, Any], double: dict[str, Any] | None = None, **options: Any
) -> PowerReading:
    with web_double(bodies, **(double or {})) as device, opened_meter(driver, url=device.url, **options) as meter:
        begun = time.monotonic()
        reading = meter.read()
        # The time of the reading is the middle of the request, and its uncertainty covers all of it.
        assert begun <= reading.at <= time.monotonic()
        assert reading.at - reading.uncertainty <= begun
        assert reading.at + reading.uncertainty >= time.monotonic() - 0.5
    return reading


def why(driver: str, bodies: dict[str, Any], double: dict[str, Any] | None = None, **options: Any) -> str:
    """The reason why there is no reading."""
    reading = reading_of(driver, bodies, double, **options)
    assert reading.power is None, reading.power
    return reading.why


# --- what they say ----------------------------------------------------------------------------------------------


def test_a_shelly_of_a_later_generation() -> None:
    power = reading_of("shelly", SHELLY_NEW).power
    assert power is not None
    assert (power.watts, power.volts, power.amps) == (8.6, 231.7, 0.088)
    assert power.joules == pytest.approx(13652.762 * 3600), "its energy is in watt-hours"


def test_a_shelly_that_only_measures() -> None:
    power = reading_of("shelly", SHELLY_NEW, component="em1", channel=1).power
    assert power is not None
    assert (power.watts, power.volts, power.joules) == (501.8, 234.9, None)


def test_a_shelly_of_the_first_generation() -> None:
    power = reading_of("shelly", SHELLY_OLD).power
    assert power is not None
    assert power.watts == 85.05
    assert power.joules == 116 * 60, "its energy is in watt-minutes"
    assert power.volts is None


def test_a_shelly_says_what_it_is() -> None:
    with web_double(SHELLY_NEW) as device, opened_meter("shelly", url=device.url) as meter:
        meter.read()
        assert str(meter.identity) == f"Shelly S3PL-00112EU at {device.url}"
        assert not meter.capabilities.synthetic


def test_tasmota() -> None:
    power = reading_of("tasmota", {TASMOTA_PATH: TASMOTA}).power
    assert power is not None
    assert (power.watts, power.volts, power.amps) == (26, 239, 0.106)
    assert power.joules == pytest.approx(0.003 * 3.6e6), "its energy is in kilowatt-hours"


def test_tasmota_with_several_channels() -> None:
    figures = energy(Power=[3, 14.5], Voltage=230, Current=[0.01, 0.07], Total=[1.0, 2.0])
    power = reading_of("tasmota", figures, channel=1).power
    assert power is not None
    assert (power.watts, power.volts, power.amps, power.joules) == (14.5, 230, 0.07, 7.2e6)
    assert "no power meter on channel 2" in why("tasmota", figures, channel=2)


def test_an_old_tasmota() -> None:
    power = reading_of("tasmota", {TASMOTA_PATH: {"StatusPWR": {"Total": 0.5, "Power": 11, "Voltage": 230}}}).power
    assert power is not None
    assert power.watts == 11


def test_a_true_zero_is_a_reading() -> None:
    for driver, bodies in (("shelly", new(apower=0.0)), ("shelly", old(power=0)), ("tasmota", energy(Power=0))):
        power = reading_of(driver, bodies).power
        assert power is not None
        assert power.watts == 0.0


# --- passwords ----------------------------------------------------------------------------------------------------


def test_the_example_of_rfc_7616() -> None:
    """Section 3.9.1, which gives the response for SHA-256."""
    challenge = (
        'Digest realm="http-auth@example.org", qop="auth, auth-int", algorithm=SHA-256, '
        'nonce="7ypf/xlj9XXwfDPEoM4URrv/xwf94BcCAzFZH4GiTo0v", opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"'
    )
    cnonce = "f2/wE4q74E6zIJEtWaHKaf5wv/H5QzzpXusqGemxURZJ"
    header = authorization(challenge, "Mufasa", "Circle of Life", "/dir/index.html", cnonce)
    assert 'response="753927fa0e85d155564e2e272a28d1802ca10daf4496794697cf8db5856cb6c1"' in header
    assert 'opaque="FQhe/qaU925kfnzjCev0ciny7QMkPqMAFRtzCUYo5tdS"' in header
    assert "nc=00000001" in header


def test_digest_authentication() -> None:
    with (
        web_double(SHELLY_NEW, password=PASSWORD) as device,
        opened_meter("shelly", url=device.url, password=PASSWORD) as meter,
    ):
        readings = [meter.read(), meter.read()]
        assert [one.power.watts for one in readings if one.power is not None] == [8.6, 8.6]
        assert device.asked[0] == ("/shelly", ""), "what needs no password gets none"
        drawn = {header for path, header in device.asked if header}
        assert len(drawn) == 2, "each answer has a cnonce of its own"
        assert not [header for header in drawn if PASSWORD in header]


@pytest.mark.parametrize(
    ("options", "words"),
    [({}, "asks for a password: write password"), ({"password": "wrong"}, 'refuses the password of the user "admin"')],
)
def test_a_missing_or_wrong_password(options: dict[str, str], words: str) -> None:
    assert words in why("shelly", SHELLY_NEW, {"password": PASSWORD}, **options)


@pytest.mark.parametrize("scheme", ["basic", "MD5", "SHA-512-256"])
def test_the_password_is_not_sent_in_a_weaker_way(scheme: str) -> None:
    with (
        web_double(SHELLY_NEW, password=PASSWORD, scheme=scheme) as device,
        opened_meter("shelly", url=device.url, password=PASSWORD) as meter,
    ):
        reading = meter.read()
        assert reading.power is None
        assert "SHA-256 digest only" in reading.why
        assert not [header for _, header in device.asked if header]


def test_the_first_generation_has_nothing_better_than_basic() -> None:
    power = reading_of("shelly", SHELLY_OLD, {"password": PASSWORD, "scheme": "basic"}, password=PASSWORD).power
    assert power is not None
    assert power.watts == 85.05


@pytest.mark.parametrize(
    "challenge",
    [
        "Digest",
        "Digest realm",
        'Digest realm="a", nonce="b", algorithm=SHA-256',
        'Digest realm="a\\"b", nonce="b", qop="auth", algorithm=SHA-256',
        f'Digest realm="{"a" * 300}", nonce="b", qop="auth", algorithm=SHA-256',
        'Digest realm="ä", nonce="b", qop="auth", algorithm=SHA-256',
        "Negotiate",
        "",
    ],
)
def test_challenges_that_are_not_answered(challenge: str) -> None:
    with pytest.raises(NoReading):
        authorization(challenge, "admin", PASSWORD, "/x")


def test_tasmota_with_a_password() -> None:
    path = f"{TASMOTA_PATH}&user=admin&password=hunter%262"
    power = reading_of("tasmota", {path: TASMOTA}, password="hunter&2").power
    assert power is not None
    warning = {TASMOTA_PATH: {"WARNING": "Need user=<username>&password=<password>"}}
    assert "is the password right?" in why("tasmota", warning)


def test_no_password_is_in_a_reason() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{free.getsockname()[1]}"
    for driver in ("shelly", "tasmota"):
        with opened_meter(driver, url=url, password=PASSWORD) as meter:
            reading = meter.read()
            assert reading.power is None
            assert "cannot ask" in reading.why
            assert PASSWORD not in reading.why + repr(meter.identity)


def test_a_device_cannot_have_the_password_recorded() -> None:
    """It repeats what it was asked, in an error and in a warning."""
    path = f"{TASMOTA_PATH}&user=admin&password=hunter%262"
    for body, status in ((f"cannot do {path}, hunter&2", 500), ({"WARNING": f"{path} hunter&2"}, 200)):
        found = why("tasmota", {path: body}, {"status": status}, password="hunter&2")
        assert "cannot do" in found or "refuses" in found
        assert "hunter" not in found


# --- lies ---------------------------------------------------------------------------------------------------------

LIES: list[tuple[str, dict[str, Any], str]] = [
    ("shelly", new(apower=None), "no power meter on channel 0"),
    ("shelly", {**SHELLY_NEW, STATUS: {"id": 0, "output": True}}, "no power meter on channel 0"),
    ("shelly", new(apower="8.6"), "cannot be read"),
    ("shelly", new(apower=True), "cannot be read"),
    ("shelly", new(apower=-3.0), "connected the wrong way round"),
    ("shelly", new(apower=1e9), "more than the 4000 W"),
    ("shelly", new(id=1), "answers for channel 1, not 0"),
    ("shelly", new(errors=["power_meter_failure"]), 'reports an error: "power_meter_failure"'),
    ("shelly", new(aenergy={"total": -5.0}), "energy counter says -18000"),
    ("shelly", old(is_valid=False), "not valid"),
    ("shelly", {**SHELLY_OLD, "/meter/0": {"power": 3.0}}, "cannot be read"),
    ("shelly", {**SHELLY_NEW, STATUS: '{"id":0,"apower":NaN}'}, "cannot be read"),
    ("shelly", {**SHELLY_NEW, STATUS: '{"id":0,"apower":1e999}'}, ""),
    ("shelly", {**SHELLY_NEW, STATUS: '{"id":0,"apower":8.6'}, "cannot be read"),
    ("shelly", {**SHELLY_NEW, STATUS: b'{"id":0,"apower":8.6,"source":"\xff\xfe"}'}, ""),
    ("shelly", {**SHELLY_NEW, STATUS: ""}, "cannot be read"),
    ("shelly", {**SHELLY_NEW, STATUS: '{"id":0,"apower":8.6,"x":' + "[" * 20_000 + "]" * 20_000 + "}"}, ""),
    ("shelly", {"/shelly": {"gen": 2}}, "the status 404"),
    ("shelly", {}, "the status 404"),
    ("shelly", {"/shelly": "<html>a router</html>"}, "cannot be read"),
    ("tasmota", {TASMOTA_PATH: {"StatusSNS": {"Time": "2019-09-06T20:06:19"}}}, "no power meter"),
    ("tasmota", {TASMOTA_PATH: {"Command": "Unknown"}}, "no power meter"),
    ("tasmota", energy(Power=-1), "wrong way round"),
    ("tasmota", energy(Power="26"), "cannot be read"),
    ("tasmota", energy(Power=None), "no power meter"),
    ("tasmota", energy(Power=[]), "no power meter"),
    ("tasmota", {TASMOTA_PATH: '{"StatusSNS":{"ENERGY":{"Power":Infinity}}}'}, "cannot be read"),
]


@pytest.mark.parametrize(("driver", "bodies", "words"), LIES)
def test_a_lie_gives_no_reading(driver: str, bodies: dict[str, Any], words: str) -> None:
    found = why(driver, bodies)
    assert words in found
    assert found


def test_hostile_text_is_quoted_and_short() -> None:
    hostile = "\x1b[31m\u202e" + "a" * 5000
    found = why("shelly", new(errors=[hostile]))
    assert "\x1b" not in found
    assert len(found) <= 200
    found = why("shelly", {"/shelly": hostile}, {"status": 500})
    assert "\x1b" not in found


def test_a_redirect_is_not_followed() -> None:
    with web_double(SHELLY_OLD) as other, web_double(SHELLY_OLD, status=302, location=other.url) as device:
        with opened_meter("shelly", url=device.url, password=PASSWORD) as meter:
            assert "redirects to" in meter.read().why
        assert other.asked == []


def test_a_huge_answer_is_not_read() -> None:
    assert "more than 64 KiB" in why("shelly", {**SHELLY_NEW, STATUS: b" " * 200_000})


def test_half_an_answer() -> None:
    assert why("shelly", SHELLY_OLD, {"short": 5}), "fewer bytes than announced, even if they are valid by themselves"


def test_an_answer_byte_by_byte_ends_at_the_deadline() -> None:
    begun = time.monotonic()
    assert "did not answer in time" in why("shelly", SHELLY_OLD, {"pause": 0.3}, timeout=0.4)
    assert time.monotonic() - begun < PATIENCE, "the whole answer takes longer than that"


def test_a_device_that_accepts_and_says_nothing() -> None:
    with socket.create_server(("127.0.0.1", 0)) as deaf:
        url = f"http://127.0.0.1:{deaf.getsockname()[1]}"
        with opened_meter("tasmota", url=url, timeout=0.2) as meter:
            reading = meter.read()
            assert "did not answer in time" in reading.why
            assert reading.uncertainty >= 0.1


def test_a_device_that_sends_headers_for_ever() -> None:
    def babble(server: socket.socket, stop: threading.Event) -> None:
        connection, _ = server.accept()
        with connection:
            connection.sendall(b"HTTP/1.1 200 OK\r\n")
            try:
                while not stop.wait(0.02):
                    connection.sendall(b"X: y\r\n")
            except OSError:
                return

    stop = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=babble, args=(server, stop), daemon=True)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        with opened_meter("tasmota", url=url, timeout=0.3) as meter:
            assert meter.read().why
        stop.set()
        thread.join()


@pytest.mark.parametrize(
    ("driver", "module", "bodies", "what"),
    [
        ("shelly", shelly, SHELLY_NEW, "the time of its energy counter"),
        ("shelly", shelly, SHELLY_OLD, "its time"),
        ("tasmota", tasmota, {TASMOTA_PATH: TASMOTA}, "its time"),
    ],
)
def test_an_answer_that_is_repeated_for_too_long_is_stale(
    monkeypatch: pytest.MonkeyPatch, driver: str, module: Any, bodies: dict[str, Any], what: str
) -> None:
    monkeypatch.setattr(module, "CLOCK", 0.3)
    with web_double(bodies) as device, opened_meter(driver, url=device.url) as meter:
        assert meter.read().power is not None
        wait_until(time.monotonic() + 0.35)
        stale = meter.read()
        assert stale.power is None
        assert f"repeats an old answer: {what}" in stale.why
        device.bodies.update(new(aenergy={"total": 13652.9, "minute_ts": 1682952924}) if bodies is SHELLY_NEW else {})
        device.bodies.update(old(timestamp=1618501311) if bodies is SHELLY_OLD else {})
        if driver == "tasmota":
            device.bodies[TASMOTA_PATH] = {"StatusSNS": {**TASMOTA["StatusSNS"], "Time": "2019-09-06T20:06:49"}}
        assert meter.read().power is not None, "its clock goes on"


def test_a_clock_that_is_not_set_proves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shelly, "CLOCK", 0.05)
    for bodies in (old(timestamp=0), new(aenergy={"total": 1.0, "minute_ts": None})):
        with web_double(bodies) as device, opened_meter("shelly", url=device.url) as meter:
            assert meter.read().power is not None
            wait_until(time.monotonic() + 0.1)
            assert meter.read().power is not None


def test_a_meter_on_the_network_is_not_plugged_into_the_dut() -> None:
    class Dut(LocalHost):
        name = "the DUT"

    for driver in ("shelly", "tasmota"):
        with (
            pytest.raises(RigError, match="reached over the network from the controller"),
            opened_meter(driver, Dut(), url="http://127.0.0.1"),
        ):
            pass
