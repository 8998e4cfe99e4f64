"""Stacks of the program itself: what is copied, what is kept, and what never is."""

from __future__ import annotations

import asyncio
import gc
import multiprocessing.process
import os
import subprocess
import sys
import threading
import time
import weakref
from pathlib import Path
from types import CodeType

import pytest

from gpulse.analysis.own_lines import call_in, called, own_line
from gpulse.model.stacks import Frame, Stack
from gpulse.monitor.stack_sampler import DEEPEST, FrameNames, StackSampler, awaited_frames, call_at, line_before
from gpulse.monitor.worker_stacks import WorkerStacks

ROOT = Path(__file__).parents[3] / "src"


class Held:
    """Something large that a frame refers to."""


def stack_of(sampler: StackSampler, role: str = "main") -> Stack:
    sampler._due = 0.0
    stacks = sampler._stacks(time.monotonic(), 0.1)
    return next(stack for stack in stacks if stack.role == role)


@pytest.mark.parametrize(
    ("expression", "name"),
    [
        ("loss.item()", "loss.item"),
        ("model(x.to(device)).sum().item()", "item"),
        ("await queue.get()", "queue.get"),
        ("torch.save(model.state_dict(), path)", "torch.save"),
        ("print(f'{loss:.3f}')", "print"),
        ("items[3]()", ""),
        ("a @ b", ""),
        ("(a + b)", ""),
        ("loader", ""),
        ("f(\n    x,\n)", "f"),
        ("", ""),
    ],
)
def test_the_call_of_an_expression(expression: str, name: str) -> None:
    assert called(expression) == name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("    total += loss.item()  # sync()", "loss.item"),
        ("f(g(x))", ""),
        ("x = 1", ""),
        ("if (a and b):", ""),
        ("while not (ready(x)):", "ready"),
    ],
)
def test_the_call_of_a_line_that_has_one(line: str, name: str) -> None:
    assert call_in(line) == name


def test_a_stack_has_the_line_and_the_call_of_each_frame() -> None:
    def inner() -> tuple[Frame, ...]:
        return FrameNames().stack(sys._getframe())

    frames = inner()
    assert frames[-1][:3] == (__file__, inner.__code__.co_firstlineno + 1, "inner")
    assert frames[-2].function == "test_a_stack_has_the_line_and_the_call_of_each_frame"
    assert frames[-2].call == "inner"


def test_code_without_source_has_lines_and_no_calls() -> None:
    names: dict[str, object] = {"names": FrameNames(), "sys": sys}
    exec(compile("def f():\n    return names.stack(sys._getframe())\nfound = f()\n", "<stdin>", "exec"), names)
    found = names["found"]
    assert isinstance(found, tuple)
    assert found[-1] == Frame("<stdin>", 2, "f", "")
    assert found[-2] == Frame("<stdin>", 3, "<module>", "")


def test_a_broken_source_is_no_error(tmp_path: Path) -> None:
    code: CodeType = compile("f(1)\n", str(tmp_path / "gone.py"), "exec")
    assert call_at(code, 9999, 1) == ""
    assert call_at(code, 0, 1) == ""


def test_the_jump_at_the_end_of_a_loop_belongs_to_the_line_before_it() -> None:
    def count(values: list[int]) -> int:
        hits = 0
        for value in values:
            if value:
                hits += 1
        return hits

    code = count.__code__
    lines = {line_before(code, instruction) for instruction in range(0, len(code.co_code), 2)}
    assert lines <= set(range(code.co_firstlineno, code.co_firstlineno + 6))
    jumps = [at for at in range(2, len(code.co_code), 2) if line_at(code, at) is None]
    assert all(line_before(code, at) > code.co_firstlineno for at in jumps)


def line_at(code: CodeType, instruction: int) -> int | None:
    return next((line for start, end, line in code.co_lines() if start <= instruction < end), None)


def test_deep_recursion_is_cut_at_the_outside() -> None:
    def down(depth: int) -> tuple[Frame, ...]:
        return down(depth - 1) if depth else FrameNames().stack(sys._getframe())

    frames = down(DEEPEST + 50)
    assert len(frames) == DEEPEST
    assert {frame.function for frame in frames} == {"down"}


def test_no_frame_and_so_no_tensor_is_kept_alive() -> None:
    sampler = StackSampler(WorkerStacks())
    alive: list[weakref.ref[Held]] = []

    def work() -> None:
        tensor = Held()
        alive.append(weakref.ref(tensor))
        sampler._stacks(time.monotonic(), 0.1)
        sampler._tally.add_stacks(sampler._stacks(time.monotonic(), 0.1))

    thread = threading.Thread(target=work)  # the stack of the main thread, and of this one
    thread.start()
    thread.join()
    gc.collect()
    assert [ref() for ref in alive] == [None]
    sampler._workers.close()


def test_other_threads_are_seen_with_their_names() -> None:
    sampler, ready, over = StackSampler(WorkerStacks()), threading.Event(), threading.Event()

    def trainer() -> None:
        ready.set()
        over.wait()

    thread = threading.Thread(target=trainer, name="trainer")
    thread.start()
    try:
        ready.wait()
        found = sampler._stacks(time.monotonic(), 0.1)
        named = [stack for stack in found if stack.thread.startswith("trainer ")]
        assert [stack.role for stack in named] == ["thread"]
        assert any(frame.function == "trainer" for frame in named[0].frames)
        assert not any(stack.thread.startswith("gpulse-") for stack in found)
    finally:
        over.set()
        thread.join()
        sampler._workers.close()


