"""Rebuilding: snapshots from rows, for replays and reports."""

from __future__ import annotations

from ...model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, SERVER_METRICS, Gpu, Host, Process, Server
from ...model.codec import STATES
from ...model.metric import Flag, Number, Numbers, Words
from ...model.snapshot import Snapshot
from .answers import TEXTS, latest_facts
from .columns import PROCESSES, SERVING
from .fetching import fetch
from .slots import MOST_PROCESSES

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Mapping
    from typing import Any

    from ...model.metric import Metric, Value
    from .damage import Damage

STRETCH = 600.0  # seconds rebuilt at once; of rows that stand for at least a minute, 36 times as many
_PROCESSES = """
SELECT process.gpu, first, last, seconds, memory_seconds, pid, started, user, name, command, job, container, pod,
project, job_name FROM usage JOIN process ON process.id = usage.process LEFT JOIN label ON label.id = process.id
WHERE last >= ? AND first < ? AND pid >= 0
"""


def rebuilt(
    connection: sqlite3.Connection, start: float, end: float, damages: list[Damage], width: float = 0.0
) -> list[Snapshot]:
    """Return the snapshots of a stretch of time, about `width` seconds apart; what is damaged is added to `damages`."""
    fetched = fetch(connection, None, start, end, width, damages)
    if fetched is None:
        return []
    keys = dict(connection.execute("SELECT id, key FROM slot"))
    facts = {gpu: (uuid, _named(uuid)) for gpu, uuid in connection.execute("SELECT id, uuid FROM gpu")}
    facts |= {gpu: (uuid, known) for gpu, uuid, known in latest_facts(connection, end)}
    users = connection.execute(_PROCESSES, (start, end)).fetchall()
    columns = [
        (gpu, [(keys[slot], column.mean) for slot, column in slots.items() if slot in keys])
        for gpu, slots in fetched.rows.parts.items()
    ]
    # a GPU whose values are damaged must not look like one that was removed
    holes = [(damage.start, damage.stop) for damage in damages if damage.gpu is not None]
    return [
        _snapshot(time, {gpu: _there(values, at) for gpu, values in columns}, facts, users)
        for at, time in enumerate(fetched.rows.times)
        if not any(first <= time <= last for first, last in holes)
    ]


def _named(uuid: str) -> dict[str, Any]:
    """Return what is known of a GPU whose facts are damaged: its UUID, if it is one."""
    return {"uuid": uuid} if uuid.startswith(("GPU-", "MIG-")) else {}


def _there(columns: list[tuple[str, Any]], at: int) -> dict[str, float]:
    return {key: value for key, mean in columns if (value := mean[at]) == value}


def _snapshot(
    time: float,
    parts: Mapping[int, dict[str, float]],
    facts: Mapping[int, tuple[str, dict[str, Any]]],
    users: list[tuple[Any, ...]],
) -> Snapshot:
    gpus: dict[str, Gpu] = {}
    instances: dict[str, list[Gpu]] = {}
    host = Host(_values(parts.get(0, {}), HOST_METRICS) | _known(facts.get(0, ("", {}))[1], HOST_METRICS))
    servers: list[Server] = []
    for number, numbers in parts.items():
        if facts.get(number, ("",))[0].startswith(SERVING):
            if numbers:
                servers.append(Server(_known(facts[number][1], SERVER_METRICS) | _values(numbers, SERVER_METRICS)))
            continue
        if number == 0 or "state" not in numbers:  # no state: it was not there
            continue
        uuid, known = facts.get(number, ("", {}))
        figures = _figures(numbers)
        gpu = Gpu(
            _known(known, GPU_METRICS) | _values(numbers, GPU_METRICS),
            state=STATES[min(round(numbers["state"]), len(STATES) - 1)],
            processes=tuple(
                _process(user, time, figures.get(user[5], {}))
                for user in users
                if user[0] == number and user[1] <= time <= user[2]
            ),
        )
        if "parent" in known:
            instances.setdefault(known["parent"], []).append(gpu)
        else:
            gpus[uuid] = gpu
    whole = [
        Gpu(dict(gpu.items()), state=gpu.state, processes=gpu.processes, instances=tuple(instances.get(uuid, ())))
        for uuid, gpu in gpus.items()
    ]
    whole.sort(key=lambda gpu: (gpu.index is None, gpu.index or 0))
    return Snapshot(time, tuple(whole), host, serving=tuple(servers))


def _values(numbers: dict[str, float], metrics: Mapping[str, Metric]) -> dict[str, Value]:
    """Return numbers as the catalog's types; what this version does not know is left out."""
    values: dict[str, Value] = {}
    for key, number in numbers.items():
        metric = metrics.get(key)
        if isinstance(metric, Number):
            values[key] = number
        elif isinstance(metric, Flag):
            values[key] = number >= 0.5
        elif isinstance(metric, Words):
            start = f"{key}:"
            values[key] = tuple(
                word.removeprefix(start) for word, share in numbers.items() if word.startswith(start) and share >= 0.5
            )
        elif isinstance(metric, Numbers):
            values[key] = tuple(numbers[at] for place in range(round(number)) if (at := f"{key}:{place}") in numbers)
    return values


def _known(facts: Mapping[str, Any], metrics: Mapping[str, Metric]) -> dict[str, Value]:
    return {key: tuple(value) if isinstance(value, list) else value for key, value in facts.items() if key in metrics}


def _figures(numbers: dict[str, float]) -> dict[float, dict[str, Value]]:
    """Return the figures of the processes of a GPU by PID; the state is the one that held longest."""
    found: dict[float, dict[str, Value]] = {}
    for rank in range(MOST_PROCESSES):
        start, state = f"{PROCESSES}:{rank}:", f"{PROCESSES}:{rank}:thread_state:"
        if (pid := numbers.get(f"{start}pid")) is None:
            break
        shares = {key.removeprefix(state): share for key, share in numbers.items() if key.startswith(state)}
        values: dict[str, Value] = {
            name: number
            for key, number in numbers.items()
            if key.startswith(start) and (name := key.removeprefix(start)) in PROCESS_METRICS
        }
        if shares:
            values["thread_state"] = max(shares, key=lambda word: shares[word])
        found[pid] = values
    return found


def _process(user: tuple[Any, ...], time: float, figures: dict[str, Value]) -> Process:
    _, _, _, seconds, memory, pid, started, *texts = user
    values: dict[str, Value] = {"pid": pid}
    values |= {key: text for key, text in zip(TEXTS, texts, strict=True) if text is not None and key in PROCESS_METRICS}
    if memory is not None and seconds:
        values["memory_used"] = memory / seconds
    if started is not None:
        values["running_time"] = max(0.0, time - started)
    return Process(values | figures)
