"""Views on the whole screen: one GPU, and the host."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from gpulse.model.catalog import EVIDENCE, GPU_METRICS, HOST_VIEW, Gpu, Host
from gpulse.model.event import Event
from gpulse.model.snapshot import Snapshot
from gpulse.model.verdict import Diagnosis, Evidence, Verdict
from gpulse.surfaces.top.app import paint
from gpulse.surfaces.top.panels import views
from gpulse.surfaces.top.state import State, wanted
from tests.golden import check_golden
from tests.unit.surfaces.top.screens import machine, screen, troubled, watched

SIZES = ((80, 24), (120, 40), (200, 60))


@pytest.fixture(autouse=True)
def _utc(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


def _opened(columns: int, rows: int, sample: Snapshot | None = None, gpu: int = 4, view: str = "gpu") -> State:
    state = screen(columns, rows, sample)
    state.dialog, state.chart_gpu = view, gpu
    return state


def _host() -> Snapshot:
    sample = watched()[1]
    more: dict[str, Any] = {
        "context_switches": 310_000.0, "interrupts": 190_000.0, "processes_running": 35, "processes_blocked": 6,
        "memory_cached": 412 << 30, "swap_in": 0.0, "swap_out": 4e6, "major_faults": 2.0,
        "disk_names": ("nvme0n1", "sda"), "disk_reads": (2.1e9, 0.0), "disk_writes": (4e6, 1e3), "disk_busy": (97.0, 0.0),
        "port_names": ("mlx5_0/1", "eth0"), "port_states": ("active", "down"), "port_speeds": (5e10, 0.0),
        "port_errors": (0.0, 12.0), "port_rx": (1e9, 0.0), "port_tx": (2e9, 0.0),
        "top_pids": (2841.0, 31871.0, 40563.0), "top_users": ("root", "ada", "grace"),
        "top_commands": ("rsync -a /data backup:", "python train.py", "pt_data_worker\x1b[31m"),
        "top_cpu": (98.0, 97.0, 60.0), "top_memory": (float(1 << 30), float(11 << 30), float(1 << 28)),
        "top_roles": ("other", "gpu", "worker"),
    }  # fmt: skip
    host = Host({**dict(sample.host.items()), **more}, dict(sample.host.gaps))
    return Snapshot(sample.time, sample.gpus, host, sample.driver)


def _verdict(gpu: Gpu) -> Diagnosis:
    evidence = (Evidence("utilization", 33.0, 80.0, "below"),)
    verdict = Verdict("small_batch", "high", evidence, index=int(gpu.index or 0), uuid=gpu.uuid)
    return Diagnosis((verdict,), 0.0, 60.0, 60)


class TestGoldens:
    @pytest.mark.parametrize(("columns", "rows"), SIZES)
    @pytest.mark.parametrize("name", ["demo", "64", "mig", "lost"])
    def test_the_view_of_a_gpu(self, name: str, columns: int, rows: int) -> None:
        sample = {"demo": None, "64": machine(64), "mig": troubled(), "lost": troubled()}[name]
        state = _opened(columns, rows, sample, {"demo": 4, "64": 42, "mig": 7, "lost": 1}[name])
        state.events = [Event(state.now - 30, "throttled", ("4",), reasons=("sw_power_cap",))]
        check_golden(f"top/gpu-{name}-{columns}x{rows}", paint(state).text())

    @pytest.mark.parametrize(("columns", "rows"), SIZES)
    def test_the_view_of_the_host(self, columns: int, rows: int) -> None:
        state = _opened(columns, rows, _host(), view="host")
        check_golden(f"top/host-{columns}x{rows}", paint(state).text())

    def test_maximized_gpus_have_charts(self) -> None:
        state = screen(120, 40)
        state.enlarged = "gpus"
        check_golden("top/enlarged-gpus-120x40", paint(state).text())


class TestGpu:
    def test_every_metric_with_a_value_is_there(self) -> None:
        gpu = watched()[1].gpus[4]
        state = _opened(200, 300)
        text = "\n".join(paint(state).text())
        known = [metric for key in views.view_keys() if gpu.get(key) is not None for metric in [GPU_METRICS[key]]]
        missing = {metric.title[:20] for metric in known} - {
            title for title in (m.title[:20] for m in known) if title in text
        }
        assert missing <= {"Index", "Memory", "New XIDs", "Topology"}

    def test_minimum_and_mean_of_the_last_seconds(self) -> None:
        state = _opened(120, 200)
        gpu = views.viewed(state)
        assert gpu is not None
        assert gpu.index == 4
        past = state.history.last(4, "utilization", state.now - views.WINDOW, state.now)
        line = next(line for line in paint(state).text() if line.startswith("Utilization  "))
        assert f"{min(past):.0f} %" in line
        assert f"{sum(past) / len(past):.0f} %" in line

    def test_the_verdict_with_its_evidence(self) -> None:
        state = _opened(120, 60)
        gpu = views.viewed(state)
        assert gpu is not None
        state.diagnosis = _verdict(gpu)
        text = "\n".join(paint(state).text())
        assert "Evidence" in text
        assert "33 %" in text
        state.back = 5.0
        assert "Evidence" not in "\n".join(paint(state).text())

    def test_events_of_other_gpus_and_of_the_future_are_not_there(self) -> None:
        state = _opened(120, 200)
        state.events = [
            Event(state.now + 9, "throttled", ("4",), reasons=("sw_power_cap",)),
            Event(state.now - 9, "asleep", ("4",)),
            Event(state.now - 9, "lost", ("5",)),
        ]
        text = "\n".join(paint(state).text())
        assert "GPU 4 is asleep" in text
        assert "power cap" not in text
        assert "GPU 5" not in text

    def test_scrolling_ends_at_the_end(self) -> None:
        state = _opened(80, 24)
        state.choice = 10_000
        grid = paint(state)
        assert "↑" in "\n".join(grid.text())
        assert "↓" not in "\n".join(grid.text())
        assert state.choice < 200

    def test_its_metrics_are_read_only_while_it_is_open(self) -> None:
        state = screen(120, 40)
        assert "fp64_active" not in wanted(state).gpu
        state.dialog = "gpu"
        assert views.view_keys() <= wanted(state).gpu
        assert not any(GPU_METRICS[key].group == "details" for key in wanted(state).gpu.difference(EVIDENCE))


class TestHost:
    def test_processes_without_a_gpu_are_marked(self) -> None:
        grid = paint(_opened(120, 60, _host(), view="host"))
        row = next(at for at, line in enumerate(grid.text()) if "rsync" in line)
        at = "".join(grid.chars[row]).index("no GPU")
        assert grid.styles[row][at] == "warn"
        assert "\x1b" not in "".join(grid.text())

    def test_loader_workers_do_not_hide_who_starves_them(self) -> None:
        sample = _host()
        count = 30
        more: dict[str, Any] = {
            "top_pids": tuple(float(at) for at in range(count)), "top_users": ("ada",) * count,
            "top_commands": (*["pt_data_worker"] * (count - 1), "rsync"), "top_cpu": (*[90.0] * (count - 1), 40.0),
            "top_memory": (1e6,) * count, "top_roles": (*["worker"] * (count - 1), "other"),
        }  # fmt: skip
        host = Host({**dict(sample.host.items()), **more})
        text = "\n".join(paint(_opened(120, 60, Snapshot(sample.time, sample.gpus, host), view="host")).text())
        assert "rsync" in text

    def test_a_value_on_the_way_and_one_that_is_not_there(self) -> None:
        host = Host({}, {"top_pids": "pending", "disk_names": "unsupported", "swap_in": "unsupported"})
        text = "\n".join(paint(_opened(120, 60, Snapshot(1e9, (), host), view="host")).text())
        assert "measuring" in text
        assert "not available" in text

    def test_its_metrics_are_read_only_while_it_is_open(self) -> None:
        state = screen(120, 40)
        assert {*HOST_VIEW} & (wanted(state).host or frozenset()) == {"port_states"}  # which events need
        state.dialog = "host"
        assert {*HOST_VIEW} <= (wanted(state).host or frozenset())


@given(
    st.sampled_from(["gpu", "host"]),
    st.integers(1, 220),
    st.integers(1, 70),
    st.integers(0, 80),
    st.sampled_from([0, 1, 3, 4, 5, 7, 99]),
    st.booleans(),
)
@settings(max_examples=60, deadline=None)
def test_any_screen(view: str, columns: int, rows: int, choice: int, gpu: int, unicode: bool) -> None:
    state = screen(columns, rows, troubled() if gpu % 2 else _host(), unicode)
    state.dialog, state.chart_gpu, state.choice = view, gpu, choice
    grid = paint(state)
    assert (grid.columns, grid.rows) == (columns, rows)
    if not unicode:
        assert all(line.isascii() for line in grid.text())


def test_the_views_are_laid_out_in_up_to_three_columns() -> None:
    state = _opened(200, 60)
    gpu = views.viewed(state)
    assert gpu is not None
    assert [len(views.gpu_columns(gpu, state, cells)) for cells in (80, 120, 200)] == [1, 2, 3]
    assert len(views.host_columns(_host().host, state, 200)) == 3
