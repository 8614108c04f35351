"""Makes, changes and stops arrays for a scenario with mdadm, always on disks that were proved to be scratch.

mdadm gets descriptors instead of names: the one of a member was proved by ``open_scratch``, and as long as it is open
the kernel gives its name to no other disk. An array is recognised by the UUID that the run drew for it.
"""

from __future__ import annotations

import fcntl
import os
import re
import shutil
import subprocess
import threading
import time
from contextlib import suppress
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Sequence, Tuple

from .array_guard import members_of, open_array
from .array_watch import ArrayWatch
from .attributes import SYS, read_attribute
from .disks import Disk, Refused, all_disks, open_scratch
from .jobs import process_state
from .signatures import plain_uuid
from .wire import now

STOP_ARRAY = 0x932
"""include/uapi/linux/raid/md_u.h: _IO(MD_MAJOR, 0x32)."""
HIGHEST = 127
"""Numbers of arrays are tried downwards from here, as mdadm does for arrays without a name."""
LEAVING = 10.0
"""Seconds for each step on the way out."""
DONE_WITHIN = 1.0
"""Seconds for the last requests of an array that nobody has open any more."""
LOOKS_EVERY = 0.02
_BITMAP = re.compile(r"Bitmap : (\d+) bits \(chunks\), (\d+) dirty")
"""What ``mdadm --examine-bitmap`` prints (bitmap.c, ExamineBitmap)."""
ACTIONS = ("check", "repair", "idle", "frozen")

Answer = Dict[str, Any]


class Known(NamedTuple):
    """An array of this agent, the disks that it was made of, and what follows its state."""

    kname: str
    uuid: str
    disks: List[Disk]
    watch: ArrayWatch


