"""What a thread is doing: the kernel's letter and the function in which it waits become one word."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.model.catalog import PROCESS_METRICS
from gpulse.sources.host import thread_state
from gpulse.sources.processes import LinuxMachine, parse_stat
from tests.unit.sources.proc import Root

_WORDS = {"running", "lock", "sleep", "disk", "network", "poll", "pipe", "driver", "waiting", "stopped"}
_STATE = frozenset({"thread_state"})


@pytest.mark.parametrize(
    ("state", "wchan", "word"),
    [
        ("R", "0", "running"),
        ("S", "futex_do_wait", "lock"),
        ("S", "futex_wait_queue", "lock"),
        ("S", "futex_wait_queue_me", "lock"),
        ("S", "hrtimer_nanosleep", "sleep"),
        ("S", "ep_poll", "poll"),
        ("S", "poll_schedule_timeout.constprop.0", "poll"),
        ("S", "do_select", "poll"),
        ("S", "pipe_read", "pipe"),
        ("S", "anon_pipe_read", "pipe"),
        ("S", "sk_wait_data", "network"),
        ("S", "unix_stream_read_generic", "network"),
        ("S", "inet_csk_accept", "network"),
        ("D", "rpc_wait_bit_killable", "network"),
        ("D", "nfs4_proc_read", "network"),
        ("D", "fuse_get_req", "network"),
        ("D", "request_wait_answer", "network"),
        ("D", "folio_wait_bit_common", "disk"),
        ("D", "io_schedule", "disk"),
        ("D", "rq_qos_wait", "disk"),
        ("D", "nvme_submit_sync_cmd", "disk"),
        ("D", "0", "disk"),
        ("D", "a_function_of_tomorrow", "disk"),
        ("S", "nvidia_ioctl", "driver"),
        ("D", "uvm_va_space_down_read", "driver"),
        ("S", "do_wait", "waiting"),
        ("S", "0", "waiting"),
        ("S", "", "waiting"),
        ("I", "", "waiting"),
        ("T", "do_signal_stop", "stopped"),
        ("t", "ptrace_stop", "stopped"),
        ("Z", "0", None),
        ("X", "", None),
        ("", "", None),
    ],
)
def test_a_state_and_a_function_are_one_word(state: str, wchan: str, word: str | None) -> None:
    assert thread_state(state, wchan) == word


@given(state=st.text(max_size=2), wchan=st.text(max_size=40))
def test_anything_is_a_word_of_the_catalog_or_none(state: str, wchan: str) -> None:
    word = thread_state(state, wchan)
    assert word is None or word in _WORDS
    assert word is None or word in PROCESS_METRICS["thread_state"].help


@given(
    name=st.binary(max_size=15).filter(lambda name: b"\0" not in name),
    state=st.sampled_from("RSDTtZXI"),
    parent=st.integers(0, 2**22),
)
def test_the_state_is_found_behind_any_name(name: bytes, state: str, parent: int) -> None:
    fields = [state, str(parent), *["0"] * 9, "5", "6", "0", "0", *["0"] * 4, "77", "0", "88", "0"]
    stat = parse_stat(b"7 (" + name + b") " + " ".join(fields).encode() + b"\n")
    assert stat is not None
    assert (stat.state, stat.parent, stat.cpu, stat.started, stat.resident) == (state, parent, 11, 77, 88)
    assert stat.name == name.decode("utf-8", "replace")


@pytest.fixture
def root(tmp_path: Path) -> Root:
    return Root(tmp_path)


def test_the_main_thread_of_a_process_is_described(root: Root) -> None:
    root.process(7, state="S", wchan="futex_do_wait")
    root.process(8, state="R", wchan="0")
    root.process(9, state="S")
    root.process(10, state="Z")
    known = LinuxMachine(str(root)).processes([7, 8, 9, 10], _STATE)
    assert [known[pid].values.get("thread_state") for pid in (7, 8, 9, 10)] == ["lock", "running", "waiting", None]
    assert known[10].gaps["thread_state"] == "unsupported"


def test_it_is_read_only_if_asked_for(root: Root) -> None:
    root.process(7, state="S", wchan="futex_do_wait")
    facts = LinuxMachine(str(root)).processes([7], frozenset({"name"}))[7]
    assert "thread_state" not in facts.values
    assert "thread_state" not in facts.gaps


def test_descendants_are_counted_by_what_they_do(root: Root) -> None:
    root.process(7, state="R")
    for pid, parent, state in ((8, 7, "R"), (9, 8, "R"), (10, 7, "D"), (11, 7, "S"), (12, 1, "R")):
        root.process(pid, parent=parent, state=state)
    values = LinuxMachine(str(root)).processes([7], frozenset({"workers_running"}))[7].values
    assert (values["children"], values["workers_running"], values["workers_blocked"]) == (4, 2, 1)


def test_this_kernel_tells_what_a_thread_waits_for() -> None:
    """The main thread of this process runs, since it is the one that asks."""
    import os

    machine = LinuxMachine()
    assert machine.processes([os.getpid()], _STATE)[os.getpid()].values["thread_state"] == "running"
    seen: list[object] = []
    asking = threading.Thread(
        target=lambda: seen.append(machine.processes([os.getpid()], _STATE)[os.getpid()].values["thread_state"])
    )
    asking.start()
    asking.join()
    assert seen[0] in _WORDS
