"""A real MLflow store, read back through its client."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from gpulse.errors import GpulseError
from gpulse.sinks import MlflowSink
from tests.unit.readback import mlflow_rows
from tests.unit.samples import START, sample

mlflow: Any = None
TAG = "gpu0/utilization"
NAME = f"gpulse/{TAG}"


@pytest.fixture(scope="module", autouse=True)
def _mlflow() -> None:
    """Import it in the one worker that runs these tests, and not in all that collect them."""
    global mlflow
    mlflow = pytest.importorskip("mlflow")


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")  # the one store that mlflow-skinny has without a server
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (tmp_path / "store").as_uri())
    return mlflow.MlflowClient()


def test_the_run_of_the_thread_that_opened_is_written_from_another(client: Any) -> None:
    sink = MlflowSink()
    with mlflow.start_run() as run:
        sink.open()

        def monitor() -> None:
            for at in range(3):
                sink.write(sample(at, {TAG: at * 0.5}))

        thread = threading.Thread(target=monitor)
        thread.start()
        thread.join()
    sink.close()  # after its end, as a monitor around the run does
    run_id = run.info.run_id
    assert mlflow_rows(client, run_id) == [(0, {NAME: 0.0}), (1, {NAME: 0.5}), (2, {NAME: 1.0})]
    assert [metric.timestamp for metric in client.get_metric_history(run_id, NAME)] == [
        round((START + at) * 1000) for at in range(3)
    ]
    assert len(client.search_runs(["0"])) == 1


def test_training_steps_a_prefix_and_names_that_mlflow_refuses(client: Any) -> None:
    run_id = client.create_run("0").info.run_id
    sink = MlflowSink(run_id, step="train", prefix="p")
    sink.open()
    for second, step in enumerate((None, 4, 4, 9)):
        sink.write(sample(second, {"a(b)%": second * 1.0}, step=step))
    sink.close()
    assert mlflow_rows(client, run_id) == [(4, {"p/a_b__": 1.5}), (9, {"p/a_b__": 3.0})]


def test_points_go_in_few_calls_and_all_arrive(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = client.create_run("0").info.run_id
    sizes: list[int] = []
    real = mlflow.MlflowClient.log_batch

    def counted(self: Any, run_id: str, metrics: list[Any], **options: Any) -> None:
        sizes.append(len(metrics))
        real(self, run_id, metrics=metrics, **options)

    monkeypatch.setattr(mlflow.MlflowClient, "log_batch", counted)
    sink = MlflowSink(run_id)
    sink.open()
    for second in range(30):
        sink.write(sample(second, {f"tag{at}": float(second) for at in range(40)}))
    sink.close()
    assert sum(sizes) == 1200
    assert len(sizes) == 3
    assert len(mlflow_rows(client, run_id)) == 30


def test_a_call_that_fails_costs_what_it_carried(client: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    run_id = client.create_run("0").info.run_id
    sink = MlflowSink(run_id)
    sink.open()
    with monkeypatch.context() as broken:
        broken.setattr(mlflow.MlflowClient, "log_batch", lambda *_, **__: 1 / 0)
        sink.write(sample(0, {TAG: 1.0}))
        sink.write(sample(1, {TAG: 2.0}))
        with pytest.raises(ZeroDivisionError):
            sink.flush()
    sink.write(sample(2, {TAG: 3.0}))
    sink.close()
    assert mlflow_rows(client, run_id) == [(2, {NAME: 3.0})]


def test_the_lines_of_code_are_an_artifact_of_the_run(client: Any) -> None:
    run_id = client.create_run("0").info.run_id
    sink = MlflowSink(run_id)
    sink.open()
    sink.write(sample(0, {TAG: 1.0}))
    sink.summarize("| train.py:84 … |\n")
    sink.close()
    assert mlflow.artifacts.load_text(f"runs:/{run_id}/gpulse/code.md") == "| train.py:84 … |\n"
    assert mlflow_rows(client, run_id) == [(0, {NAME: 1.0})]


def test_no_run_is_said_with_its_remedy(client: Any) -> None:
    with pytest.raises(GpulseError, match=r"no MLflow run is active. Call mlflow.start_run\(\)"):
        MlflowSink().open()
