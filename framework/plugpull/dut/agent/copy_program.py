"""Copies one disk onto another, again and again until it is asked to end; then compares them.

A program of its own, run with descriptors of both disks: a process that hangs in the kernel must not take the agent
with it. It prints one line of JSON at its end, with the fields of ``result``.
"""

import errno
import json
import mmap
import os
import signal
import sys
import time
from typing import Any, Dict, List

ENDING: List[int] = []


def opened(fd: int, flags: int) -> int:
    """The same disk once more, without the page cache: what is counted must have reached it."""
    return os.open("/proc/self/fd/%d" % fd, flags | os.O_DIRECT)


def whole(count: int, wanted: int) -> None:
    """Raise OSError for a transfer that ended early: a disk that became shorter."""
    if count != wanted:
        raise OSError(errno.EIO, "short transfer")


def main(source_fd: int, target_fd: int, length: int, block: int) -> None:
    signal.signal(signal.SIGINT, lambda *_: ENDING.append(1))
    result: Dict[str, Any] = {"copied": 0, "passes": 0, "errno": 0, "side": "", "offset": 0, "longest": 0.0}
    result.update(checked=0, bad=[])
    buffer, other = mmap.mmap(-1, block), mmap.mmap(-1, block)
    side, offset = "source", 0
    try:
        source, target = opened(source_fd, os.O_RDONLY), opened(target_fd, os.O_RDWR)
        while not ENDING:
            for offset in range(0, length, block):
                begun = time.monotonic()
                side = "source"
                whole(os.preadv(source, [buffer], offset), block)
                side = "target"
                whole(os.pwritev(target, [buffer], offset), block)
                result["copied"] += block
                result["longest"] = max(result["longest"], time.monotonic() - begun)
                if ENDING:
                    break
            result["passes"] += 1
        for offset in range(0, min(length, result["copied"]), block):
            side = "source"
            whole(os.preadv(source, [buffer], offset), block)
            side = "target"
            whole(os.preadv(target, [other], offset), block)
            result["checked"] += block
            if buffer[:] != other[:] and len(result["bad"]) < 1000:
                result["bad"].append([offset, block])
    except OSError as error:
        result.update(errno=error.errno, side=side, offset=offset)
    print(json.dumps(result))


if __name__ == "__main__":
    main(*(int(word) for word in sys.argv[1:]))
