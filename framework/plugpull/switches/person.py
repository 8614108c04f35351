"""The person at the bench, asked on the terminal."""

from __future__ import annotations

import os
import select
import time
from collections.abc import Sequence

from plugpull.errors import RigError

LONGEST = 200
"""Bytes of an answer that are read."""


class TerminalPerson:
    """Asks on the controlling terminal of this process, wherever its standard streams lead."""

    def do(self, request: str, timeout: float) -> float:
        begun = time.monotonic()
        self._ask(f"{request}, then press Enter: ", timeout)
        return time.monotonic() - begun

    def ask(self, question: str, answers: Sequence[str], timeout: float) -> str:
        deadline = time.monotonic() + timeout
        while True:
            said = self._ask(f"{question} [{'/'.join(answers)}] ", max(0.0, deadline - time.monotonic())).lower()
            fitting = [answer for answer in answers if said and answer.lower().startswith(said)]
            if len(fitting) == 1:
                return fitting[0]

    def _ask(self, text: str, timeout: float) -> str:
        try:
            terminal = os.open("/dev/tty", os.O_RDWR | os.O_NOCTTY)
        except OSError:
            raise RigError(
                f"there is nobody to ask: {text.strip()}", hint="run this on a terminal, or use another kind of switch"
            ) from None
        try:
            os.write(terminal, f"\n{text}".encode())
            if not select.select([terminal], [], [], timeout)[0]:
                raise RigError(f"nobody answered within {timeout:g} s: {text.strip()}")
            return os.read(terminal, LONGEST).decode("utf-8", "replace").strip()
        except OSError as error:  # the terminal was closed, or this process is in the background
            raise RigError(f"the terminal cannot be used ({error.strerror}): {text.strip()}") from None
        finally:
            os.close(terminal)
