"""What sinks have written, read with the libraries of those who will read it."""

from __future__ import annotations

import csv
import json
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from gpulse.store.recording import read_recording

Row = tuple[float, dict[str, float]]  # where it lies on the sink's own axis, and its values by tag


def csv_rows(path: Path) -> list[Row]:
    if not path.exists():
        return []  # a sink without a sample leaves no file
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines, strict=True))
    assert all(None not in row and None not in row.values() for row in rows), "a row with more or fewer cells"
    tags = [tag for tag in (rows[0] if rows else ()) if tag not in ("time", "elapsed", "step", "phase")]
    return [(float(row["elapsed"]), {tag: float(row[tag]) for tag in tags if row[tag] != ""}) for row in rows]


def jsonl_rows(path: Path) -> list[Row]:
    if not path.exists():
        return []
    rows = []
    for snapshot, line in zip(read_recording(str(path)), path.read_text().splitlines(), strict=True):
        values = {f"gpu0/{key}": value for key, value in snapshot.gpus[0].items() if key != "index"}
        values |= {f"host/{key}": value for key, value in snapshot.host.items()}
        plain = json.loads(line)
        rows.append((plain["elapsed"], {**values, **plain.get("values", {})}))
    return rows


def curves(directory: Path | str) -> Any:
    """Return TensorBoard's own reader, loaded."""
    module = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    reader = module.EventAccumulator(str(directory), size_guidance={"scalars": 0})
    reader.Reload()
    return reader


def tensorboard_rows(directory: Path | str) -> list[Row]:
    reader = curves(directory)
    rows: dict[float, dict[str, float]] = {}
    for tag in reader.Tags()["scalars"]:
        steps = [point.step for point in reader.Scalars(tag)]
        assert steps == sorted(set(steps)), f"{tag}: a step twice, or backwards"
        for point in reader.Scalars(tag):
            rows.setdefault(point.step, {})[tag] = point.value
    return sorted(rows.items())


def wandb_history(directory: Path) -> list[dict[str, Any]]:
    """Return the rows of the finished offline run below a directory, `_step` among them."""
    return [
        {item.key or ".".join(item.nested_key): json.loads(item.value_json) for item in record.history.item}
        for record in _finished_run(directory)
        if record.HasField("history")
    ]


def wandb_alerts(directory: Path) -> list[tuple[str, str, str]]:
    """Return title, text and level of the alerts of the finished offline run below a directory."""
    alerts = [record.alert for record in _finished_run(directory) if record.HasField("alert")]
    return [(alert.title, alert.text, alert.level) for alert in alerts]


def wandb_summary(directory: Path) -> dict[str, Any]:
    """Return the summary of the finished offline run below a directory."""
    summaries = [record.summary for record in _finished_run(directory) if record.HasField("summary")]
    return {
        item.key or ".".join(item.nested_key): json.loads(item.value_json) for each in summaries for item in each.update
    }


def _finished_run(directory: Path) -> list[Any]:
    (path,) = directory.glob("wandb/offline-run-*/*.wandb")
    deadline = time.monotonic() + 20
    records = _wandb_records(path)
    while not any(record.HasField("exit") for record in records):  # finish() returns before the file is whole
        assert time.monotonic() < deadline, "the run was not finished"
        time.sleep(0.01)
        records = _wandb_records(path)
    return records


def _wandb_records(path: Path) -> list[Any]:
    proto = pytest.importorskip("wandb.proto.wandb_internal_pb2")
    return [proto.Record.FromString(data) for data in _log_records(path.read_bytes())]


def wandb_rows(directory: Path) -> list[Row]:
    rows = []
    for row in wandb_history(directory):
        values = {tag[7:]: value for tag, value in row.items() if tag.startswith("gpulse/")}
        if values:
            rows.append((values.pop("elapsed"), values))
    return rows


def _log_records(data: bytes) -> Iterator[bytes]:
    """Walk the records of a .wandb file: LevelDB's log format behind seven bytes."""
    at, record = 7, b""
    while at + 7 <= len(data):
        left = 32768 - at % 32768
        _, length, kind = struct.unpack_from("<IHB", data, at)
        if left < 7 or kind == 0:
            at += left
            continue
        record += data[at + 7 : at + 7 + length]
        at += 7 + length
        if kind in (1, 4):  # whole, or the last part
            yield record
            record = b""


def mlflow_rows(client: Any, run_id: str) -> list[Row]:
    rows: dict[float, dict[str, float]] = {}
    for tag in client.get_run(run_id).data.metrics:
        for metric in client.get_metric_history(run_id, tag):
            assert tag not in rows.setdefault(metric.step, {}), "a step twice"
            rows[metric.step][tag] = metric.value
    return sorted(rows.items())
