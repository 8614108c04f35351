"""The time of an edge of a YKUSH: through an open handle with read-back, against one process per operation.

Both switch the same gadget in the same guest, in turn: the driver's ``set`` (command, acknowledgement, and the state
read back), and pykush's own command line, ``python -m pykush.pykush -s SERIAL -d 1``, which is how labgrid and scripts
do it and which reads nothing back. The time of a process is from its start to its end, with Python's start. The third
case is the command line of uhubctl on a hub of QEMU's, one process for each edge.
"""

from __future__ import annotations

import json
import statistics
import sys
from typing import Any

from benchmarks.measure import ROOT, begin, console, table

sys.path.insert(0, str(ROOT))  # the lab is not part of the installed package
from fixtures.gadgets.plugged import plugged
from fixtures.lab import Lab, desk, lab

LIMIT = 20.0
"""The factor by which an edge must be quicker than a process."""
EXTRAS = frozenset({"hid", "uhubctl", "ssh", "plugpull"})
"""The image of the end-to-end tests, so that no other one must be booted."""
SERIAL = "YK12345"
SCRIPT = """
import json, re, subprocess, sys, time
from plugpull.rig.model import Switch
from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch

n, serial = int(sys.argv[1]), sys.argv[2]
host = LocalHost()
while not host.hid_devices(0x04D8):
    time.sleep(0.1)
seen = subprocess.run(["uhubctl"], capture_output=True, text=True).stdout
hub = re.search(r"hub (\\S+) \\[0409:55aa", seen)[1]
found = {"open": [], "ours": [], "pykush": [], "uhubctl": []}


def timed(name, what):
    begun = time.monotonic()
    what()
    found[name].append(time.monotonic() - begun)


def run(line):
    subprocess.run(line, check=True, capture_output=True)


table = Switch.model_validate(
    {"name": "sw", "driver": "ykush", "ports": 3, "mechanism": "vbus", "serial": serial, "timeout": 30.0})
for number in range(n):
    on = bool(number % 2)
    begun = time.monotonic()
    switch = open_switch(table, host, None)
    found["open"].append(time.monotonic() - begun)
    for edge in (on, not on, on, not on, on):
        timed("ours", lambda: switch.set("1", edge))
    switch.close()
    timed("pykush", lambda: run([sys.executable, "-W", "ignore", "-m", "pykush.pykush", "-s", serial,
                                 "-u" if on else "-d", "1"]))
    timed("uhubctl", lambda: run(["uhubctl", "-a", "on" if on else "off", "-l", hub, "-p", "4"]))
print(json.dumps(found))
"""


def measured(made: Lab, n: int) -> dict[str, list[float]]:
    made.put("/root/latency.py", SCRIPT.encode())
    done = made.run(["python3", "/root/latency.py", str(n), SERIAL], timeout=60 + 10 * n)
    if done.status:
        raise SystemExit(done.stderr)
    found: dict[str, list[float]] = json.loads(done.stdout)
    return found


def main() -> None:
    options: Any = begin(__doc__, n=(int, 10, "operations by process; five times as many by the open handle"))
    with lab(desk(1, hub=True), EXTRAS) as made, plugged(made, "ykush", serial=SERIAL):
        found = measured(made, options.n)
    ours = statistics.median(found["ours"])
    shown = table("one edge, in milliseconds", "way", "edges", "median", "least", "most", "ratio")
    for name, title in (
        ("ours", "our open handle, read back"),
        ("open", "opening that handle, once a run"),
        ("pykush", "pykush's command line, not read back"),
        ("uhubctl", "uhubctl's command line"),
    ):
        times = found[name]
        middle = statistics.median(times)
        cells = [f"{1000 * value:.1f}" for value in (middle, min(times), max(times))]
        shown.add_row(title, str(len(times)), *cells, f"{middle / ours:.1f}")
    console.print(shown)
    ratio = statistics.median(found["pykush"]) / ours
    verdict = "kept" if ratio >= LIMIT else "MISSED"
    console.print(f"{ratio:.1f} times quicker than a process per operation, of {LIMIT:g} aimed at: {verdict}")


if __name__ == "__main__":
    main()
