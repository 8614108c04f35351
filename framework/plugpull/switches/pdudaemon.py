"""Power strips behind a pdudaemon: ``GET /power/control/{on|off}?hostname=PDU&port=N`` (pdudaemon's README, "Usage").

It answers 200 when it has accepted the request, and the strip may obey later: by default it tries a strip that does not
answer 5 times, 5 s apart, so that "off" can happen 20 s late. It cannot be asked for a state, so cuts are verified by
their effect alone.
"""

from __future__ import annotations

import http.client
from typing import Annotated
from urllib.parse import urlencode, urlsplit

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Capabilities, DeviceSwitch, Identity, SwitchContext, seconds_left
from plugpull.switches.kinds import Kind

PORT = 16421


class PdudaemonOptions(Table):
    """Keys of a strip behind a pdudaemon."""

    pdu: Annotated[str, Field(min_length=1)]
    """The strip's name in pdudaemon's configuration."""
    server: str = f"http://localhost:{PORT}"


class Pdudaemon(DeviceSwitch):
    def __init__(self, context: SwitchContext, options: PdudaemonOptions) -> None:
        parts = urlsplit(options.server if "//" in options.server else f"//{options.server}")
        if parts.scheme not in ("", "http") or not parts.hostname:
            raise RigError(
                f"{options.server!r} is not the address of a pdudaemon", hint=f'write server = "http://HOST:{PORT}"'
            )
        self._address = (parts.hostname, parts.port or PORT)
        # Without the part before an @, which may be a password: the place is in every report.
        place = f"http://{self._address[0]}:{self._address[1]}"
        super().__init__(
            context,
            Identity("pdudaemon", model=options.pdu, place=place),
            Capabilities(context.mechanism, read_back=False, latching=True),
        )
        self._options = options

    def _command(self, port: str, on: bool) -> None:
        query = urlencode({"hostname": self._options.pdu, "port": port})
        path = f"/power/control/{'on' if on else 'off'}?{query}"
        with self._deadline() as deadline:
            status, said = self._get(path, seconds_left(deadline))
            if status != http.client.OK:
                raise RigError(
                    f"pdudaemon answered {status} to {path}: {said[:200].strip() or 'nothing'}",
                    hint=f"is {self._options.pdu} in its configuration, and does it have a port {port}? See its log",
                )

    def _get(self, path: str, timeout: float) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*self._address, timeout=timeout)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read(4096).decode("utf-8", "replace")
        except TimeoutError:
            raise RigError(
                f"pdudaemon did not answer within {self._context.timeout:g} s; the strip may still obey",
                hint="it tries for 20 s to reach a strip: write timeout = 30, or configure fewer retries",
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise RigError(
                f"cannot reach pdudaemon: {error}", hint="is it running there, and is `server` right?"
            ) from None
        finally:
            connection.close()


def open_strip(context: SwitchContext, options: PdudaemonOptions) -> Pdudaemon:
    """The strip. Raises RigError if it is not to be reached from the controller."""
    if context.host.name != "this machine":
        raise RigError(
            "pdudaemon is reached over the network from the controller",
            hint='leave out via = "dut" and give its address: server = "..."',
        )
    return Pdudaemon(context, options)


KIND = Kind(
    "pdudaemon", "power strips behind a pdudaemon", PdudaemonOptions, open_strip,
    frozenset({Mechanism.MAINS}), port_names="any", identity_keys=("server", "pdu"),
)  # fmt: skip
