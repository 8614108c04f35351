"""``python -m fixtures.boards``: a board that a person can try, until a signal ends it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from boards import Nobody, declared

from plugpull.switches.host_local import LocalHost
from plugpull.switches.kinds import open_switch

CHECKOUT = Path(__file__).parents[2]
SIGNAL_AT_STEP = """
import os, signal, sys, threading, time
from fixtures.boards import __main__ as boards

last, steps, sent = int(sys.argv[1]), 0, threading.Lock()

def send():
    if sent.acquire(blocking=False):
        os.kill(os.getpid(), signal.SIGTERM)

def traced(frame, event, argument):
    global steps
    steps += event == "line"
    if steps == last:
        sys.settrace(None)
        send()
    return traced

def send_when_it_waits():
    before = -1
    while steps > before:
        before = steps
        time.sleep(0.5)
    send()

def print_and_trace(*words, **options):
    print(*words, **options)
    threading.Thread(target=send_when_it_waits, daemon=True).start()
    sys.settrace(traced)
    sys._getframe(1).f_trace = traced

boards.print = print_and_trace
sys.exit(boards.main(["kmtronic"]))
"""


def test_a_person_can_try_a_board() -> None:
    argv = [sys.executable, "-m", "fixtures.boards", "kmtronic", "--on-change", "echo changed"]
    with subprocess.Popen(argv, cwd=CHECKOUT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        try:
            path = process.stdout.readline().strip()
            switch = open_switch(declared("kmtronic", 2, device=path), LocalHost(), Nobody())
            switch.set("2", True)
            switch.close()
            assert process.stdout.readline() == "relay 1 on\n"
            assert process.stdout.readline() == "changed 1 on\n"
        finally:
            process.terminate()
    assert process.returncode == 0


@pytest.mark.parametrize("step", [1, 2, 4, 6, 8, 10, 14])
def test_a_signal_at_any_step_ends_a_board(step: int) -> None:
    # The signal comes after so many lines of Python since the path was printed: before the wait or in it.
    argv = [sys.executable, "-c", SIGNAL_AT_STEP, str(step)]
    done = subprocess.run(argv, cwd=CHECKOUT, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("/dev/pts/")
