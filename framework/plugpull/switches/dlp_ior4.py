"""DLP Design DLP-IOR4: four latching change-over relays (an FT232R, 0403:6001, product name "DLP-IOR4").

Protocol, 9600 8N1: ``1`` to ``4`` set a relay (which connects its common contact to A), ``Q W E R`` reset it (to B).
There are no answers. The relays keep their state without power. ``wiring = "no"`` is a load on A, ``"nc"`` one on B.
All modules are sold with the serial number 12345678, so name them by their place. Sources: DLP Design's data sheet
dlp-ior4-ds-v12.pdf, and the kernel log of a module in the documentation of the test framework pluma.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from plugpull.switches.base import SwitchContext
from plugpull.switches.host import SerialInfo, SerialLine
from plugpull.switches.serial_board import BoardOptions, SerialBoard, board_kind

SET, RESET = b"1234", b"QWER"


class DlpIor4(SerialBoard):
    driver = "dlp-ior4"
    model = "DLP-IOR4"
    relays = 4

    def __init__(self, context: SwitchContext, options: BoardOptions, line: SerialLine, info: SerialInfo) -> None:
        super().__init__(context, options, line, info)
        self.capabilities = replace(self.capabilities, latching=True)

    def _switch(self, wanted: Mapping[int, bool], deadline: float) -> None:
        for channel, energised in wanted.items():
            self._line.write((SET if energised else RESET)[channel : channel + 1])


KIND = board_kind(
    DlpIor4,
    "DLP Design DLP-IOR4 latching relays",
    lambda info: info.model.startswith("DLP-IOR4"),
    note="these modules all have the same serial number",
    unique_serials=False,
)
