"""The kernel log, record by record, from /dev/kmsg (Documentation/ABI/testing/dev-kmsg)."""

from __future__ import annotations

import errno
import os
import re
import threading
import time
from typing import Any, Callable, Dict, List, Optional, Tuple

from .wire import now

Record = Tuple[int, int, float, str, int]
"""(level, sequence number, seconds on the log's clock, text, syslog facility: 0 is the kernel itself)"""

_MARK = "plugpull: clock mark"


def parse_record(data: bytes) -> Optional[Record]:
    """One read() of /dev/kmsg: ``6,339,5140900,-;text`` and continuation lines that start with a space."""
    prefix, separator, rest = data.partition(b";")
    fields = prefix.split(b",")
    if not separator or len(fields) < 3:
        return None
    try:
        priority, sequence, microseconds = int(fields[0]), int(fields[1]), int(fields[2])
    except ValueError:
        return None
    # The kernel escapes the backslash and every byte that is not printable ASCII as \xHH, those of UTF-8 one by one.
    line = re.sub(rb"\\x([0-9a-f]{2})", lambda m: bytes([int(m.group(1), 16)]), rest.split(b"\n", 1)[0])
    text = line.decode("utf-8", "replace")
    return priority & 7, sequence, microseconds / 1e6, text, priority >> 3


MARKS = 8
"""Marks written at most, each a few microseconds of work unless the agent is held up."""
GOOD_ENOUGH = 0.002
"""Seconds of bracket below which no further mark is written."""


def clock_offset(path: str = "/dev/kmsg") -> Tuple[float, float]:
    """Seconds to add to a log stamp to get CLOCK_MONOTONIC, and the bound on their error.

    The log is stamped with sched_clock, which NTP does not steer and which need not start at the same instant, so the
    difference is measured: a mark is written into the log and its stamp read back. The stamp lies between the moments
    before and after the write; an agent that was held up in between (0.14 s were seen on a busy emulated DUT) writes
    another mark, and the tightest bracket counts. Without any mark the answer is 0, give or take a second.
    """
    fd = os.open(path, os.O_RDWR | os.O_NONBLOCK)
    best = (0.0, 1.0)
    try:
        for _ in range(MARKS):
            os.lseek(fd, 0, os.SEEK_END)
            before = now()
            # Without the newline the record stays open for continuation and cannot be read yet.
            os.write(fd, ("<7>%s %.6f\n" % (_MARK, before)).encode())
            after = now()
            stamp = _stamp_of_mark(fd, after + 1)
            if stamp is not None and (after - before) / 2 < best[1]:
                best = ((before + after) / 2 - stamp, (after - before) / 2)
            if best[1] * 2 <= GOOD_ENOUGH:
                break
    finally:
        os.close(fd)
    return best


def _stamp_of_mark(fd: int, deadline: float) -> Optional[float]:
    while now() < deadline:
        try:
            record = parse_record(os.read(fd, 8192))
        except BlockingIOError:
            time.sleep(0.001)  # the mark is on its way through the ring buffer; poll() would not return sooner
            continue
        except OSError as error:
            if error.errno == errno.EPIPE:
                continue
            raise
        if record is not None and _MARK in record[3]:
            return record[2]
    return None


class KernelLog:
    """Follows the log from now on, sends each record, and reports how many were overwritten before it could."""

    def __init__(self, send: Callable[[Dict[str, Any]], None], path: str = "/dev/kmsg") -> None:
        self._send = send
        self._fd = os.open(path, os.O_RDONLY)
        os.lseek(self._fd, 0, os.SEEK_END)
        self.offset = 0.0
        self._last = -1
        self._first = -1
        self._path = path
        threading.Thread(target=self._run, name="kmsg", daemon=True).start()

    def _run(self) -> None:
        while True:
            try:
                data = os.read(self._fd, 16384)
            except OSError as error:
                if error.errno == errno.EPIPE:
                    # Overwritten while we slept; the next read continues at the oldest record, and the gap in the
                    # sequence numbers says how many are gone.
                    continue
                if error.errno == errno.EINVAL:
                    continue
                self._send({"ev": "watcher.broken", "at": now(), "what": "the kernel log", "why": str(error)})
                return
            record = parse_record(data)
            if record is None:
                continue
            sequence, text = record[1], record[3]
            if self._first < 0:
                self._first = sequence
            if self._last >= 0 and sequence > self._last + 1:
                self._send({"ev": "kmsg.lost", "at": now(), "count": sequence - self._last - 1})
            self._last = sequence
            if _MARK in text:
                continue
            self._send({"ev": "kmsg", **self._described(record)})

    def _described(self, record: Record) -> Dict[str, Any]:
        level, sequence, stamp, text, facility = record
        return {"at": stamp + self.offset, "level": level, "seq": sequence, "text": text, "facility": facility}

    def since(self, last: int) -> Dict[str, Any]:
        """The records after number ``last`` that were written before this log was followed, and how many of them were
        overwritten."""
        fd = os.open(self._path, os.O_RDONLY | os.O_NONBLOCK)
        found: List[Dict[str, Any]] = []
        lost = 0
        try:
            while True:
                try:
                    record = parse_record(os.read(fd, 16384))
                except BlockingIOError:
                    break
                except OSError as error:
                    if error.errno in (errno.EPIPE, errno.EINVAL):
                        continue
                    raise
                if record is None or record[1] <= last:
                    continue
                if 0 <= self._first <= record[1]:
                    break
                if not found and not lost:
                    lost = record[1] - last - 1
                if _MARK not in record[3]:
                    found.append(self._described(record))
        finally:
            os.close(fd)
        return {"records": found, "lost": lost}