class Arrays:
    """The arrays that this agent has made, by the name that the scenario gave them."""

    def __init__(self, send: Callable[[Dict[str, Any]], None], sample: Callable[[str], None]) -> None:
        self._send = send
        self._sample = sample
        self._known: Dict[str, Known] = {}

    @staticmethod
    def tools() -> str:
        """The path of mdadm on this DUT; empty if it is not installed."""
        return shutil.which("mdadm", path=os.environ.get("PATH", "") + ":/usr/sbin:/sbin") or ""

    def make(
        self,
        name: str,
        disks: List[Disk],
        uuid: str,
        level: str,
        options: List[str],
        timeout: float,
        write_mostly: int = 0,
    ) -> Answer:
        """Make an array with this UUID from these disks, in this order. The last ``write_mostly`` of them are read only
        if there is nothing else to read."""
        kname = _free_name()
        opened = [plain(open_scratch(disk)) for disk in disks]
        try:
            words = ["--create", "/dev/" + kname, "--run", "--metadata=1.2", "--homehost=any", "--name=plugpull"]
            words += ["--uuid=" + _mdadm_uuid(uuid), "--level=" + level, "--raid-devices=%d" % len(disks), *options]
            paths = [path_of(fd) for fd in opened]
            if write_mostly:
                paths.insert(len(paths) - write_mostly, "--write-mostly")  # it is about those after it
            answer = _mdadm([*words, *paths], opened, timeout)
        finally:
            for fd in opened:
                os.close(fd)
        return self._follow(name, kname, uuid, disks, answer)

    def assemble(self, name: str, disks: List[Disk], uuid: str, force: bool, timeout: float) -> Answer:
        """Assemble the array with this UUID from these disks, also if members are missing. ``force``: also from members
        that the array had lost."""
        kname = _free_name()
        opened = [plain(open_scratch(disk)) for disk in disks]
        try:
            words = [
                "--assemble",
                "/dev/" + kname,
                "--run",
                "--uuid=" + _mdadm_uuid(uuid),
                *(["--force"] if force else []),
            ]
            answer = _mdadm([*words, *map(path_of, opened)], opened, timeout)
        finally:
            for fd in opened:
                os.close(fd)
        followed = self._follow(name, kname, uuid, disks, answer)
        if not followed["ok"]:
            _undo(kname, uuid)
        return followed

    def _follow(self, name: str, kname: str, uuid: str, disks: List[Disk], answer: Answer) -> Answer:
        node = os.path.join(SYS, "block", kname)
        state = read_attribute(node, "md", "array_state")
        if state in ("", "clear", "inactive"):
            return {**answer, "ok": False, "kname": kname, "size": 0, "values": {"array_state": state}}
        self._forget(name)
        self._known[name] = Known(kname, uuid, disks, ArrayWatch(name, kname, self._send))
        self._sample(kname)
        return {**answer, "kname": kname, "size": int(read_attribute(node, "size") or 0) * 512, **self.read(name)}

    def read(self, name: str) -> Answer:
        """The array's attributes, and of each member by kernel name its place in the array."""
        node = os.path.join(SYS, "block", self._of(name).kname)
        asked = ("level", "raid_disks", "chunk_size", "layout", "component_size", "consistency_policy", "mismatch_cnt")
        values = {one: read_attribute(node, "md", one) for one in (*asked, "array_state", "degraded", "sync_action")}
        values["bitmap"] = read_attribute(node, "md", "bitmap", "location")
        members = {
            kname: {one: read_attribute(path, one) for one in ("slot", "state", "offset", "size", "errors")}
            for kname, path in members_of(node).items()
        }
        # In bytes (Documentation/admin-guide/md.rst, bitmap/chunksize).
        chunk = read_attribute(node, "md", "bitmap", "chunksize") if values["bitmap"] not in ("", "none") else ""
        return {"at": now(), "values": values, "members": members, "bitmap_chunk": int(chunk or 0)}

    def remove_gone(self, name: str, array: Disk, timeout: float) -> Answer:
        """Remove the members whose disks are gone."""
        return self._manage(array, ["--fail", "detached", "--remove", "detached"], timeout)

    def udev_remove(self, name: str, array: Disk, kname: str, timeout: float) -> Answer:
        """Do what the distribution's rule for udev does when the disk ``kname`` is gone."""
        fd = open_array(array, exclusive=False)
        try:
            return _mdadm(["--incremental", "--fail", kname], (), timeout)
        finally:
            os.close(fd)

    def fail(self, name: str, array: Disk, disk: Disk, timeout: float) -> Answer:
        """Mark a member as faulty and remove it."""
        node = "/dev/" + str(disk["kname"])
        return self._manage(array, ["--fail", node, "--remove", node], timeout)

    def add(self, name: str, array: Disk, disk: Disk, again: bool, timeout: float) -> Answer:
        """Add a disk. ``again``: as the member that it was, so that only what has changed is copied."""
        member = plain(open_scratch(disk))
        try:
            answer = self._manage(array, ["--re-add" if again else "--add", path_of(member)], timeout, (member,))
            if again and not answer["ok"]:
                answer["detail"] += "; " + events_of(path_of(member), disk, array, (member,))
            return answer
        finally:
            os.close(member)

    @staticmethod
    def _manage(array: Disk, words: Sequence[str], timeout: float, fds: Tuple[int, ...] = ()) -> Answer:
        """Run mdadm on the array. While its descriptor is open, no other array can get its name."""
        fd = open_array(array, exclusive=False)
        try:
            return _mdadm(["--manage", "/dev/" + str(array["kname"]), *words], fds, timeout)
        finally:
            os.close(fd)

    def act(self, name: str, array: Disk, action: str) -> Answer:
        """Write to ``sync_action``: "check" reads everything and counts what does not match."""
        if action not in ACTIONS:
            raise Refused("%r is not one of %s" % (action, ", ".join(ACTIONS)))
        fd = open_array(array, exclusive=False)
        begun = now()
        try:
            with open(os.path.join(SYS, "block", str(array["kname"]), "md", "sync_action"), "w") as file:
                file.write(action)
        except OSError as error:
            return {"ok": False, "seconds": now() - begun, "detail": "%s: %s" % (action, error.strerror)}
        finally:
            os.close(fd)
        return {"ok": True, "seconds": now() - begun, "detail": ""}

    @staticmethod
    def marked(name: str, array: Disk, timeout: float) -> Answer:
        """The bytes of the array that its write-intent bitmap marks, as it is stored on a member that is attached."""
        fd = open_array(array, exclusive=False)
        try:
            answer = _mdadm(["--examine-bitmap", "/dev/" + str(array["members"][-1]["kname"])], (), timeout)
            chunk = int(read_attribute(SYS, "block", str(array["kname"]), "md", "bitmap", "chunksize") or 0)
        finally:
            os.close(fd)
        said = _BITMAP.search(answer["detail"])
        if said is None or not answer["ok"]:
            return {**answer, "ok": False, "marked": 0}
        detail = "%s of %s chunks of %d bytes are marked" % (said.group(2), said.group(1), chunk)
        return {**answer, "detail": detail, "marked": int(said.group(2)) * chunk}

    def stop(self, name: str, array: Disk, timeout: float) -> Answer:
        """Stop the array. It is asked by the proved descriptor itself, because another one would keep it in use. Before
        that, its requests that the kernel counts as under way are read: nobody else has it open."""
        fd = open_array(array)
        left = in_flight(str(array["kname"]))
        begun = now()
        done: List[str] = []
        thread = threading.Thread(target=_stop, args=(fd, done), name="array-stop", daemon=True)
        thread.start()
        thread.join(timeout)
        said = done[0] if done else "it was not stopped after %g s" % timeout
        if not said:
            self._forget(name)
        return {"ok": not said, "seconds": now() - begun, "detail": said, "in_flight": left}

    @staticmethod
    def erase(disks: List[Disk], timeout: float) -> Answer:
        """Erase the superblocks of disks that are members of an array of this run (``made`` in their identity)."""
        opened: List[int] = []
        try:
            for disk in disks:
                opened.append(plain(open_scratch(disk)))
            return _mdadm(["--zero-superblock", "--force", *map(path_of, opened)], opened, timeout)
        finally:
            for fd in opened:
                os.close(fd)

    def _of(self, name: str) -> Known:
        if name not in self._known:
            raise Refused("%s is not an array of this run, or not any more" % name)
        return self._known[name]

    def _forget(self, name: str) -> None:
        known = self._known.pop(name, None)
        if known is not None:
            known.watch.stop()

    def stop_all(self) -> None:
        """Stop what is left and erase its superblocks, on the way out: the next run would refuse the disks."""
        for name, known in list(self._known.items()):
            uuid = read_attribute(SYS, "block", known.kname, "md", "uuid")
            if plain_uuid(uuid) == plain_uuid(known.uuid):
                with suppress(OSError):
                    fd = os.open("/dev/" + known.kname, os.O_RDWR | os.O_CLOEXEC | os.O_EXCL)
                    thread = threading.Thread(target=_stop, args=(fd, []), daemon=True)
                    thread.start()
                    thread.join(LEAVING)
            self._forget(name)
            for disk in present(known.disks):
                with suppress(OSError, Refused):  # one that cannot be erased must not keep the others from it
                    self.erase([disk], LEAVING)