def test_a_coroutine_that_waits_is_named_by_the_line_that_awaits() -> None:
    names = FrameNames()
    found: list[list[Frame]] = []

    async def fetch(over: asyncio.Event) -> None:
        await over.wait()

    async def main() -> None:
        over = asyncio.Event()
        loop = asyncio.get_running_loop()

        def look() -> None:
            deadline = time.monotonic() + 20
            while time.monotonic() < deadline:
                frames = awaited_frames(sys._current_frames().get(ident), names)
                if frames:
                    found.append(frames)
                    break
                time.sleep(0.01)
            loop.call_soon_threadsafe(over.set)

        watcher = threading.Thread(target=look)
        watcher.start()
        await asyncio.gather(fetch(over))
        watcher.join()

    ident = threading.get_ident()
    asyncio.run(main())
    assert [frame.function for frame in found[0]][:2] == ["main", "fetch"]
    assert own_line([frame for frame in found[0] if frame.file == __file__]) is not None


def test_a_worker_tells_what_it_executes_through_the_pipe(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(multiprocessing.process, "_children", set())
    workers = WorkerStacks()
    frame = Frame("data.py", 40, "augment", "flip")
    try:
        os.write(workers._to, b'[12.5,77,[["data.py",40,"augment","flip"]]]\nnonsense\n[1,2]\n[13.0,')
        assert [*workers.read()] == []  # without workers the pipe is not looked at
        monkeypatch.setattr(multiprocessing.process, "_children", {1})
        assert [*workers.read()] == [Stack(12.5, (frame,), 0.1, "worker", "", 77)]
        os.write(workers._to, b"78,[]]\n")
        assert [*workers.read()] == [Stack(13.0, (), 0.1, "worker", "", 78)]
        assert [*workers.read()] == []
    finally:
        workers.close()


def test_a_forked_child_that_is_no_loader_worker_releases_the_pipe() -> None:
    workers = WorkerStacks()
    child = os.fork()
    if not child:
        workers.start()
        os._exit(0 if (workers._from, workers._to) == (-1, -1) else 1)
    assert os.waitpid(child, 0)[1] == 0
    workers.close()


def test_a_stack_that_the_interpreters_lock_delayed_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    sampler = StackSampler(WorkerStacks())
    taken: list[object] = []
    monkeypatch.setattr(sampler._tally, "add_stacks", taken.append)
    for late, count in ((0.0, 1), (0.003, 1), (0.006, 2)):
        monkeypatch.setattr("gpulse.monitor.stack_sampler.time.monotonic", lambda late=late: 50.0 + late)
        sampler._due = 50.0
        assert sampler.tick() <= 0.14
        assert len(taken) == count
    sampler._workers.close()


def test_ticks_are_about_a_tenth_of_a_second_apart_and_uneven() -> None:
    sampler = StackSampler(WorkerStacks())
    waits = []
    for _ in range(20):
        sampler._due = 0.0
        waits.append(sampler.tick())
    assert all(0.0 <= wait <= 0.14 for wait in waits)
    assert len({round(wait, 4) for wait in waits}) > 5
    sampler._workers.close()


SPAWNING = """
import multiprocessing, sys, time
import gpulse
from worker import loop

if __name__ == "__main__":
    from gpulse.monitor.worker_stacks import WorkerStacks

    workers = WorkerStacks()
    context = multiprocessing.get_context(sys.argv[1])
    worker, other = context.Process(target=loop, daemon=True), context.Process(target=time.sleep, args=(60,), daemon=True)
    worker.start(), other.start()
    found, end = [], time.monotonic() + 60
    while len(found) < 3 and time.monotonic() < end:
        found += workers.read()
        time.sleep(0.02)
    print({(stack.pid == worker.pid, stack.frames[-1].function) for stack in found})
    workers.close()
"""
LOOP = """
import time

def augment():
    time.sleep(60)

def loop():
    augment()
"""


@pytest.mark.parametrize("way", ["spawn", "forkserver"])
def test_a_spawned_loader_worker_finds_the_pipe_and_no_other_process_does(tmp_path: Path, way: str) -> None:
    folder = tmp_path / "torch" / "utils" / "data" / "_utils"
    folder.mkdir(parents=True)
    (folder / "worker.py").write_text(LOOP)
    (tmp_path / "train.py").write_text(SPAWNING)
    environ = os.environ | {"XDG_RUNTIME_DIR": str(tmp_path), "PYTHONPATH": f"{folder}:{ROOT}"}
    command = [sys.executable, str(tmp_path / "train.py"), way]
    done = subprocess.run(command, env=environ, capture_output=True, text=True, timeout=90, check=False)
    assert (done.stdout, done.stderr) == ("{(True, 'augment')}\n", "")
    assert os.listdir(tmp_path / "gpulse") == [], "the pipe has no name any more"
