"""``python3 agent.zip [--port NAME]``: serve a virtio-serial port, or standard input and output."""

from __future__ import annotations

import glob
import os
import select
import signal
import sys
import threading
import time
from typing import Any

from .service import Service
from .wire import messages, write_all


def find_port(name: str) -> str:
    """The character device of a virtio-serial port, by its name (there may be no udev to make links)."""
    for path in glob.glob("/sys/class/virtio-ports/*/name"):
        with open(path) as file:
            if file.read().strip() == name:
                return "/dev/" + os.path.basename(os.path.dirname(path))
    raise SystemExit("no virtio-serial port is named %r" % name)


def wait_for_host(fd: int) -> None:
    """Wait until the other end is open. While it is closed, poll() returns at once with POLLHUP, so there is no event
    to wait for."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    while any(event & select.POLLHUP for _, event in poller.poll(1000)):
        time.sleep(0.05)


def serve_port(name: str) -> None:
    fd = os.open(find_port(name), os.O_RDWR)
    service = Service(lambda data: write_all(fd, data))
    service.watch()
    while True:
        wait_for_host(fd)
        for message in messages(fd):
            if message is not None:
                service.handle(message)
        service.controller_gone()


def serve_pipe() -> None:
    # Nothing else may write into the protocol: whatever prints goes to standard error.
    out = os.dup(1)
    os.dup2(2, 1)
    service = Service(lambda data: write_all(out, data))
    service.watch()
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, _leave)
    threading.Thread(target=_end_when_forgotten, args=(service,), name="patience", daemon=True).start()
    try:
        for message in messages(0):
            if message is not None:
                service.handle(message)
    finally:
        service.controller_gone()


def _leave(number: int, frame: Any) -> None:
    # Once: what is tidied up on the way out must not be cut short by a second one.
    for other in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(other, signal.SIG_IGN)
    raise SystemExit(0)


def _end_when_forgotten(service: Service) -> None:
    while not service.forgotten():
        time.sleep(0.5)  # silence is not an event that could be waited for
    os.kill(os.getpid(), signal.SIGTERM)


def main() -> None:
    if sys.argv[1:2] == ["--port"]:
        serve_port(sys.argv[2])
    else:
        serve_pipe()


if __name__ == "__main__":
    main()
