"""The arguments of a Monitor, checked when it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpulse import Monitor
from gpulse.errors import UsageError
from gpulse.monitor.arguments import folder_beside, sinks_of
from gpulse.sinks import CallableSink, CsvSink, JsonlSink, Sink, TensorBoardSink


def kinds(given: Any) -> list[type]:
    return [type(sink) for sink in sinks_of(given)]


def test_functions_paths_names_and_sinks(tmp_path: Path) -> None:
    sink = CsvSink(tmp_path / "a.csv")
    assert sinks_of(sink) == [sink]
    assert sinks_of((sink, sink)) == [sink, sink]
    assert kinds(()) == []
    assert kinds(print) == [CallableSink]
    assert kinds([print, lambda *_: None]) == [CallableSink, CallableSink]
    assert kinds("gpu.csv") == kinds("csv:gpu.csv") == kinds(Path("out/gpu.CSV")) == [CsvSink]
    assert kinds("runs/gpu.jsonl") == kinds("gpu.ndjson") == [JsonlSink]
    assert kinds("runs/a") == kinds("runs/v1.5") == kinds(str(tmp_path)) == kinds(tmp_path) == [TensorBoardSink]


def test_a_sink_that_does_not_inherit_from_ours() -> None:
    class Foreign:
        name = "foreign"
        path = "/data/run.txt"

        def open(self) -> None: ...
        def write(self, sample: object) -> None: ...
        def flush(self) -> None: ...
        def close(self) -> None: ...

    (sink,) = sinks_of(Foreign())  # type: ignore[arg-type]
    assert (sink.name, sink.processes, sink.stacks, sink.continued()) == ("foreign", (), False, "")
    sink.open()
    sink.summarize("what it cannot take")
    assert folder_beside([sink]) == "/data"
    sink.close()


@pytest.mark.parametrize("wrong", [5, None, [3], object(), CsvSink, [Sink]])
def test_anything_else_is_a_type_error_at_once(wrong: Any) -> None:
    with pytest.raises(TypeError, match=r"is not a sink|is a class"):
        Monitor(wrong)


@pytest.mark.parametrize("wrong", ["wandbb", "out/gpu.txt", "csv:"])
def test_a_text_that_names_no_sink_says_what_does(wrong: str) -> None:
    with pytest.raises(UsageError, match=r"choose|write it as"):
        Monitor(wrong)


def test_an_unknown_name_may_be_meant_as_a_folder() -> None:
    with pytest.raises(
        UsageError, match="unknown sink 'tbr'; write tensorboard:tbr for a folder of TensorBoard, or choose"
    ):
        sinks_of("tbr")
    with pytest.raises(UsageError, match=r"unknown sink 'wanb' \(did you mean 'wandb'\?\); choose one of"):
        sinks_of("wanb")


def test_what_verdicts_need_is_read_whatever_is_logged(tmp_path: Path) -> None:
    from gpulse.analysis.diagnosis.window import WANTED

    bare, logged = Monitor()._request(), Monitor(str(tmp_path / "gpu.csv"), metrics=["utilization"])._request()
    assert bare.asked_of_processes == logged.asked_of_processes >= {"memory_used", "sm_utilization", "user", "name"}
    assert WANTED.gpu <= bare.asked
    assert WANTED.gpu <= logged.asked


@pytest.mark.parametrize(
    "wrong",
    [
        {"run": ""},
        {"run": 7},
        {"run": "a\n"},
        {"run": "x" * 101},
        {"initial_step": -1},
        {"initial_step": True},
        {"shared": 3},
    ],
)
def test_what_a_run_cannot_have_is_told_at_once(wrong: dict[str, Any]) -> None:
    (name,) = wrong
    with pytest.raises(UsageError, match=f"^{name}="):
        Monitor(**wrong)
