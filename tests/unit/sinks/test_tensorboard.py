"""TensorBoard's files as TensorBoard reads them."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from gpulse.errors import GpulseError, UsageError
from gpulse.sinks import Sample, TensorBoardSink
from tests.unit.readback import curves, tensorboard_rows
from tests.unit.samples import START, TEXTS, sample

pytest.importorskip("tensorboard")
TAG = "gpu0/utilization"


def own(folder: Path) -> dict[str, Any]:
    return {"logdir": folder}


def of_torch(folder: Path) -> dict[str, Any]:
    return {"writer": pytest.importorskip("torch.utils.tensorboard").SummaryWriter(str(folder / "gpulse"))}


def of_tensorboardx(folder: Path) -> dict[str, Any]:
    return {"writer": pytest.importorskip("tensorboardX").SummaryWriter(str(folder / "gpulse"))}


WRITERS = pytest.mark.parametrize("make", [own, of_torch, of_tensorboardx])
Make = Callable[[Path], dict[str, Any]]


def written(to: dict[str, Any], *samples: Sample, **options: Any) -> None:
    sink = TensorBoardSink(**to, **options)
    sink.open()
    for each in samples:
        sink.write(each)
    sink.close()
    if "writer" in to:
        to["writer"].close()


@WRITERS
def test_points_have_growing_steps_and_the_time_and_value_of_their_sample(make: Make, tmp_path: Path) -> None:
    written(make(tmp_path), *(sample(at + 0.5, {TAG: at * 12.5, "host/cpu_percent": 0}) for at in range(5)))
    reader = curves(tmp_path / "gpulse")
    points = reader.Scalars(TAG)
    assert [point.step for point in points] == [0, 1, 2, 3, 4]
    assert [point.wall_time for point in points] == [START + at + 0.5 for at in range(5)]
    assert [point.value for point in points] == [0, 12.5, 25, 37.5, 50]
    assert [point.value for point in reader.Scalars("host/cpu_percent")] == [0] * 5


@WRITERS
def test_training_steps_and_a_prefix(make: Make, tmp_path: Path) -> None:
    steps = enumerate([(None, 99.0), (10, 1.0), (10, 3.0), (25, 5.0)])
    samples = [sample(second, {TAG: value}, step=step) for second, (step, value) in steps]
    written(make(tmp_path), *samples, step="train", prefix="machine")
    assert tensorboard_rows(tmp_path / "gpulse") == [(10, {f"machine/{TAG}": 2.0}), (25, {f"machine/{TAG}": 5.0})]


def test_every_curve_says_what_it_is_also_one_that_comes_later(tmp_path: Path) -> None:
    written(own(tmp_path), sample(0, {TAG: 1.0}), sample(1, {TAG: 2.0, "gpu0/power": 3.0}), prefix="p")
    reader = curves(tmp_path / "gpulse")
    for tag in (TAG, "gpu0/power"):
        about = reader.SummaryMetadata(f"p/{tag}")
        assert about.summary_description == TEXTS[tag]
        assert (about.plugin_data.plugin_name, about.data_class) == ("scalars", 1)  # what the fast loader asks for


@WRITERS
def test_the_lines_of_code_are_a_text(make: Make, tmp_path: Path) -> None:
    to = make(tmp_path)
    sink = TensorBoardSink(**to)
    sink.open()
    sink.write(sample(0, {TAG: 1.0}))
    sink.write(sample(7, {TAG: 1.0}))
    sink.summarize("| train.py:84 … |")
    sink.close()
    if "writer" in to:
        to["writer"].close()
    reader = curves(tmp_path / "gpulse")
    (tag,) = reader.PluginTagToContent("text")
    (event,) = reader.Tensors(tag)
    assert tag.removesuffix("/text_summary") == "gpulse/code"  # the libraries' own writers append that
    assert (event.step, [each.decode() for each in event.tensor_proto.string_val]) == (7, ["| train.py:84 … |"])


def test_without_a_sample_the_lines_of_code_leave_nothing(tmp_path: Path) -> None:
    sink = TensorBoardSink(tmp_path / "runs")
    sink.open()
    sink.summarize("| train.py:84 … |")
    sink.close()
    assert not (tmp_path / "runs").exists()


def test_every_point_is_in_the_file_at_once(tmp_path: Path) -> None:
    sink, folder = TensorBoardSink(tmp_path), tmp_path / "gpulse"
    sink.open()
    for second in range(3):
        sink.write(sample(second, {TAG: 1.0}))
        assert [step for step, _ in tensorboard_rows(folder)] == [*range(second + 1)]
    sink.close()


@WRITERS
def test_samples_within_a_second_are_points_with_their_own_time(make: Make, tmp_path: Path) -> None:
    written(make(tmp_path), *(sample(at / 5, {TAG: at}) for at in range(10)))
    points = curves(tmp_path / "gpulse").Scalars(TAG)
    assert [point.wall_time for point in points] == [pytest.approx(START + at / 5) for at in range(10)]
    assert [point.step for point in points] == [*range(10)]


def test_a_run_without_a_sample_leaves_nothing(tmp_path: Path) -> None:
    sink = TensorBoardSink(tmp_path / "runs")
    sink.open()
    assert (tmp_path / "runs" / "gpulse").is_dir()
    sink.close()
    assert [*tmp_path.iterdir()] == []
    assert sink.directory is None


def test_every_run_has_a_directory_of_its_own(tmp_path: Path) -> None:
    sinks = [TensorBoardSink(tmp_path / "runs") for _ in range(3)]
    for sink in sinks:
        sink.open()
    for sink in sinks:
        sink.write(sample(0, {TAG: 1.0}))
        sink.close()
    assert [sink.directory for sink in sinks] == [str(tmp_path / "runs" / f"gpulse{end}") for end in ("", "-2", "-3")]
    assert all(len(tensorboard_rows(sink.directory or "")) == 1 for sink in sinks)


@pytest.mark.parametrize("library", ["torch.utils.tensorboard", "tensorboardX"])
def test_the_writer_of_the_program_stays_open(library: str, tmp_path: Path) -> None:
    writer = pytest.importorskip(library).SummaryWriter(str(tmp_path))
    sink = TensorBoardSink(writer=writer)
    sink.open()
    sink.write(sample(0, {TAG: 1.0}))
    sink.close()
    writer.add_scalar("loss", 0.5, 7)
    writer.close()
    assert len(list(tmp_path.iterdir())) == 1
    assert tensorboard_rows(tmp_path) == [(0, {TAG: 1.0}), (7, {"loss": 0.5})]


def test_tensorboardx_alone_will_do(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("tensorboardX")
    from gpulse.sinks import tensorboard
    from gpulse.sinks.base import load

    def without(module: str, package: str) -> Any:
        if package == "tensorboard":
            raise GpulseError("tensorboard is not installed.")
        return load(module, package)

    monkeypatch.setattr(tensorboard, "load", without)
    written(own(tmp_path), sample(0, {TAG: 1.0}), sample(1, {TAG: 2.0}))
    folder = tmp_path / "gpulse"
    assert tensorboard_rows(folder) == [(0, {TAG: 1.0}), (1, {TAG: 2.0})]
    assert curves(folder).SummaryMetadata(TAG).summary_description == TEXTS[TAG]


def test_a_logdir_or_a_writer(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="not both"):
        TensorBoardSink(tmp_path, writer=object())
    (tmp_path / "file").write_text("")
    with pytest.raises(GpulseError, match="cannot be created"):
        TensorBoardSink(tmp_path / "file").open()
