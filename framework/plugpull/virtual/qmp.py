"""QMP without asyncio at the call site: the client of qemu.qmp runs in its own thread."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from qemu.qmp import EventListener, QMPClient
from qemu.qmp.error import QMPError
from qemu.qmp.qmp_client import ExecuteError

from plugpull.errors import RigError


class Qmp:
    """A QMP connection over a connected socket. Every call has a deadline, and every failure is a RigError."""

    def __init__(self, connection: socket.socket, *, timeout: float = 30.0) -> None:
        self._timeout = timeout
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="qmp", daemon=True)
        self._thread.start()
        self._client = QMPClient("plugpull")
        # The guest is stopped on purpose at the end; the library would log that as an error.
        self._client.logger.disabled = True
        self._gone = threading.Condition()
        self._deleted: set[str] = set()
        self._listener = EventListener(("DEVICE_DELETED",))
        try:
            self._await(self._connect(connection))
        except BaseException:
            self._end_loop()
            raise

    async def _connect(self, connection: socket.socket) -> None:
        self._client.register_listener(self._listener)
        await self._client.connect(connection)
        self._listening = asyncio.ensure_future(self._listen())

    async def _listen(self) -> None:
        async for event in self._listener:
            data = event.get("data")
            device = data.get("device") if isinstance(data, dict) else None
            if device:
                with self._gone:
                    self._deleted.add(str(device))
                    self._gone.notify_all()

    def _await(self, coroutine: Any, timeout: float | None = None) -> Any:
        future = asyncio.run_coroutine_threadsafe(coroutine, self._loop)
        limit = timeout or self._timeout
        try:
            return future.result(limit)
        except TimeoutError:
            future.cancel()
            raise RigError(
                f"QEMU did not answer within {limit:g} s", hint="see console.log; the machine may be overloaded"
            ) from None
        except ExecuteError as error:
            raise RigError(f"QEMU refused the command: {error}") from None
        except (QMPError, OSError, EOFError) as error:
            raise RigError(f"the connection to QEMU broke: {error or type(error).__name__}") from None

    def run(
        self, command: str, timeout: float | None = None, exact: Mapping[str, Any] | None = None, /, **arguments: Any
    ) -> Any:
        """Execute one command. Underscores in argument names become hyphens, except in the names in ``exact``.

        Raises RigError.
        """
        sent = {key.replace("_", "-"): value for key, value in arguments.items()} | dict(exact or {})
        return self._await(self._client.execute(command, sent), timeout)

    def unplug(self, device: str, timeout: float = 10.0) -> None:
        """Send ``device_del`` and wait until the device is gone (DEVICE_DELETED)."""
        with self._gone:
            self._deleted.discard(device)
        self.run("device_del", id=device)
        with self._gone:
            if not self._gone.wait_for(lambda: device in self._deleted, timeout):
                raise RigError(f"QEMU did not delete device {device} within {timeout:g} s")

    def close(self) -> None:
        if self._loop.is_closed():
            return
        with suppress(RigError):  # the guest is being ended, so an error of its monitor does not matter
            self._await(self._finish(), 5)
        self._end_loop()

    async def _finish(self) -> None:
        self._listening.cancel()
        await self._client.disconnect()

    def _end_loop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        if not self._thread.is_alive():
            self._loop.close()
