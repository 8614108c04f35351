"""What a driver says whose records of its rings do not agree with its controller."""

from __future__ import annotations

import pytest
from stories import BACK, CUT
from test_kernel_confession import on_metal, outcome, said

RINGS = [
    "xhci_hcd 0000:00:05.0: WARN Event TRB for slot 3 ep 2 with no TDs queued?",
    "xhci_hcd 0000:00:05.0: ERROR Transfer event TRB DMA ptr not part of current TD ep_index 2 comp_code 13",
    "xhci_hcd 0000:00:05.0: Mismatch between completed Set TR Deq Ptr command & xHCI internal state.",
    "xhci_hcd 0000:00:05.0: ERROR Transfer event for unknown stream ring slot 2 ep 4",
    "xhci_hcd 0000:00:05.0: Command completion event does not match command",
]
"""What xhci says when its records of a ring do not agree with its controller."""


@pytest.mark.parametrize("text", RINGS)
@pytest.mark.parametrize("at", [13.5, CUT + 0.2, BACK + 2])
def test_a_driver_that_loses_count_of_an_emulated_controller_is_named(text: str, at: float) -> None:
    assert outcome(said(text, at)) == ([text], [])
    assert outcome(on_metal(text, at)) == ([], [])


def test_another_error_of_an_emulated_controller_is_a_doubt() -> None:
    found, doubts = outcome(said("xhci_hcd 0000:00:05.0: WARN: buffer overrun event on endpoint"))
    assert (found, len(doubts)) == ([], 1)
