"""The agent's side of the pipes: commands come whole, and the program's end is noticed either way."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from gpulse.model.catalog import Gpu
from gpulse.monitor import agent as agents
from gpulse.monitor.agent import Agent, Commands, ParentGone, Pipe
from gpulse.monitor.messages import AgentSample, Greeting, Request, Trouble, decode

if TYPE_CHECKING:
    from gpulse.monitor.messages import Message


@pytest.fixture
def pipe() -> Iterator[tuple[int, int]]:
    ends = os.pipe()
    yield ends
    for end in ends:
        os.close(end)


def shut(end: int) -> None:
    """Close an end of a pipe and keep its number in use: closed twice, it could be a file of another thread by then."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, end)
    os.close(null)


def ended() -> int:
    """Return the id of a process that is no more."""
    with subprocess.Popen([sys.executable, "-S", "-c", ""]) as process:
        pass
    return process.pid


def test_commands_come_whole_however_they_are_cut(pipe: tuple[int, int]) -> None:
    commands = Commands(pipe[0], os.getpid())
    assert commands.wait(0.0) == []
    os.write(pipe[1], b"sample\npa")
    assert commands.wait(1.0) == ["sample"]
    os.write(pipe[1], b"ce 0.5\nstop\n")
    assert commands.wait(1.0) == ["pace 0.5", "stop"]
    os.write(pipe[1], b"\xff\n")
    assert commands.wait(-1.0) == ["\ufffd"]


def test_the_end_of_the_pipe_is_the_end_of_the_program(pipe: tuple[int, int]) -> None:
    commands = Commands(pipe[0], os.getpid())
    shut(pipe[1])
    with pytest.raises(ParentGone):
        commands.wait(1.0)


@pytest.mark.parametrize("told", [True, False], ids=["by the kernel", "by looking"])
def test_the_end_of_the_program_is_noticed_while_the_pipe_is_open(
    pipe: tuple[int, int], told: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not told:
        monkeypatch.setattr(agents, "_death_of", lambda pid: -1)
    with subprocess.Popen([sys.executable, "-S", "-c", "input()"], stdin=subprocess.PIPE) as process:
        commands = Commands(pipe[0], process.pid)
        assert not told or commands.wait(0.0) == []
        assert not told or not commands.gone()
    with pytest.raises(ParentGone):
        commands.wait(30.0)
    assert commands.gone()


def test_a_program_that_ended_before_we_began_is_noticed(pipe: tuple[int, int]) -> None:
    with pytest.raises(ParentGone):
        Commands(pipe[0], ended()).wait(0.0)


def test_a_message_is_written_whole_through_a_pipe_that_is_too_small(pipe: tuple[int, int]) -> None:
    message = "x" * 300_000
    with subprocess.Popen(["cat"], stdin=pipe[0], stdout=subprocess.PIPE) as reader:
        assert reader.stdout is not None
        found = threading.Thread(target=lambda: texts.append(reader.stdout.read()))  # type: ignore[union-attr]
        texts: list[bytes] = []
        found.start()
        Pipe(pipe[1], os.getppid()).send(Trouble(message))
        shut(pipe[1])
        found.join()
    trouble = decode(texts[0])
    assert isinstance(trouble, Trouble)
    assert trouble.message == message


def test_a_program_that_does_not_read_and_is_gone_is_not_waited_for(pipe: tuple[int, int]) -> None:
    writer = Pipe(pipe[1], ended())
    with pytest.raises(ParentGone):
        writer.send(Trouble("x" * 300_000))


def _take(request: Request, *commands: str) -> list[Message]:
    """Return all that an agent says until it has read these commands."""
    read, write = os.pipe()
    said: list[Message] = []
    os.write(write, "".join(f"{command}\n" for command in commands).encode())
    try:
        Agent(request, read, said.append).run()
    finally:
        os.close(read)
        os.close(write)
    return said


def test_an_agent_greets_and_looks_until_it_is_stopped() -> None:
    greeting, *samples = _take(
        Request(pid=os.getpid(), source="demo", gpus="all"), "pace 0.1", "sample", "nonsense", "stop"
    )
    assert isinstance(greeting, Greeting)
    assert (greeting.uuids, greeting.certain) == (None, True)
    times = []
    for sample in samples:
        assert isinstance(sample, AgentSample)
        assert len(sample.snapshot.gpus) == 8
        assert sample.program is not None
        assert sample.program.pid == os.getpid()
        times.append(sample.at)
    assert len(times) == 2  # the first, and the last before the end
    assert times == sorted(times)


def test_gpus_a_framework_has_told_are_read_in_its_order() -> None:
    all_of_them = _take(Request(pid=os.getpid(), source="demo", gpus="all"), "stop")[1]
    assert isinstance(all_of_them, AgentSample)
    uuids = [str(gpu.uuid) for gpu in all_of_them.snapshot.gpus]
    told = [uuids[5].removeprefix("GPU-"), uuids[2].removeprefix("GPU-")]  # as torch writes them
    greeting, sample, *_ = _take(Request(pid=os.getpid(), source="demo", uuids=told), "stop")
    assert isinstance(greeting, Greeting)
    assert isinstance(sample, AgentSample)
    assert greeting.uuids == [uuids[5], uuids[2]] == [gpu.uuid for gpu in sample.snapshot.gpus]
    assert all(isinstance(gpu, Gpu) for gpu in sample.snapshot.gpus)


def test_what_cannot_be_read_is_one_trouble() -> None:
    (trouble,) = _take(Request(pid=os.getpid(), source="demo", gpus=["99"]))
    assert isinstance(trouble, Trouble)
    assert "99" in trouble.message