def events_of(path: str, disk: Disk, array: Disk, fds: Tuple[int, ...]) -> str:
    """The numbers by which md decides whether a member may come back without a full copy: the event of its superblock
    must not be older than the one at which bits of the bitmap were cleared last (drivers/md/md.c, super_1_validate)."""
    own = _value(_mdadm(["--examine", path], fds, LEAVING)["detail"], "Events")
    others = [str(one["kname"]) for one in array["members"] if one["kname"] != disk["kname"]]
    bitmap = _mdadm(["--examine-bitmap", "/dev/" + others[0]], (), LEAVING)["detail"] if others else ""
    return "its superblock is of event %s, bits of the bitmap were cleared at event %s" % (
        own or "?",
        _value(bitmap, "Events Cleared") or "?",
    )


def _value(text: str, name: str) -> str:
    """What mdadm prints behind a name and a colon; empty if it does not."""
    found = [line.partition(":")[2].strip() for line in text.splitlines() if line.partition(":")[0].strip() == name]
    return found[0] if found else ""


def present(wanted: List[Disk]) -> List[Disk]:
    """The identities of those disks that are attached now, by the kernel name that they have now."""
    now_there = {(disk["serial"], disk["size"]): disk for disk in all_disks()}
    found = []
    for disk in wanted:
        here = now_there.get((disk["serial"], disk["size"]))
        if here is not None:
            found.append({**disk, "kname": here["kname"], "diskseq": here["diskseq"]})
    return found


