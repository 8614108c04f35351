"""A real DUT that hangs: its console says so, its outlet is power-cycled, and the run goes on with it.

The DUT is a real sshd on loopback whose boot id is a file, the outlet a relay of a board that stops and starts it, the
console a serial port with a double of a kernel behind it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from consoles import Kernel, kernel_on_a_console, wait_less
from namespaces import require_mounts
from rig_builder import a_rig
from sshds import HOST, Sshd, sshd

from fixtures.boards import KmTronic, Port
from plugpull.coordination.journal import Journal
from plugpull.dut import listener
from plugpull.dut.bench import Bench
from plugpull.dut.listener import Listener
from plugpull.dut.real import outlet
from plugpull.dut.real.bench import prepare_real
from plugpull.history import events as ev
from plugpull.history.recorder import Recorder
from plugpull.rig.load import load_rig


@pytest.fixture
def kernel() -> Iterator[Kernel]:
    with kernel_on_a_console() as made:
        yield made


@pytest.fixture(autouse=True)
def impatience(monkeypatch: pytest.MonkeyPatch) -> None:
    wait_less(monkeypatch)
    monkeypatch.setattr(outlet, "OFF_FOR", 0.2)


class Machine:
    """What hangs off the relay: sshd, and the kernel at the other end of the serial line."""

    def __init__(self, server: Sshd, kernel: Kernel, folder: Path) -> None:
        require_mounts()
        self._server, self._kernel = server, kernel
        self.boot_id = folder / "boot_id"
        self.boots = 0
        self.boot()
        self.python = folder / "python"
        self.python.write_text(
            f"#!/bin/sh\nexec unshare --mount sh -c 'mount --bind {self.boot_id} /proc/sys/kernel/random/boot_id && "
            'exec python3 "$@"\' python3 "$@"\n'
        )
        self.python.chmod(0o755)

    def boot(self) -> None:
        self.boots += 1
        self.boot_id.write_text(f"boot-{self.boots}\n")

    def hang(self) -> None:
        self._kernel.answers = self._kernel.echoes = False
        self._server.drop()
        self._server.stop()

    def switched(self, relay: int, energised: bool) -> None:
        if not energised:
            self.boot()
            self._kernel.answers = self._kernel.echoes = True
            self._server.start()


@pytest.mark.skipif(os.getuid() != 0, reason="the agent needs root")
def test_a_dut_that_hung_is_power_cycled_and_the_next_scenario_reaches_it(
    kernel: Kernel, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listener, "SILENCE", 3.0)
    with ExitStack() as held:
        server = held.enter_context(sshd(tmp_path))
        machine = Machine(server, kernel, tmp_path)
        relay = held.enter_context(Port(KmTronic(channels=1, on_change=machine.switched)))
        reached = {"host": HOST, "ssh_options": list(server.options), "python": str(machine.python)}
        rig = a_rig("revival", "ssh", **reached, console=kernel.path, power="relay.1").controller()
        rig = rig.switch("relay", "kmtronic", 1, "mains", device=relay.path, wiring="nc")
        file = rig.disk("disk1", serial="NOT-HERE").write(tmp_path)
        journal = Journal(tmp_path / "journal", tmp_path)
        held.callback(journal.close)
        opened = prepare_real(load_rig(file), file, journal, held)
        recorder = held.enter_context(Recorder(tmp_path / "history.jsonl"))

        def scenario(name: str) -> tuple[Bench, Listener]:
            (tmp_path / name).mkdir()
            listening = Listener(recorder)
            bench = opened(recorder, tmp_path / name, listening, name)
            listening.begin(bench)
            return bench, listening

        mark = recorder.mark()
        bench, listening = scenario("first")
        machine.hang()
        assert recorder.wait_for(lambda event: isinstance(event, ev.AgentLost), 60.0, since=mark)
        listening.end()
        bench.close()
        recorded = recorder.since(mark)
        (died,) = [event for event in recorded if isinstance(event, ev.DutDied)]
        assert "the DUT hung" in died.headline
        (note,) = [event.text for event in recorded if isinstance(event, ev.Note)]
        assert note == "the DUT's power was cycled through relay.1, and it answered again"
        assert machine.boots == 2
        bench, listening = scenario("second")
        assert bench.ready().boot_id == "boot-2"
        listening.end()
        bench.close()
