"""The arguments of a Monitor, checked when it is made."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from gpulse import Monitor
from gpulse.errors import UsageError
from gpulse.monitor.arguments import folder_beside, sinks_of
from gpulse.sinks import CallableSink, CsvSink, JsonlSink, Sink, TensorBoardSink
from gpulse.sinks.base import BUILT_IN, BorrowedSink


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder."""
    folder = tmp_path / "here"
    folder.mkdir()
    monkeypatch.chdir(folder)
    return folder


def kinds(given: Any) -> list[type]:
    return [type(sink) for sink in sinks_of(given)]


def test_functions_paths_names_and_sinks(tmp_path: Path) -> None:
    sink = CsvSink(tmp_path / "a.csv")
    assert sinks_of(sink) == [sink]
    assert sinks_of((sink, sink)) == [sink, sink]
    assert kinds(()) == []
    assert kinds(print) == [CallableSink]
    assert kinds([print, lambda *_: None]) == [CallableSink, CallableSink]
    assert kinds("gpu.csv") == kinds("gpu.CSV") == kinds("csv:gpu.csv") == kinds(Path("out/gpu.CSV")) == [CsvSink]
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


def test_an_unknown_name_may_be_meant_as_a_folder(here: Path) -> None:
    spelled = "write tensorboard:{0} or ./{0} for a folder of TensorBoard, or choose one of csv, "
    for _ in range(2):  # the folder makes no difference
        with pytest.raises(UsageError, match=f"^unknown sink 'tbr'; {spelled.format('tbr')}"):
            sinks_of("tbr")
        with pytest.raises(
            UsageError, match=rf"^unknown sink 'wanb' \(did you mean 'wandb'\?\); {spelled.format('wanb')}"
        ):
            sinks_of("wanb")
        assert kinds("./tbr") == kinds("tensorboard:tbr") == kinds(Path("tbr")) == [TensorBoardSink]
        (here / "tbr").mkdir(exist_ok=True)
    with pytest.raises(UsageError, match="unknown sink 'tbr:x'; choose one of"):
        sinks_of("tbr:x")


@pytest.mark.parametrize("there", ["nothing", "folder", "file"])
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_name_is_a_sink_whatever_the_current_folder_has(name: str, there: str, here: Path) -> None:
    _, kind, needs = BUILT_IN[name]
    if there == "folder":
        (here / name).mkdir()
    elif there == "file":
        (here / name).touch()
    if needs and not needs.startswith("["):
        with pytest.raises(UsageError, match=f"^the sink '{name}' needs a file; write it as {name}:{needs}"):
            sinks_of(name)
        assert [made.__name__ for made in kinds(f"{name}:out")] == [kind]
    else:
        assert [made.__name__ for made in kinds(name)] == [kind]
    assert kinds(f"./{name}") == kinds(f"{name}/") == kinds(f"tensorboard:{name}") == [TensorBoardSink]


@pytest.mark.parametrize("there", [False, True])
def test_the_name_of_a_plug_in_is_a_sink_whatever_the_current_folder_has(
    there: bool, here: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "acme-1.dist-info").mkdir()
    (tmp_path / "acme-1.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: acme\nVersion: 1\n")
    (tmp_path / "acme-1.dist-info" / "entry_points.txt").write_text("[gpulse.sinks]\nacmelog = acme:Log\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    if there:
        (here / "acmelog").mkdir()
    assert [sink.name for sink in sinks_of("acmelog")] == ["acmelog"]
    assert kinds("acmelog") == [BorrowedSink]


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
