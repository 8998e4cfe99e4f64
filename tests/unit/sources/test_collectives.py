"""Which rank others wait for: from a scripted RAS port, and from files as PyTorch writes them."""

from __future__ import annotations

import json
import os
import pickle
import socket
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.sources.collectives import (
    Laggard,
    ask_ras,
    behind,
    laggards,
    listens,
    parse_dump,
    parse_ras,
    read_dump,
    recorded,
)

HEADER = """Job summary
===========

  Nodes  Processes         GPUs  Processes     GPUs
(total)   per node  per process    (total)  (total)
      1          8            1          8        8

Communicators... (0.00s)
=============

Group     Comms     Nodes     Ranks     Ranks     Ranks    Status  Errors
    #  in group  per comm  per node  per comm  in group
    0         1         1         8         8         8   RUNNING  MISMATCH
"""
ONE = """
Warnings
========

#0-0 (78db921d1c117b4a) MISMATCH
  Communicator ranks have different AllReduce operation counts
  7 ranks have launched up to operation 64
  Rank 7 has launched up to operation 60 -- GPU 3 managed by process 1650386 on node node1
"""
SEVERAL = """
#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different collective operation counts
  26 ranks have launched up to operation 6650
  2 ranks have launched up to operation 6649
  Rank 0 -- GPU 0 managed by process 483072 on node 172.16.64.210
  Rank 2 -- GPU 2 managed by process 483074 on node 172.16.64.210
"""
AHEAD = """
#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different AllGather operation counts
  7 ranks have launched up to operation 8
  Rank 3 has launched up to operation 9 -- GPU 3 managed by process 7 on node n
"""
NONE_YET = """
#0-0 (27a079b828ff1a75) MISMATCH
  Communicator ranks have different Broadcast operation counts
  7 ranks have launched up to operation 1
  Rank 3 has not launched any operations -- GPU 3 managed by process 7 on node n
"""
DEAD = """
Errors
======

DEAD
  1 job process is considered dead (unreachable via the RAS network)
  Process 3487984 on node 172.16.64.213 managing GPU 5
"""


def told(found: list[Laggard]) -> list[tuple[object, ...]]:
    return [(one.rank, one.collective, one.done, one.others, one.pid, one.node) for one in found]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (ONE, [(7, "AllReduce", 60, 64, 1650386, "node1")]),
        (
            SEVERAL,
            [
                (0, "collective", 6649, 6650, 483072, "172.16.64.210"),
                (2, "collective", 6649, 6650, 483074, "172.16.64.210"),
            ],
        ),
        (AHEAD, []),  # the one that is named is not the one that is behind
        (NONE_YET, [(3, "Broadcast", 0, 1, 7, "n")]),
        (DEAD, [(None, "", 0, 0, 3487984, "172.16.64.213")]),
    ],
)
def test_what_ras_says(text: str, expected: list[tuple[object, ...]]) -> None:
    assert told(parse_ras(HEADER + text)) == expected


@given(st.text() | st.lists(st.sampled_from((HEADER + ONE + SEVERAL + DEAD).splitlines())).map("\n".join))
def test_any_answer_of_ras_is_read(text: str) -> None:
    for one in parse_ras(text):
        assert not one.collective or one.done < one.others


class RasPort:
    """A port that answers as NCCL does, and remembers what it was asked."""

    def __init__(self, answer: str, closes: bool = True) -> None:
        self.asked = b""
        self._answer = answer
        self._closes = closes
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.address = f"127.0.0.1:{self._socket.getsockname()[1]}"
        self._connection: socket.socket | None = None
        self._thread = threading.Thread(target=self._serve)
        self._thread.start()

    def _serve(self) -> None:
        try:
            self._connection, _ = self._socket.accept()
        except OSError:
            return
        self.asked = self._connection.recv(100)
        self._connection.sendall(self._answer.encode())
        if self._closes:
            self._connection.close()

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join()
        if self._connection is not None:
            self._connection.close()


