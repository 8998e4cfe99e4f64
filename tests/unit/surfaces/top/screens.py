"""Screens to look at: the demo machine after some minutes under a standing clock, and odd ones."""

from __future__ import annotations

import functools

from gpulse.model.catalog import Gpu, Process
from gpulse.model.select import EVERYTHING
from gpulse.model.snapshot import Snapshot
from gpulse.present.theme import Theme
from gpulse.sampling.clock import ManualClock
from gpulse.sampling.sampler import Sampler
from gpulse.screen.grid import Grid
from gpulse.sources.simulated.source import SimulatedSource
from gpulse.surfaces.top.history import History
from gpulse.surfaces.top.layout import arrange
from gpulse.surfaces.top.panels import charts, gpus, rows
from gpulse.surfaces.top.state import ScreenSettings, State

NOW = 1_700_000_000.0
SAMPLES = 400
HINTS = [
    ("F1", "help"),
    ("/", "filter"),
    ("s", "sort"),
    ("k", "signal"),
    ("space", "pause"),
    ("t", "tree"),
    ("q", "quit"),
]


@functools.cache
def watched() -> tuple[History, Snapshot]:
    """Return the demo machine as seen once a second for some minutes, and its last sample."""
    clock = ManualClock(NOW)
    sampler = Sampler(SimulatedSource(clock=clock.monotonic), EVERYTHING, clock=clock).open()
    history = History(["utilization", "sm_active", "memory_percent", "power_draw", "temperature", "memory_used"])
    sample = sampler.read()
    for _ in range(SAMPLES):
        clock.sleep(1.0)
        sample = sampler.read()
        history.add(sample)
    return history, sample


def screen(columns: int, rows: int, sample: Snapshot | None = None, unicode: bool = True) -> State:
    """Return the state of a screen of this size."""
    history, newest = watched()
    state = State(ScreenSettings(), history, Theme(0, unicode))
    state.columns, state.rows = columns, rows
    state.live = state.shown = sample or newest
    state.now = state.live.time
    return state


def machine(count: int) -> Snapshot:
    """Return the demo machine with that many GPUs."""
    sample = watched()[1]
    rows = tuple(sample.gpus[at % len(sample.gpus)].replace(index=at) for at in range(count))
    return Snapshot(sample.time, rows, sample.host, sample.driver)


def troubled() -> Snapshot:
    """Return a machine with every kind of trouble, a divided GPU and one with a fan."""
    sample = watched()[1]
    now = sample.time
    name = "NVIDIA H100 80GB HBM3"
    parts = tuple(
        Gpu(
            {
                "index": at,
                "name": f"MIG {size}g.{size * 10}gb",
                "memory_used": used << 30,
                "memory_total": (size * 10) << 30,
                "memory_percent": 10.0 * used / size,
                "sm_active": 12.5 * at,
            },
            {"utilization": "unsupported"},
            processes=(Process({"pid": 70 + at, "user": "ada", "name": "python", "memory_used": used << 30}),),
        )
        for at, (size, used) in enumerate(((3, 21), (2, 0), (1, 10)))
    )
    gpus_ = (
        sample.gpus[0],
        Gpu({"index": 1, "name": name}, state="lost", since=now - 725),
        Gpu({"index": 2, "name": name, "xid_last": 79}, state="lost", since=now),
        Gpu({"index": 3, "name": name}, state="timeout", since=now - 45),
        Gpu({"index": 4, "name": name}, state="asleep", since=now - 90_000),
        Gpu({"index": 5, "name": name}, {"utilization": "denied", "memory_used": "denied", "temperature": "denied"}),
        Gpu(
            {
                "index": 6,
                "name": "NVIDIA GeForce RTX 4090",
                "utilization": 99,
                "fan_speed": 45,
                "memory_used": 40 << 30,
                "memory_total": 80 << 30,
                "memory_percent": 50.0,
                "memory_unattributed": 40 << 30,
                "ecc_uncorrected": 2,
                "temperature": 91,
                "throttle_reasons": ("hw_slowdown", "hw_thermal_slowdown"),
                "clock_sm": 345,
            },
            {"sm_active": "pending"},
        ),
        Gpu(
            {
                "index": 7,
                "name": "NVIDIA A100-SXM4-80GB",
                "memory_used": 31 << 30,
                "memory_total": 80 << 30,
                "memory_percent": 38.8,
                "temperature": 44,
                "power_draw": 180.0,
                "power_limit": 400.0,
            },
            {"utilization": "unsupported"},
            instances=parts,
        ),
    )
    return Snapshot(now, gpus_, sample.host, sample.driver)


def painted(state: State) -> Grid:
    """Return a screen with every panel of this room on it; the processes and events stay blank."""
    grid = Grid(state.columns, state.rows)
    areas = arrange(state)
    rows.paint_header(grid, areas["header"], state)
    gpus.paint(grid, areas["gpus"], state)
    charts.paint(grid, areas["charts"], state)
    rows.paint_host(grid, areas["host"], state)
    rows.paint_footer(grid, areas["footer"], state, HINTS)
    return grid
