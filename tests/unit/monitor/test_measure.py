"""A measured function is the function it was: same answers, same errors, same protocol."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
from collections.abc import Callable
from functools import cached_property
from typing import Any

import pytest

from gpulse.monitor.measure import measure, measurements
from gpulse.monitor.monitor import Monitor
from tests.unit.monitor.measured import BOTH, Log, _no_measurements, monitor, quiet, the_same  # noqa: F401

# --- plain functions


def test_answers_errors_and_arguments_pass() -> None:
    @quiet
    def divide(a: float, *, by: float = 2.0) -> float:
        return a / by

    assert (divide(4), divide(4, by=8)) == (2.0, 0.5)
    with pytest.raises(ZeroDivisionError) as caught:
        divide(1, by=0)
    assert caught.value.__context__ is None
    with pytest.raises(TypeError):
        divide()
    total = measurements()[divide.__qualname__]
    assert (total.calls, total.failed) == (4, 2)


def test_a_block_may_end_in_another_context_than_it_began() -> None:
    outer, block = measure("outer", show=False), measure("block", show=False)
    with outer:
        contextvars.copy_context().run(block.__enter__)
        block.__exit__(None, None, None)
        assert measurements()["block"].calls == 1
        block.__exit__(None, None, None)  # there is none left
        assert measurements()["block"].calls == 1
    assert measurements()["outer"].calls == 1


@pytest.mark.parametrize("own", [None, ValueError])
def test_an_error_of_the_gpu_that_is_told_at_the_end(
    monkeypatch: pytest.MonkeyPatch,
    own: type[Exception] | None,
    monitor: Monitor,  # noqa: F811
) -> None:
    class Cuda:
        syncs = 0

        def synchronize(self) -> None:
            self.syncs += 1
            if self.syncs > 1:
                raise RuntimeError("CUDA error: an illegal memory access was encountered")

    fake = Cuda()
    monkeypatch.setattr("gpulse.monitor.measure.cuda", lambda: fake)

    @measure("broken", sync=True, show=False)
    def broken() -> None:
        if own is not None:
            raise own

    with pytest.raises(own or RuntimeError):
        broken()
    assert measurements()["broken"].failed == 1
    assert monitor.ledger is not None
    assert not monitor.ledger.measuring  # the monitor would sample ten times per second for ever


def test_what_a_function_says_of_itself_is_kept() -> None:
    def train(epochs: int = 3) -> int:
        """Train."""
        return epochs

    measured: list[Any] = [quiet(train), measure(train), measure("named", show=False)(train)]
    for made in measured:
        assert (made.__name__, made.__doc__, made.__wrapped__) == ("train", "Train.", train)
        assert inspect.signature(made) == inspect.signature(train)


@pytest.mark.parametrize(
    ("kind", "is_kind"),
    [
        ("def f(): pass", lambda f: not inspect.isgeneratorfunction(f) and not inspect.iscoroutinefunction(f)),
        ("def f(): yield", inspect.isgeneratorfunction),
        ("async def f(): pass", inspect.iscoroutinefunction),
        ("async def f(): yield", inspect.isasyncgenfunction),
    ],
)
def test_a_function_stays_of_its_kind(kind: str, is_kind: Callable[[Any], bool]) -> None:
    scope: dict[str, Any] = {}
    exec(kind, scope)
    assert is_kind(scope["f"])
    assert is_kind(quiet(scope["f"]))


def test_methods_of_every_kind() -> None:
    class Model:
        scale = 3

        @quiet
        def forward(self, x: int) -> int:
            return x * self.scale

        @classmethod
        @quiet
        def of(cls, x: int) -> int:
            return x * cls.scale

        @staticmethod
        @quiet
        def plain(x: int) -> int:
            return x

        @property
        @quiet
        def size(self) -> int:
            return self.scale

    model = Model()
    assert (model.forward(2), Model.of(2), model.plain(2), Model.plain(2), model.size) == (6, 6, 2, 2, 3)
    assert [total.name.rpartition(".")[2] for total in measurements()] == ["forward", "of", "plain", "size"]


def test_above_the_decorators_of_methods() -> None:
    class Model:
        scale = 3

        @quiet
        @classmethod
        def of(cls, x: int) -> int:
            return x * cls.scale

        @quiet
        @staticmethod
        def plain(x: int) -> int:
            """Return x."""
            return x

        def _size(self) -> int:
            """The size."""
            return self.scale

        def _resize(self, value: int) -> None:
            self.scale = value

        size = quiet(property(_size, _resize))

        @quiet  # type: ignore[prop-decorator]
        @cached_property
        def once(self) -> int:
            return self.scale + 1

    model = Model()
    assert (Model.of(2), model.of(2), model.plain(2), Model.plain(2), model.size) == (6, 6, 2, 2, 3)
    assert (model.once, model.once) == (4, 4)
    model.size = 5
    assert model.size == 5
    assert (vars(Model)["size"].__doc__, Model.plain.__doc__) == ("The size.", "Return x.")
    counts = {total.name.rpartition(".")[2]: total.calls for total in measurements()}
    assert counts == {"of": 2, "plain": 2, "_size": 2, "once": 1}


def test_bare_above_the_decorators_of_methods(capsys: pytest.CaptureFixture[str]) -> None:
    class Model:
        @measure
        @classmethod
        def of(cls) -> str:
            return cls.__name__

        size = measure(property(lambda self: 3))

    assert (Model.of(), Model().size) == ("Model", 3)
    lines = capsys.readouterr().err.splitlines()
    assert [total.name.rpartition(".")[2] for total in measurements()] == ["of", "<lambda>"]
    assert len(lines) == 2


def test_one_measure_decorates_many_functions() -> None:
    each = measure(show=False)

    @each
    def first() -> int:
        return 1

    @each
    def second() -> int:
        return 2

    assert (first(), second(), first()) == (1, 2, 1)
    assert {total.name.rpartition(".")[2]: total.calls for total in measurements()} == {"first": 2, "second": 1}

    same = measure("same", show=False)
    assert same(lambda: 1)() + same(lambda: 2)() == 3
    assert measurements()["same"].calls == 2


def test_what_cannot_be_measured_is_told_at_once() -> None:
    wrong: Any = measure
    with pytest.raises(TypeError, match="measure takes a name or a function, not int"):
        wrong(3)


def test_a_callable_object() -> None:
    class Adder:
        def __call__(self, x: int) -> int:
            return x + 1

    assert measure(Adder(), show=False)(1) == 2
    assert measurements()["Adder"].calls == 1


def test_recursion_counts_every_call() -> None:
    @measure("factorial", show=False)
    def factorial(n: int) -> int:
        return 1 if n < 2 else n * int(factorial(n - 1))

    assert factorial(5) == 120
    assert measurements()["factorial"].calls == 5


# --- blocks


def test_a_block_lets_errors_pass_and_counts_them() -> None:
    with pytest.raises(KeyError), measure("block", show=False) as block:
        raise KeyError
    assert block.failed
    assert measurements()["block"].failed == 1


def test_one_measure_may_be_used_again_inside_itself_and_by_threads_at_once() -> None:
    again = measure("again", show=False)
    with again as outer:
        with again as inner:
            pass
        assert inner.elapsed > 0
        assert outer.elapsed == 0
    assert outer.elapsed > inner.elapsed > 0

    both_inside = threading.Barrier(2)
    first_is_out = threading.Event()
    found: dict[str, float] = {}

    def first() -> None:
        with again as mine:
            both_inside.wait()
        found["first"] = mine.elapsed
        first_is_out.set()

    def second() -> None:
        with again as mine:
            both_inside.wait()
            first_is_out.wait()
            found["second while inside"] = mine.elapsed
        found["second"] = mine.elapsed

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found["second while inside"] == 0
    assert found["first"] > 0
    assert found["second"] > 0
    assert measurements()["again"].calls == 4


def test_tasks_that_take_turns_in_one_measure_end_each_its_own() -> None:
    shared = measure("shared", show=False)

    async def task(leave: asyncio.Event, after: asyncio.Event) -> Any:
        with shared as mine:
            await leave.wait()
        after.set()
        return mine

    async def both() -> list[Any]:
        first, second, end = asyncio.Event(), asyncio.Event(), asyncio.Event()
        tasks = [asyncio.ensure_future(task(first, second)), asyncio.ensure_future(task(second, end))]
        await asyncio.sleep(0)
        first.set()
        return list(await asyncio.gather(*tasks))

    found = asyncio.run(both())
    assert all(mine.elapsed > 0 for mine in found)
    assert found[0] is not found[1]


def test_a_line_is_printed_unless_not_wanted(capsys: pytest.CaptureFixture[str]) -> None:
    with measure("told"):
        pass
    with measure("hidden", show=False):
        pass
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.split()[0] == "told"
    assert captured.err.count("\n") == 1


# --- all at once


def test_threads_and_nested_measures_do_not_disturb_each_other() -> None:
    @measure("inner", show=False)
    def inner(n: int) -> int:
        return n

    @measure("outer", show=False)
    def outer(n: int) -> int:
        return int(inner(n)) + int(inner(n))

    found: list[int] = []
    threads = [threading.Thread(target=lambda: found.extend(outer(n) for n in range(50))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(found) == sorted([2 * n for n in range(50)] * 4)
    assert (measurements()["outer"].calls, measurements()["inner"].calls) == (200, 400)
