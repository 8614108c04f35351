"""Meters without hardware, for tests: a device on loopback that speaks recorded bodies, and a tree of hwmon chips."""

from __future__ import annotations

import hashlib
import json
import re
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from plugpull.meters.base import DiskActivity, Meter, MeterContext
from plugpull.meters.kinds import kind_named
from plugpull.rig.model import MeterSide
from plugpull.switches.host import Host
from plugpull.switches.host_local import LocalHost

PATIENCE = 20.0
"""Seconds a meter gets in tests in which it answers."""

# Recorded: the API documentation of the vendor, and what users of the devices published.
SHELLY_NEW: dict[str, Any] = {
    "/shelly": {"name": None, "id": "shellyplugsg3-8cbfea9", "model": "S3PL-00112EU", "gen": 3, "auth_en": True},
    "/rpc/Switch.GetStatus?id=0": {
        "id": 0,
        "source": "init",
        "output": True,
        "apower": 8.6,
        "voltage": 231.7,
        "current": 0.088,
        "freq": 50.0,
        "aenergy": {"total": 13652.762, "by_minute": [73.921, 71.2, 70.9], "minute_ts": 1682952864},
        "temperature": {"tC": 56.3, "tF": 133.4},
    },
    "/rpc/EM1.GetStatus?id=1": {
        "id": 1,
        "current": 2.598,
        "voltage": 234.9,
        "act_power": 501.8,
        "aprt_power": 612.4,
        "pf": 0.84,
        "freq": 50,
        "calibration": "factory",
    },
}
SHELLY_OLD: dict[str, Any] = {
    "/shelly": {"type": "SHPLG-S", "mac": "84CCA8AD0000", "auth": False, "fw": "20200827-070450/v1.8.3@4a8bc427"},
    "/meter/0": {
        "power": 85.05,
        "overpower": 0.00,
        "is_valid": True,
        "timestamp": 1618501251,
        "counters": [90.138, 26.141, 0.000],
        "total": 116,
    },
}
TASMOTA_PATH = "/cm?cmnd=Status%208"
TASMOTA: dict[str, Any] = {
    "StatusSNS": {
        "Time": "2019-09-06T20:06:19",
        "ENERGY": {
            "TotalStartTime": "2019-08-18T11:07:55",
            "Total": 0.003,
            "Yesterday": 0.000,
            "Today": 0.003,
            "Power": 26,
            "ApparentPower": 25,
            "ReactivePower": 25,
            "Factor": 0.06,
            "Voltage": 239,
            "Current": 0.106,
        },
    }
}


@dataclass
class WebDouble:
    """What a device answers. ``bodies`` are by path; text and bytes are sent as they are, everything else as JSON."""

    bodies: dict[str, Any] = field(default_factory=dict)
    user: str = "admin"
    password: str = ""
    """It asks for this password by ``scheme``, except for /shelly."""
    scheme: str = "digest"
    status: int = 200
    location: str = ""
    pause: float = 0.0
    """Seconds before each byte of a body."""
    short: int = 0
    """So many bytes of each body are announced and not sent."""
    asked: list[tuple[str, str]] = field(default_factory=list)
    """Paths, and the Authorization header that came with each."""
    url: str = ""
    stop: threading.Event = field(default_factory=threading.Event)

    def challenge(self) -> str:
        """As recorded from a Shelly Plus 1PM."""
        if self.scheme == "basic":
            return 'Basic realm="shelly"'
        return 'Digest qop="auth", realm="shellyplus1pm-44179394d4d4", nonce="603", algorithm=' + (
            "SHA-256" if self.scheme == "digest" else self.scheme
        )

    def lets_in(self, path: str, header: str) -> bool:
        """Whether the password of a request is right."""
        if not self.password or path == "/shelly":
            return True
        if self.scheme == "basic":
            return header == "Basic YWRtaW46aHVudGVyMg=="  # base64 of admin:hunter2
        return header.startswith("Digest ") and self._right(path, dict(re.findall(r'(\w+)="?([^",]*)"?', header)))

    def _right(self, path: str, said: Mapping[str, str]) -> bool:
        def digest(*parts: str) -> str:
            return hashlib.sha256(":".join(parts).encode()).hexdigest()

        mine = digest(self.user, "shellyplus1pm-44179394d4d4", self.password)
        wanted = digest(mine, "603", said.get("nc", ""), said.get("cnonce", ""), "auth", digest("GET", path))
        return said.get("response") == wanted and said.get("uri") == path and said.get("username") == self.user


def _handler(double: WebDouble) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            header = self.headers.get("Authorization", "")
            double.asked.append((self.path, header))
            if not double.lets_in(self.path, header):
                self._answer(401, b"", {"WWW-Authenticate": double.challenge()})
            elif self.path not in double.bodies:
                self._answer(404, json.dumps({"code": 404, "message": f"No handler for {self.path}"}).encode(), {})
            else:
                found = double.bodies[self.path]
                body = found if isinstance(found, bytes) else (found if isinstance(found, str) else json.dumps(found))
                headers = {"Location": double.location} if double.location else {}
                self._answer(double.status, body if isinstance(body, bytes) else body.encode(), headers)

        def _answer(self, status: int, body: bytes, headers: Mapping[str, str]) -> None:
            self.send_response(status)
            self.send_header("Content-Length", str(len(body) + double.short))
            for name, value in headers.items():
                self.send_header(name, value)
            self.end_headers()
            for piece in [body] if not double.pause else [body[place : place + 1] for place in range(len(body))]:
                if double.pause and double.stop.wait(double.pause):
                    return
                self.wfile.write(piece)

        def log_message(self, format: str, *arguments: Any) -> None:
            """Nothing: pytest shows what went wrong."""

        def handle(self) -> None:
            with suppress(OSError):  # the client has had enough
                super().handle()

    return Handler


@contextmanager
def web_double(bodies: Mapping[str, Any], **more: Any) -> Iterator[WebDouble]:
    """A device on loopback."""
    double = WebDouble(dict(bodies), **more)
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(double))
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    double.url = f"http://127.0.0.1:{server.server_port}"
    try:
        yield double
    finally:
        double.stop.set()
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def opened_meter(
    driver: str,
    host: Host | None = None,
    side: MeterSide | None = None,
    timeout: float = PATIENCE,
    activity: DiskActivity | None = None,
    disks: tuple[str, ...] = ("disk1",),
    **options: Any,
) -> Iterator[Meter]:
    """A meter of this kind, by default on the side that is usual for it."""
    kind = kind_named(driver)
    context = MeterContext("meter", side or kind.side, disks, host or LocalHost(), timeout, activity)
    meter = kind.open(context, kind.options.model_validate(options))
    try:
        yield meter
    finally:
        meter.close()
        meter.close()


def hwmon_tree(root: Path, number: int, name: str, device: str, **attributes: object) -> Path:
    """A chip as the kernel shows it: /sys/class/hwmon/hwmonN is a link into the device's directory."""
    real = root / "devices" / device / "hwmon" / f"hwmon{number}"
    real.mkdir(parents=True)
    (real / "device").symlink_to(root / "devices" / device)
    for attribute, value in {"name": name, **attributes}.items():
        (real / attribute).write_text(f"{value}\n")
    folder = root / "class/hwmon"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"hwmon{number}").symlink_to(real)
    return real


def wait_until(moment: float) -> None:
    """Let time pass: clocks stand still in these tests, which is no event."""
    time.sleep(max(0.0, moment - time.monotonic()))
