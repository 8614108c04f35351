"""DLP Design DLP-IOR4: four latching change-over relays (an FT232R, 0403:6001, product name "DLP-IOR4").

Protocol, 9600 8N1: ``1`` to ``4`` set a relay (its common is joined to A), ``Q W E R`` reset it (joined to B). Nothing
is answered. The relays stay as they are without power. ``wiring = "no"`` is a load on A, ``"nc"`` one on B. All modules
are sold with the serial number 12345678: name them by their place. Source: DLP Design's data sheet dlp-ior4-ds-v12.pdf,
and the kernel log of one in the documentation of the test framework pluma.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from plugpull.switches.base import Identity
from plugpull.switches.host import Host, SerialLine
from plugpull.switches.kinds import Found, Kind, Wiring
from plugpull.switches.serial_board import (
    MECHANISMS,
    BoardOptions,
    SerialBoard,
    found_boards,
    has_ports,
    identity_of,
    opened,
)

CHANNELS = 4
SET, RESET = b"1234", b"QWER"
_NOTE = "these modules all have the same serial number"


class Options(BoardOptions):
    pass


class DlpIor4(SerialBoard):
    def __init__(self, wiring: Wiring, options: Options, line: SerialLine, place: Identity) -> None:
        super().__init__(wiring, options, line, place)
        self.capabilities = replace(self.capabilities, latching=True)

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        for channel, energised in wanted.items():
            self._line.write((SET if energised else RESET)[channel : channel + 1])


def open_board(wiring: Wiring, options: Options) -> DlpIor4:
    has_ports(wiring, CHANNELS, "a DLP-IOR4")
    with opened(wiring.host, options) as (line, info):
        return DlpIor4(wiring, options, line, identity_of("dlp-ior4", info, "DLP-IOR4"))


def find(host: Host) -> Iterable[Found]:
    return found_boards(
        host,
        "dlp-ior4",
        lambda info: info.model.startswith("DLP-IOR4"),
        lambda info: CHANNELS,
        _NOTE,
        own_serial=False,
    )


KIND = Kind("dlp-ior4", "DLP Design DLP-IOR4 latching relays", Options, open_board, MECHANISMS, find=find)
