"""Starts fio on what was proved to be a scratch disk, or on a file of a filesystem that the run made."""

from __future__ import annotations

import os
import shutil
from typing import Any, Dict, List

from .array_guard import open_target
from .disks import Refused
from .jobs import Jobs
from .streams import in_memory
from .volumes import Volumes
from .wire import now


def start_fio(jobs: Jobs, volumes: Volumes, job: str, each: List[Dict[str, Any]], log: str = "") -> Dict[str, Any]:
    """Start one process of fio with the arguments of ``each``, one after the other, and their disks pinned.

    ``disk`` is what the opened device must prove to be; with a ``directory``, a file in the filesystem that is mounted
    for it, which must have this ``uuid``. ``{file}`` in the ``argv`` becomes what fio may open: the disk's descriptor,
    or a file below a descriptor of the filesystem's root; never a name that can come to mean something else. ``log`` is
    the text of an iolog to replay on the first one, ``{log}`` in its arguments. Raises Refused.
    """
    fio = shutil.which("fio")
    if fio is None:
        raise Refused("fio is not installed on the DUT")
    fds: List[int] = []
    command = [fio]
    try:
        for one in each:
            directory = one.get("directory", "")
            fds.append(volumes.open(directory, one["uuid"]) if directory else open_target(one["disk"]))
            file = "/proc/self/fd/%d" % fds[-1] + ("/load" if directory else "")
            words = one["argv"]
            if log:
                fds.append(in_memory("plugpull-iolog", log.replace("{file}", file).encode()))
                words = [word.replace("{log}", "/proc/self/fd/%d" % fds[-1]) for word in words]
            command += [word.replace("{file}", file) for word in words]
    except BaseException:
        for fd in fds:
            os.close(fd)
        raise
    return {"pid": jobs.start(job, command, tuple(fds)), "at": now()}
