"""What every sink owes a monitor, asked of each of them in the same words and read back by those who will read it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from gpulse.errors import GpulseError
from gpulse.sinks import (
    CallableSink,
    ClearmlSink,
    CometSink,
    CsvSink,
    JsonlSink,
    MlflowSink,
    Sink,
    SwanlabSink,
    TensorBoardSink,
    TrackioSink,
    WandbSink,
)
from tests.e2e.lab import ROOT
from tests.unit.readback import Row, csv_rows, jsonl_rows, mlflow_rows, tensorboard_rows, wandb_rows
from tests.unit.samples import sample

FIRST, SECOND, THIRD = {"gpu0/utilization": 50.0}, {"gpu0/utilization": 0.0}, {"gpu0/utilization": 100.0}


class Place:
    """A sink, what the program does of its own after each sample, and how to read what has arrived."""

    def __init__(self, sink: Sink, read: Callable[[], list[Row]], own: Callable[[], object] = lambda: None) -> None:
        self.sink = sink
        self.read = read
        self.own = own

    def take(self, *values: Mapping[str, float], phase: str = "") -> list[Row]:
        self.sink.open()
        for elapsed, each in enumerate(values):
            self.sink.write(sample(elapsed, each, step=elapsed, phase=phase))
            self.own()
        self.sink.close()
        return self.read()


def callable_place(folder: Path) -> Place:
    seen: list[Row] = []
    return Place(CallableSink(lambda values, step, time: seen.append((time, values))), lambda: seen)


def csv_place(folder: Path) -> Place:
    return Place(CsvSink(folder / "gpu.csv"), lambda: csv_rows(folder / "gpu.csv"))


def jsonl_place(folder: Path) -> Place:
    return Place(JsonlSink(folder / "gpu.jsonl"), lambda: jsonl_rows(folder / "gpu.jsonl"))


def tensorboard_place(folder: Path) -> Place:
    pytest.importorskip("tensorboard")
    sink = TensorBoardSink(folder)
    return Place(sink, lambda: tensorboard_rows(sink.directory) if sink.directory else [])


def torch_place(folder: Path) -> Place:
    writer = pytest.importorskip("torch.utils.tensorboard").SummaryWriter(str(folder))
    return Place(TensorBoardSink(writer=writer), lambda: writer.close() or tensorboard_rows(folder))


def tensorboardx_place(folder: Path) -> Place:
    writer = pytest.importorskip("tensorboardX").SummaryWriter(str(folder))
    return Place(TensorBoardSink(writer=writer), lambda: writer.close() or tensorboard_rows(folder))


def wandb_place(folder: Path, commit: bool = False) -> Place:
    wandb = pytest.importorskip("wandb")
    quiet = wandb.Settings(x_disable_stats=True, x_disable_meta=True, console="off", silent=True)
    folder.mkdir(exist_ok=True)
    run = wandb.init(mode="offline", dir=str(folder), settings=quiet, reinit="create_new")
    own = (lambda: None) if commit else (lambda: run.log({"loss": 1.0}))
    return Place(WandbSink(run, commit=commit), lambda: run.finish() or wandb_rows(folder), own)


def wandb_commit_place(folder: Path) -> Place:
    return wandb_place(folder, commit=True)


def mlflow_place(folder: Path) -> Place:
    mlflow = pytest.importorskip("mlflow")
    os.environ["MLFLOW_ALLOW_FILE_STORE"] = "true"  # the fixture puts the environment back
    os.environ["MLFLOW_TRACKING_URI"] = folder.as_uri()
    client = mlflow.MlflowClient()
    run_id = client.create_run("0").info.run_id

    def read() -> list[Row]:
        rows = mlflow_rows(client, run_id)
        assert all(tag.startswith("gpulse/") for _, values in rows for tag in values)
        return [(at, {tag.removeprefix("gpulse/"): value for tag, value in values.items()}) for at, values in rows]

    return Place(MlflowSink(run_id), read)


PLACES = [
    callable_place,
    csv_place,
    jsonl_place,
    tensorboard_place,
    torch_place,
    tensorboardx_place,
    wandb_place,
    wandb_commit_place,
    mlflow_place,
]


@pytest.fixture(params=PLACES, ids=lambda make: make.__name__.removesuffix("_place"))
def make(request: pytest.FixtureRequest) -> Iterator[Callable[[Path], Place]]:
    before = dict(os.environ)
    yield request.param
    os.environ.clear()
    os.environ.update(before)


def test_every_value_arrives_and_the_axis_only_grows(make: Callable[[Path], Place], tmp_path: Path) -> None:
    rows = make(tmp_path / "a").take(FIRST, SECOND, THIRD)
    assert [values for _, values in rows] == [FIRST, SECOND, THIRD]
    axis = [at for at, _ in rows]
    assert axis == sorted(set(axis))


def test_an_absent_value_stays_absent_and_a_zero_is_a_value(make: Callable[[Path], Place], tmp_path: Path) -> None:
    both = {"gpu0/utilization": 0, "host/cpu_percent": 0.0}
    rows = make(tmp_path / "a").take(both, {"gpu0/utilization": 0}, both)
    assert [values for _, values in rows] == [both, {"gpu0/utilization": 0}, both]


def test_a_tag_may_come_later(make: Callable[[Path], Place], tmp_path: Path) -> None:
    later = {"gpu0/power": 300.5, "gpu0/utilization": 25.0, "train/steps_per_second": 8.0}
    rows = make(tmp_path / "a").take(FIRST, later, SECOND)
    assert [values for _, values in rows] == [FIRST, later, SECOND]


def test_a_phase_may_be_any_text(make: Callable[[Path], Place], tmp_path: Path) -> None:
    rows = make(tmp_path / "a").take(FIRST, SECOND, phase='=1+1,"a"\r\n\x1b[31m\x00\u2028 né 量 \ud800')
    assert [values for _, values in rows] == [FIRST, SECOND]


def test_no_sample_at_all_is_no_trouble(make: Callable[[Path], Place], tmp_path: Path) -> None:
    place = make(tmp_path / "a")
    place.sink.open()
    place.sink.flush()
    place.sink.close()
    assert place.read() == []
    left = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in left if path.suffix in (".csv", ".jsonl") or path.stat().st_size == 0]


def test_closing_is_safe_twice_and_without_opening(make: Callable[[Path], Place], tmp_path: Path) -> None:
    place = make(tmp_path / "a")
    place.sink.close()
    rows = place.take(FIRST)
    place.sink.close()
    assert [values for _, values in rows] == [FIRST]


def test_it_may_serve_one_monitor_after_another(make: Callable[[Path], Place], tmp_path: Path) -> None:
    place = make(tmp_path / "a")
    for values in (FIRST, SECOND):
        place.sink.open()
        place.sink.write(sample(0, values, step=0))
        place.own()
        place.sink.close()
    assert place.read()[-1][1] == SECOND


def test_flushing_loses_and_doubles_nothing(make: Callable[[Path], Place], tmp_path: Path) -> None:
    place = make(tmp_path / "a")
    place.sink.open()
    for elapsed, values in enumerate((FIRST, SECOND, THIRD)):
        place.sink.write(sample(elapsed, values, step=elapsed))
        place.own()
        place.sink.flush()
        place.sink.flush()
    place.sink.close()
    assert [values for _, values in place.read()] == [FIRST, SECOND, THIRD]


def test_two_at_once_do_not_meet(make: Callable[[Path], Place], tmp_path: Path) -> None:
    one = make(tmp_path / "a")
    one.sink.open()
    one.sink.write(sample(0, FIRST, step=0))
    one.own()
    other = make(tmp_path / "b")
    assert [values for _, values in other.take(SECOND)] == [SECOND]
    one.sink.write(sample(1, THIRD, step=1))
    one.own()
    one.sink.close()
    assert [values for _, values in one.read()] == [FIRST, THIRD]


class Unreadable(dict[str, float]):
    """Values that fail whoever looks at them."""

    def _fail(self, *_: object) -> Any:
        raise OSError("lost")

    keys = items = __iter__ = __getitem__ = _fail


def test_a_sample_that_fails_costs_itself_only(make: Callable[[Path], Place], tmp_path: Path) -> None:
    place = make(tmp_path / "a")
    place.sink.open()
    for elapsed, values in enumerate((FIRST, Unreadable(), SECOND)):
        if isinstance(values, Unreadable):
            bad = sample(elapsed, {}, step=elapsed)
            bad.values = values
            with pytest.raises(OSError, match="lost"):
                place.sink.write(bad)
        else:
            place.sink.write(sample(elapsed, values, step=elapsed))
            place.own()
    place.sink.close()
    assert [values for _, values in place.read()] == [FIRST, SECOND]


class Without:
    """An import system that does not have some packages."""

    def __init__(self, packages: tuple[str, ...]) -> None:
        self.packages = packages

    def find_spec(self, name: str, *_: object) -> None:
        if name.partition(".")[0] in self.packages:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)


@pytest.mark.parametrize(
    ("make_sink", "packages"),
    [
        (TensorBoardSink, ("tensorboard", "tensorboardX")),
        (WandbSink, ("wandb",)),
        (MlflowSink, ("mlflow",)),
        (CometSink, ("comet_ml",)),
        (ClearmlSink, ("clearml",)),
        (SwanlabSink, ("swanlab",)),
        (TrackioSink, ("trackio",)),
    ],
    ids=lambda given: "" if isinstance(given, tuple) else given.name,
)
def test_a_package_that_is_missing_is_named(
    make_sink: type[Sink], packages: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.chdir(tmp_path)
    for name in [name for name in sys.modules if name.partition(".")[0] in packages]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setattr(sys, "meta_path", [Without(packages), *sys.meta_path])
    sink = make_sink()
    name = packages[0].replace("_", "-")
    with pytest.raises(GpulseError, match=f"^{name}[a-z-]* is not installed. Run `pip install {name}"):
        sink.open()
    sink.close()
    assert list(tmp_path.iterdir()) == []


def test_naming_a_sink_loads_no_package() -> None:
    code = """
import sys, gpulse.sinks as sinks
made = [sinks.TensorBoardSink("x"), sinks.WandbSink(), sinks.MlflowSink(), sinks.CsvSink("x"), sinks.JsonlSink("x"),
    sinks.CometSink(), sinks.ClearmlSink(), sinks.SwanlabSink(), sinks.TrackioSink(), sinks.AimSink(None)]
assert set(sinks.__all__) <= set(dir(sinks)) and all(getattr(sinks, name) for name in sinks.__all__)
loaded = {name.partition(".")[0] for name in sys.modules}
trackers = {"tensorboard", "tensorboardX", "wandb", "mlflow", "comet_ml", "clearml", "swanlab", "trackio", "aim"}
assert not loaded & (trackers | {"torch", "numpy", "typing", "logging"}), loaded
"""
    subprocess.run([sys.executable, "-S", "-c", code], env={"PYTHONPATH": f"{ROOT}/src"}, check=True, timeout=30)