def plain(exclusive: int) -> int:
    """A descriptor of the same device that does not claim it: mdadm opens members exclusively itself."""
    fd = os.open("/proc/self/fd/%d" % exclusive, os.O_RDWR)
    os.close(exclusive)
    return fd


def path_of(fd: int) -> str:
    return "/proc/self/fd/%d" % fd


def in_flight(kname: str, within: float = DONE_WITHIN, root: str = SYS) -> Optional[int]:
    """Requests of the array that are under way, by the kernel's count, if they do not end ``within`` seconds; None if
    the kernel does not say."""
    deadline = time.monotonic() + within
    while True:
        counts = read_attribute(root, "block", kname, "inflight").split()
        if len(counts) != 2:
            return None
        if not any(map(int, counts)) or time.monotonic() > deadline:
            return sum(map(int, counts))
        time.sleep(LOOKS_EVERY)  # sysfs has no event for a counter


def _stop(fd: int, done: List[str]) -> None:
    try:
        fcntl.ioctl(fd, STOP_ARRAY)
        done.append("")
    except OSError as error:
        done.append(error.strerror or "error %s" % error.errno)
    finally:
        os.close(fd)


def _undo(kname: str, uuid: str) -> None:
    """Stop what is left of an array that did not start: it keeps its members in use."""
    if plain_uuid(read_attribute(SYS, "block", kname, "md", "uuid")) == plain_uuid(uuid):
        with suppress(OSError):
            _stop(os.open("/dev/" + kname, os.O_RDWR | os.O_CLOEXEC | os.O_EXCL), [])


def _free_name() -> str:
    for number in range(HIGHEST, 0, -1):
        if not os.path.exists(os.path.join(SYS, "block", "md%d" % number)):
            return "md%d" % number
    raise Refused("all numbers of arrays up to %d are in use" % HIGHEST)


def _mdadm_uuid(uuid: str) -> str:
    """A UUID as mdadm writes it: four groups of eight digits."""
    digits = uuid.replace("-", "")
    return ":".join(digits[at : at + 8] for at in range(0, 32, 8))


def _mdadm(words: Sequence[str], fds: Sequence[int], timeout: float) -> Answer:
    """Run mdadm, and wait at most ``timeout`` seconds: it can hang in the kernel with the array."""
    program = Arrays.tools()
    if not program:
        raise Refused("mdadm is not installed on the DUT", hint="install the package mdadm on the DUT")
    # Without udev mdadm would wait for it to make device nodes.
    without = {} if os.path.exists("/run/udev/control") else {"MDADM_NO_UDEV": "1"}
    begun = now()
    process = subprocess.Popen(
        [program, *words],
        pass_fds=tuple(fds),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, **without},
    )
    try:
        output = process.communicate(timeout=timeout)[0].decode("utf-8", "replace")
    except subprocess.TimeoutExpired:
        state = process_state(process.pid)
        process.kill()
        said = "mdadm %s was not done after %g s (state %s, in %s)" % (
            words[0],
            timeout,
            state["state"],
            state["wchan"],
        )
        return {"ok": False, "seconds": now() - begun, "detail": said}
    return {"ok": process.returncode == 0, "seconds": now() - begun, "detail": output.strip()[-1000:]}
