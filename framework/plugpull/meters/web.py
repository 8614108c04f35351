"""Asking a meter over HTTP, without trusting what answers: bounded in time and size, and nothing is followed."""

from __future__ import annotations

import base64
import http.client
import socket
import time
from contextlib import closing
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar
from urllib.parse import quote_plus, urlsplit

import msgspec
from pydantic import AfterValidator, Field

from plugpull.errors import RigError
from plugpull.meters.base import MeterContext, NoReading, device_text
from plugpull.meters.digest import authorization
from plugpull.rig.model import Table

T = TypeVar("T")
LARGEST = 64 << 10
"""Bytes of an answer at most. Those of meters have less than 4 KiB."""


def _checked(url: str) -> str:
    try:
        parts = urlsplit(url)
        usable = parts.scheme == "http" and parts.hostname and not parts.query and not parts.fragment
        usable = usable and parts.path in ("", "/") and (parts.port is None or parts.port > 0)
    except ValueError:
        usable, parts = False, urlsplit("")
    if not usable:
        raise ValueError('write url = "http://HOST" or "http://HOST:PORT"')
    if parts.username is not None or parts.password is not None:
        raise ValueError("write the user and the password as keys of their own")
    return url


class WebOptions(Table):
    """Keys of every meter on the network."""

    url: Annotated[str, AfterValidator(_checked)]
    """Its address: "http://HOST", perhaps with a port."""
    user: Annotated[str, Field(pattern=r"^[!#-9;-\[\]-~]{1,60}$")] = "admin"
    password: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    """For devices that ask for one."""


@dataclass(frozen=True)
class WebAnswer:
    """The answer to one request. ``challenge`` is what it asks for in answer to 401."""

    status: int
    body: bytes
    challenge: str = ""
    location: str = ""


class WebDevice:
    """One device on the network. Each request has a connection of its own: such devices keep few of them open."""

    def __init__(self, options: WebOptions) -> None:
        parts = urlsplit(options.url)
        self._host, self._port = parts.hostname or "", parts.port or 80
        self._options = options
        self._secrets = _forms_of(options.password)
        self.place = f"http://{self._host}:{self._port}" if parts.port else f"http://{self._host}"

    def get(self, path: str, deadline: float, *, basic: bool = False) -> bytes:
        """The body of the answer to a GET. Raises ``NoReading``.

        With ``basic`` the password may be sent as it is, for devices that cannot do better.
        """
        answer = self._ask(path, deadline)
        if answer.status == http.client.UNAUTHORIZED:
            if self._options.password is None:
                raise NoReading("it asks for a password: write password = ... in its [[meter]] table")
            header = self._basic() if basic else authorization(answer.challenge, *self._credentials(), path)
            answer = self._ask(path, deadline, header)
            if answer.status == http.client.UNAUTHORIZED:
                raise NoReading(f"it refuses the password of the user {device_text(self._options.user)}")
        if 300 <= answer.status < 400:
            raise NoReading(f"it redirects to {self.text_of(answer.location)}, which is not followed")
        if answer.status != http.client.OK:
            raise NoReading(f"it answers with the status {answer.status}: {self.text_of(_text(answer.body))}")
        return answer.body

    def text_of(self, text: str) -> str:
        """Text from the device for a message, which is recorded: without the password, which a device can repeat."""
        for secret in self._secrets:
            text = text.replace(secret, "...")
        return device_text(text)

    def _credentials(self) -> tuple[str, str]:
        return self._options.user, self._options.password or ""

    def _basic(self) -> str:
        return "Basic " + base64.b64encode(":".join(self._credentials()).encode()).decode()

    def _ask(self, path: str, deadline: float, header: str = "") -> WebAnswer:
        connection = http.client.HTTPConnection(self._host, self._port)
        headers = {"Connection": "close", "Accept": "application/json"} | ({"Authorization": header} if header else {})
        try:
            with closing(connection):
                connection.sock = _connected(self._host, self._port, deadline)
                connection.request("GET", path, headers=headers)
                said = connection.getresponse()
                body = _body(said)
                challenge = next((each for each in said.headers.get_all("WWW-Authenticate", [])), "")
                return WebAnswer(said.status, body, challenge, said.headers.get("Location", ""))
        except TimeoutError:
            raise NoReading(f"{self.place} did not answer in time") from None
        except (OSError, http.client.HTTPException, ValueError) as error:
            raise NoReading(f"cannot ask {self.place}: {device_text(error)}") from None


class _Deadlined(socket.socket):
    """A socket on which all waiting ends at a deadline, however slowly the other end sends."""

    deadline = 0.0

    def _limit(self) -> None:
        left = self.deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError
        self.settimeout(left)

    def recv_into(self, *arguments: Any, **more: Any) -> int:
        self._limit()
        return super().recv_into(*arguments, **more)

    def sendall(self, *arguments: Any) -> None:
        self._limit()
        super().sendall(*arguments)


def _connected(host: str, port: int, deadline: float) -> _Deadlined:
    left = deadline - time.monotonic()
    if left <= 0:
        raise TimeoutError
    plain = socket.create_connection((host, port), left)
    found = _Deadlined(plain.family, plain.type, plain.proto, plain.detach())
    found.deadline = deadline
    return found


def _body(said: http.client.HTTPResponse) -> bytes:
    body = b""
    while piece := said.read(LARGEST + 1 - len(body)):
        body += piece
        if len(body) > LARGEST:
            raise NoReading(f"its answer has more than {LARGEST >> 10} KiB")
    if said.length:
        raise NoReading(f"its answer ends {said.length} bytes too early")
    return body


def _forms_of(password: str | None) -> tuple[str, ...]:
    """The forms in which a password is sent."""
    return () if password is None else tuple(dict.fromkeys((password, quote_plus(password))))


def _text(body: bytes) -> str:
    return body[:200].decode("utf-8", "replace")


def decoded(body: bytes, kind: type[T]) -> T:
    """A JSON answer as a struct. Raises ``NoReading``; NaN and infinities are not JSON."""
    try:
        # As text: msgspec does not look at the bytes of fields that are left out.
        return msgspec.json.decode(body.decode(), type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise NoReading(f"its answer cannot be read: {device_text(error)}") from None


def refuse_dut(context: MeterContext) -> None:
    """Raise RigError if the meter is declared as one that is plugged into the DUT."""
    if context.host.name != "this machine":
        raise RigError("it is reached over the network from the controller", hint='leave out via = "dut"')
