"""The batches of a loader: every batch is counted once, whoever counts it and however the loop ends."""

from __future__ import annotations

import gc
import io
import weakref
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.monitor.monitor import Monitor


@pytest.fixture
def monitor(monkeypatch: pytest.MonkeyPatch) -> Iterator[Monitor]:
    """A monitor that counts and does not sample, as on a second rank."""
    monkeypatch.setenv("LOCAL_RANK", "1")
    with Monitor(stderr=io.StringIO()) as running:
        yield running


def counted(monitor: Monitor) -> tuple[int, float]:
    """Return steps and items."""
    summary = monitor.summary()
    assert summary is not None
    return summary.steps, summary.items


def test_the_length_is_the_loaders(monitor: Monitor) -> None:
    assert len(monitor.batches([1, 2, 3])) == 3
    with pytest.raises(TypeError):
        len(monitor.batches(iter([1])))
    assert list(monitor.batches(iter([1, 2]))) == [1, 2]


def test_a_progress_bar_knows_the_total(monitor: Monitor) -> None:
    bars = pytest.importorskip("tqdm")
    bar = bars.tqdm(monitor.batches([1, 2, 3]), file=io.StringIO())
    assert bar.total == 3
    assert list(bar) == [1, 2, 3]
    for _ in bars.tqdm(monitor.batches([1, 2, 3]), file=io.StringIO()):
        break
    assert counted(monitor)[0] == 4


def test_one_loop_object_serves_many_epochs(monitor: Monitor) -> None:
    batches = monitor.batches([1, 2])
    assert [list(batches) for _ in range(3)] == [[1, 2]] * 3
    assert counted(monitor)[0] == 6


@given(
    batches=st.integers(1, 6), left_at=st.integers(0, 7), by_hand=st.sets(st.integers(0, 6)), items=st.integers(0, 9)
)
def test_every_batch_is_counted_once(batches: int, left_at: int, by_hand: set[int], items: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LOCAL_RANK", "1")
        with Monitor() as monitor:
            seen = 0
            for at, _ in enumerate(monitor.batches(range(batches), items=items)):
                seen += 1
                if at in by_hand:
                    monitor.step(items=items)
                if at == left_at:
                    break
            assert counted(monitor) == (seen, seen * items)


def test_an_error_in_the_loop_passes_and_its_batch_is_counted(monitor: Monitor) -> None:
    def train() -> None:
        for batch in monitor.batches([1, 2, 3]):
            if batch == 2:
                raise KeyError

    with pytest.raises(KeyError):
        train()
    assert counted(monitor)[0] == 2


def test_loops_inside_loops_count_each_for_themselves(monitor: Monitor) -> None:
    for _ in monitor.batches([1, 2]):
        for _ in monitor.batches([1, 2, 3]):
            monitor.step(items=10)
        for _ in monitor.batches([1]):
            pass
    assert counted(monitor) == (2 + 2 * 3 + 2 * 1, 60)


def test_a_step_of_another_monitor_is_not_this_ones(monitor: Monitor) -> None:
    with Monitor() as other:
        for _ in monitor.batches([1, 2]):
            other.step()
        assert (counted(monitor)[0], counted(other)[0]) == (2, 2)


def test_steps_belong_to_the_phase_of_the_loop(monitor: Monitor) -> None:
    with monitor.phase("train"):
        for _ in monitor.batches([1, 2, 3]):
            break
    summary = monitor.summary()
    assert summary is not None
    assert [(phase.name, phase.steps) for phase in summary.phases] == [("train", 1)]


def test_items_are_a_number_or_a_function_of_the_batch(monitor: Monitor) -> None:
    list(monitor.batches([[1, 2], [3]], items=len))
    assert counted(monitor) == (2, 3)
    list(monitor.batches([[1, 2], [3]], items=32))
    assert counted(monitor) == (4, 67)


def test_items_that_fail_cost_only_themselves(monitor: Monitor) -> None:
    assert list(monitor.batches([1, 2], items=lambda batch: 1 / 0)) == [1, 2]
    assert counted(monitor) == (2, 0)
    assert monitor.errors == 2
    assert list(monitor.batches([1], items="many")) == [1]  # type: ignore[arg-type]
    assert counted(monitor) == (3, 0)


def test_a_program_may_count_all_steps_itself(monitor: Monitor) -> None:
    for at in monitor.batches(range(8), steps=False):
        if at % 4 == 3:
            monitor.step()
    assert counted(monitor)[0] == 2


def test_step_0_adds_items_and_leaves_the_step_to_the_loop(monitor: Monitor) -> None:
    for _ in monitor.batches([1, 2]):
        monitor.step(0, items=5)
    assert counted(monitor) == (2, 10)


def test_a_batch_is_not_kept_while_the_next_one_is_loaded(monitor: Monitor) -> None:
    class Batch:
        pass

    alive: list[weakref.ref[Batch]] = []

    def loader() -> Iterator[Batch]:
        for _ in range(3):
            gc.collect()
            assert [ref() for ref in alive] == [None] * len(alive)
            batch = Batch()
            alive.append(weakref.ref(batch))
            yield batch
            del batch

    batches = iter(monitor.batches(loader()))
    for _ in range(3):
        next(batches)
    assert next(batches, None) is None
