"""Switches behind pdudaemon and labgrid: the real ones, and what each does wrong."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from program_doubles import FUZZ, opened, said_of

from fixtures.peers import peers_python
from plugpull.cache import Cache
from plugpull.errors import RigError
from plugpull.switches import labgrid

PDUDAEMON = "import sys, pdudaemon; sys.argv = ['pdudaemon', *sys.argv[1:]]; sys.exit(pdudaemon.main())"


@pytest.fixture(scope="module")
def python() -> Path:
    return peers_python(Cache.default())


@contextmanager
def running_pdudaemon(python: Path, folder: Path) -> Iterator[int]:
    """A pdudaemon on loopback with a strip whose outlets are files; its port."""
    import json
    import socket

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = int(probe.getsockname()[1])
    strip = {"driver": "localcmdline", "cmd_on": f"echo on > {folder}/%s", "cmd_off": f"echo off > {folder}/%s"}
    daemon = {"hostname": "127.0.0.1", "port": port, "logging_level": "DEBUG", "listener": "http"}
    (folder / "pdu.json").write_text(json.dumps({"daemon": daemon, "pdus": {"strip": strip}}))
    with (folder / "pdu.log").open("wb") as log:
        process = subprocess.Popen(
            [str(python), "-c", PDUDAEMON, "--conf", str(folder / "pdu.json")], stdout=log, stderr=log, cwd=folder
        )
    try:
        deadline = time.monotonic() + 60
        while True:
            try:
                socket.create_connection(("127.0.0.1", port), 1).close()
                break
            except OSError:
                assert process.poll() is None, (folder / "pdu.log").read_text()
                assert time.monotonic() < deadline
                time.sleep(0.05)  # another process: there is no event for its beginning to listen
        yield port
    finally:
        process.kill()
        process.wait()


def wait_text(path: Path, text: str) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() or path.read_text() != text:
        assert time.monotonic() < deadline, f"{path} is not {text!r}"
        time.sleep(0.02)  # another process's file


def test_pdudaemon_switches_an_outlet_and_says_when_it_cannot(python: Path, tmp_path: Path) -> None:
    with running_pdudaemon(python, tmp_path) as port:
        server = f"http://someone:secret@127.0.0.1:{port}"
        switch = opened("pdudaemon", tmp_path, pdu="strip", server=server)
        switch.set("2", False)
        wait_text(tmp_path / "2", "off\n")
        switch.set("2", True)
        wait_text(tmp_path / "2", "on\n")
        assert switch.read("2") is None
        assert "secret" not in repr(switch.identity)
        with pytest.raises(RigError, match="is other in its configuration"):
            opened("pdudaemon", tmp_path, pdu="other", server=server).set("1", False)
    with pytest.raises(RigError, match="cannot reach pdudaemon") as raised:
        switch.set("2", False)
    assert "secret" not in str(raised.value)


def test_pdudaemon_that_does_not_answer(tmp_path: Path) -> None:
    import socket

    with socket.create_server(("127.0.0.1", 0)) as deaf:
        address = f"127.0.0.1:{deaf.getsockname()[1]}"
        switch = opened("pdudaemon", tmp_path, pdu="strip", server=address, timeout=0.5)
        with pytest.raises(RigError, match=r"did not answer within 0\.5 s; the strip may still obey"):
            switch.set("1", False)


LABGRID = """
targets:
  main:
    resources:
      NetworkPowerPort: {{model: rest, host: "http://127.0.0.1:1/{{index}}", index: 1}}
    drivers:
      ExternalPowerDriver:
        name: outlet
        cmd_on: sh -c 'echo on > {folder}/outlet'
        cmd_off: sh -c 'echo off > {folder}/outlet'
"""


def test_a_driver_of_labgrids(python: Path, tmp_path: Path) -> None:
    (tmp_path / "env.yaml").write_text(LABGRID.format(folder=tmp_path))
    switch = opened(
        "labgrid", tmp_path, ports=1, timeout=60, environment="env.yaml", names=["outlet"], python=str(python)
    )
    try:
        switch.set("1", False)
        assert (tmp_path / "outlet").read_text() == "off\n"
        switch.set("1", True)
        assert (tmp_path / "outlet").read_text() == "on\n"
        assert switch.read("1") is None, "it has no way to ask, and must not make an answer up"
        assert switch.identity.model == "ExternalPowerDriver"
        (tmp_path / "outlet").unlink()
        (tmp_path / "outlet").mkdir()
        with pytest.raises(RigError, match="labgrid could not"):
            switch.set("1", False)
    finally:
        switch.close()
    with pytest.raises(RigError, match="labgrid ended"):
        switch.set("1", False)


def test_labgrid_that_is_not_there_or_not_right(python: Path, tmp_path: Path) -> None:
    with pytest.raises(RigError, match="cannot run /no/python"):
        opened("labgrid", tmp_path, ports=1, environment="env.yaml", python="/no/python")
    with pytest.raises(RigError, match=r"labgrid ended: .*env\.yaml"):
        opened("labgrid", tmp_path, ports=1, timeout=60, environment="env.yaml", python=str(python))
    with pytest.raises(RigError, match="1 names for 2 ports"):
        opened("labgrid", tmp_path, environment="env.yaml", names=["a"], python=str(python))


@settings(max_examples=FUZZ, deadline=None)
@given(st.binary())
def test_whatever_labgrids_process_says_is_an_answer_or_an_error(line: bytes) -> None:
    found = said_of(labgrid.parse_answer, line)
    assert found
    assert isinstance(found, str) or found == {**found, "ok": True}  # type: ignore[dict-item]