@pytest.fixture(params=[True, False], ids=["closes", "stays open"])
def port(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[RasPort]:
    monkeypatch.setattr("gpulse.sources.collectives._PATIENCE", 3.0 if request.param else 0.5)
    made = RasPort(HEADER + ONE, request.param)
    yield made
    made.close()


def test_the_port_is_asked(port: RasPort) -> None:
    assert told(ask_ras({"NCCL_RAS_ADDR": port.address})) == [(7, "AllReduce", 60, 64, 1650386, "node1")]
    assert port.asked == b"verbose status\n"


def test_a_port_of_somebody_else_is_not_asked(port: RasPort, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert ask_ras({"NCCL_RAS_ADDR": port.address}) == []
    assert port.asked == b""


def test_who_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        number = server.getsockname()[1]
        assert listens(number, os.geteuid())
        assert not listens(number, 4711)
    assert not listens(number, os.geteuid())


@pytest.mark.parametrize("address", ["", "nonsense", "host:", "host:99999999", "[::1]:1"])
def test_no_port_is_no_answer(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpulse.sources.collectives._PORT", 1)
    assert ask_ras({"NCCL_RAS_ADDR": address}) == []


# --- files


def dump(*numbers: int, name: str = "nccl:all_reduce", group: str = "0") -> dict[str, Any]:
    """What the flight recorder of one rank writes."""
    entries = [
        {
            "collective_seq_id": number,
            "process_group": (group, "default_pg"),
            "profiling_name": name,
            "state": "completed",
            "is_p2p": False,
            "frames": [{"name": "step", "filename": "train.py", "line": 84}],
        }
        for number in numbers
    ]
    return {"version": "2.10", "pg_config": {group: {"ranks": "[0, 1]"}}, "entries": entries}


def test_the_rank_that_is_behind() -> None:
    found = behind({0: dump(1, 2, 3), 1: dump(1), 2: dump(1, 2, 3)})
    assert told(found) == [(1, "all_reduce", 1, 3, None, "")]


def test_groups_are_compared_apart() -> None:
    assert behind({0: dump(7, group="0"), 1: dump(2, group="1")}) == []


@pytest.mark.parametrize("form", ["pickle", "json"])
def test_files_of_a_job(tmp_path: Path, form: str) -> None:
    prefix = str(tmp_path / "trace_")
    for rank, content in enumerate((dump(5, 6), dump(5))):
        packed = pickle.dumps(content, 2) if form == "pickle" else json.dumps(content).encode()
        Path(f"{prefix}{rank}").write_bytes(packed)
    found = recorded([os.getpid()], {"TORCH_NCCL_DEBUG_INFO_TEMP_FILE": prefix})
    assert told(found) == [(1, "all_reduce", 5, 6, None, "")]


class Evil:
    """What runs code where it is unpickled."""

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (os.environ["EVIL"],)


@pytest.mark.parametrize("make", [lambda: Evil(), lambda: {"entries": [Evil()]}])
def test_a_file_never_runs_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, make: Any) -> None:
    monkeypatch.setenv("EVIL", str(tmp_path / "was here"))
    assert parse_dump(pickle.dumps(make())) is None
    assert not (tmp_path / "was here").exists()


def test_only_own_new_plain_files_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "trace_0"
    file.write_bytes(pickle.dumps(dump(1)))
    assert read_dump(str(file)) is not None
    assert read_dump(str(file), since=file.stat().st_mtime + 1) is None
    (tmp_path / "link").symlink_to(file)
    assert read_dump(str(tmp_path / "link")) is None
    os.mkfifo(tmp_path / "pipe")
    assert read_dump(str(tmp_path / "pipe")) is None
    assert read_dump(str(tmp_path)) is None
    monkeypatch.setattr(os, "geteuid", lambda: 4711)
    assert read_dump(str(file)) is None


@given(
    st.binary(max_size=200)
    | st.just(pickle.dumps(dump(1))).flatmap(lambda good: st.integers(0, len(good)).map(lambda at: good[:at]))
)
def test_damaged_files_are_none_or_plain(content: bytes) -> None:
    plain = parse_dump(content)
    if plain is not None:
        behind({0: plain})


def test_nobody_is_behind_where_nothing_tells(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpulse.sources.collectives._PORT", 1)
    monkeypatch.setattr("gpulse.sources.collectives._DEFAULTS", ())
    assert laggards([os.getpid()]) == []
    assert laggards([]) == []
