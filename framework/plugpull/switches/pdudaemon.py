"""Power strips behind a pdudaemon: ``GET /power/control/{on|off}?hostname=PDU&port=N`` (pdudaemon's README, "Usage").

It answers 200 when it has taken the order, and the strip may obey later: by its default settings it tries a strip that
does not answer 5 times, 5 s apart, so that "off" can land 20 s late. There is no way to ask for a state, so cuts are
verified by their effect alone.
"""

from __future__ import annotations

import http.client
from typing import Annotated
from urllib.parse import urlencode, urlsplit

from pydantic import Field

from plugpull.errors import RigError
from plugpull.rig.model import Mechanism, Table
from plugpull.switches.base import Capabilities, Identity
from plugpull.switches.kinds import Kind, Wiring
from plugpull.switches.program_switch import ProgramSwitch, left

PORT = 16421


class PdudaemonOptions(Table):
    """Keys of a strip behind a pdudaemon."""

    pdu: Annotated[str, Field(min_length=1)]
    """The strip's name in pdudaemon's configuration."""
    server: str = f"http://localhost:{PORT}"


class Pdudaemon(ProgramSwitch):
    def __init__(self, wiring: Wiring, options: PdudaemonOptions) -> None:
        parts = urlsplit(options.server if "//" in options.server else f"//{options.server}")
        if parts.scheme not in ("", "http") or not parts.hostname:
            raise RigError(
                f"{options.server!r} is no address of a pdudaemon", mend=f'write server = "http://HOST:{PORT}"'
            )
        self._address = (parts.hostname, parts.port or PORT)
        # Without what a person may have put before an @: it would be in every report.
        place = f"http://{self._address[0]}:{self._address[1]}"
        super().__init__(
            wiring,
            Identity("pdudaemon", model=options.pdu, place=place),
            Capabilities(wiring.mechanism, read_back=False, latching=True),
        )
        self._options = options

    def _command(self, port: str, on: bool) -> None:
        query = urlencode({"hostname": self._options.pdu, "port": port})
        path = f"/power/control/{'on' if on else 'off'}?{query}"
        with self._told() as deadline:
            status, said = self._get(path, left(deadline))
            if status != http.client.OK:
                raise RigError(
                    f"pdudaemon answered {status} to {path}: {said[:200].strip() or 'nothing'}",
                    mend=f"is {self._options.pdu} in its configuration, and does it have a port {port}? See its log",
                )

    def _get(self, path: str, timeout: float) -> tuple[int, str]:
        connection = http.client.HTTPConnection(*self._address, timeout=timeout)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            return answer.status, answer.read(4096).decode("utf-8", "replace")
        except TimeoutError:
            raise RigError(
                f"pdudaemon did not answer within {self._wiring.timeout:g} s; the strip may obey yet",
                mend="it tries a strip that does not answer again for 20 s: write timeout = 30, or fewer retries there",
            ) from None
        except (OSError, http.client.HTTPException) as error:
            raise RigError(
                f"cannot speak with pdudaemon: {error}", mend="is it running there, and is `server` right?"
            ) from None
        finally:
            connection.close()


def _open(wiring: Wiring, options: PdudaemonOptions) -> Pdudaemon:
    if wiring.host.name != "this machine":
        raise RigError(
            "a pdudaemon is asked over the network from here",
            mend='leave out via = "dut" and say where: server = "..."',
        )
    return Pdudaemon(wiring, options)


KIND = Kind(
    "pdudaemon", "power strips behind a pdudaemon", PdudaemonOptions, _open, frozenset({Mechanism.MAINS}),
    port_names="any",
)  # fmt: skip
