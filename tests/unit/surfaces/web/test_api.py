"""The API: what each question answers, and what it says to one that makes no sense."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import unquote_plus

import pytest

pytest.importorskip("starlette")

from prometheus_client.parser import text_string_to_metric_families

from gpulse.live.api import POINTS
from gpulse.live.hub import Hub
from gpulse.live.parameters import read, timestamp
from gpulse.live.past import Past
from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, Gpu, Process
from gpulse.model.codec import from_plain, time_text
from gpulse.model.condition import KINDS
from gpulse.model.event import Event
from gpulse.model.snapshot import Snapshot
from gpulse.store.history import HistoryWriter
from gpulse.surfaces.web.openapi import QUESTIONS
from tests.unit.analysis.diagnosis.machines import samples
from tests.unit.surfaces.web.asking import START, UUIDS, app_of, ask, hub_of, sample

EVIL = "</script><img src=x onerror=alert(1)>\x1b[31m"


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    path = str(tmp_path_factory.mktemp("history") / "history.db")
    with HistoryWriter(path) as writer:
        for number in range(100):
            if not 40 <= number < 60:
                writer.add(sample(number))
    past = Past(path)
    yield past
    past.close()


def test_the_snapshot_is_that_of_status_and_more() -> None:
    plain = ask(app_of(hub_of(2)), "/api/snapshot").json
    assert from_plain(plain | {"time": time_text(plain["time"])}).gpus == sample(1).gpus
    assert plain["schema"] == 1
    assert plain["alerts"] == plain["verdicts"] == plain["problems"] == []
    assert set(plain["server"]) == {"version", "started", "interval", "commands", "history"}
    assert plain["server"]["history"] is False


def test_what_is_wrong_now() -> None:
    hub = Hub(None, 1.0)
    for one in samples({"throttle_reasons": ("hw_thermal_slowdown",), "temperature": 92}, {}, seconds=20, interval=1.0):
        hub.add(one)
    plain = ask(app_of(hub), "/api/problems").json
    assert [(one["key"], one["gpus"], one["uuids"]) for one in plain["problems"]] == [
        ("thermal_throttled", ["0"], ["GPU-0"])
    ]
    assert plain["problems"] == ask(app_of(hub), "/api/snapshot").json["problems"]
    assert plain["time"] == one.time


def test_the_snapshot_follows_the_hub() -> None:
    hub = hub_of(1)
    app = app_of(hub)
    first = ask(app, "/api/snapshot").json["time"]
    assert ask(app, "/api/snapshot").json["time"] == first
    hub.add(sample(7))
    assert ask(app, "/api/snapshot").json["time"] != first


@pytest.mark.parametrize("path", ["/api/snapshot", "/api/processes", "/metrics", "/readyz"])
def test_before_the_first_sample_there_is_nothing_but_that_is_said(path: str) -> None:
    answer = ask(app_of(Hub(None, 1.0)), path)
    assert (answer.status, answer.headers["content-type"]) == (503, "application/problem+json")
    assert ask(app_of(Hub(None, 1.0)), "/healthz").status == 200


def test_processes_have_their_gpu() -> None:
    plain = ask(app_of(), "/api/processes").json
    assert plain["time"] == START
    (process,) = plain["processes"]
    assert (process["gpu"], process["uuid"], process["pid"], process["command"]) == (0, "GPU-0", 42, "python train.py")


@pytest.mark.parametrize("path", ["/api/snapshot", "/api/processes"])
def test_command_lines_can_be_off(path: str) -> None:
    answer = ask(app_of(hub_of(1, commands=False)), path)
    assert b"train.py" not in answer.body
    assert b"python" in answer.body


def test_the_catalog_is_the_catalog_without_what_nobody_samples() -> None:
    plain = ask(app_of(), "/api/metrics-catalog").json
    keys = [entry["key"] for entry in plain["gpu"]]
    assert keys == [key for key, metric in GPU_METRICS.items() if metric.group != "details"]
    assert [entry["key"] for entry in plain["host"]] == [
        key for key, metric in HOST_METRICS.items() if metric.group != "details"
    ]
    power = next(entry for entry in plain["gpu"] if entry["key"] == "power_draw")
    assert (power["unit"], power["symbol"], power["kind"]) == ("watts", "W", "gauge")
    fields = {"key", "title", "short", "unit", "symbol", "kind", "group", "help", "low", "high", "warn", "critical"}
    assert all(fields <= set(entry) for entries in plain.values() for entry in entries)


def test_history_gives_series_with_gaps_as_null(past: Past) -> None:
    app = app_of(past=past)
    query = f"metrics=utilization,temperature,host.cpu_percent&gpus=all&from={START}&to={START + 100}&points=100"
    plain = ask(app, f"/api/history?{query}").json
    assert (plain["from"], plain["to"]) == (START, START + 100)
    assert [(gpu["uuid"], gpu["index"], gpu["name"]) for gpu in plain["gpus"]] == [
        (uuid, at, "Scripted") for at, uuid in enumerate(UUIDS)
    ]
    series = {(one["uuid"], one["key"]): one for one in plain["series"]}
    assert set(series) == {
        *((uuid, key) for uuid in UUIDS for key in ("utilization", "temperature")),
        ("", "host.cpu_percent"),
    }
    times = plain["times"]
    one = series["GPU-0", "utilization"]
    assert "times" not in one
    assert len(times) == len(one["min"]) == len(one["mean"]) == len(one["max"])
    assert None in one["mean"]
    told = {round(time - START): value for time, value in zip(times, one["mean"], strict=True) if value is not None}
    assert told
    assert all(math.isclose(value, second, abs_tol=1.5) for second, value in told.items())
    assert not [second for second in told if 42 <= second < 58]


def test_history_of_one_gpu_is_of_that_one(past: Past) -> None:
    plain = ask(app_of(past=past), f"/api/history?metrics=utilization&gpus=GPU-1&from={START}&to={START + 100}").json
    assert [gpu["uuid"] for gpu in plain["gpus"]] == [one["uuid"] for one in plain["series"]] == ["GPU-1"]


def test_a_time_without_records_is_empty(past: Past) -> None:
    app = app_of(past=past)
    assert ask(app, "/api/history?gpus=GPU-1&from=1000&to=2000").json["series"] in ([], [*_empty(app)])
    early = ask(app, "/api/history?from=1000&to=2000").json
    assert early["gpus"] == []


def _empty(app: Any) -> Iterator[dict[str, Any]]:
    for series in ask(app, "/api/history?gpus=GPU-1&from=1000&to=2000").json["series"]:
        assert not [value for value in series["mean"] if value is not None]
        yield series


@pytest.mark.parametrize("path", ["history?", "usage?", "compare?", "history?metrics=power_draw&"])
def test_an_unknown_gpu_is_not_found(past: Past, path: str) -> None:
    answer = ask(app_of(past=past), f"/api/{path}gpus=GPU-1,GPU-9&from={START}&to={START + 100}")
    assert answer.status == 404
    assert answer.headers["content-type"] == "application/problem+json"
    assert "unknown GPU 'GPU-9'" in answer.json["detail"]


def test_a_gpu_that_is_new_has_no_history_yet(past: Past) -> None:
    hub = hub_of(1)
    hub.add(Snapshot(START + 200, (Gpu({"uuid": "GPU-new", "index": 7}),)))
    answer = ask(app_of(hub, past=past), f"/api/history?gpus=GPU-new&from={START}&to={START + 100}")
    assert answer.status == 200
    assert answer.json["series"] == []


def test_every_time_is_a_number_of_seconds() -> None:
    hub = hub_of(2)
    assert ask(app_of(hub), "/api/snapshot").json["time"] == pytest.approx(START + 1)
    document = ask(app_of(hub), "/api/openapi.json").json
    assert "seconds since 1970-01-01T00:00:00Z" in document["info"]["description"]
    assert "date-time" not in json.dumps(document["components"])
    schemas = document["components"]["schemas"]
    times = [
        schemas["Snapshot"]["properties"]["time"],
        schemas["Events"]["properties"]["events"]["items"]["properties"]["time"],
    ]
    assert times == [{"$ref": "#/components/schemas/Time"}] * 2


def test_who_was_there_is_told_from_the_history(tmp_path: Path) -> None:
    path = str(tmp_path / "history.db")
    process = Process({"pid": 7, "name": "python", "user": "ada", "command": "python --x", "memory_used": 5 << 30})
    with HistoryWriter(path) as writer:
        for second in range(3):
            writer.add(Snapshot(START + second, (Gpu({"uuid": "GPU-0", "index": 0}, processes=(process,)),)))
    query = f"/api/processes?from={START - 10}&to={START + 10}"
    (use,) = ask(app_of(past=Past(path)), query).json["uses"]
    assert (use["uuid"], use["pid"], use["user"], use["command"]) == ("GPU-0", 7, "ada", "python --x")
    assert START <= use["first"] < use["last"] <= START + 3
    (use,) = ask(app_of(hub_of(commands=False), past=Past(path)), query).json["uses"]
    assert "command" not in use
    assert ask(app_of(), query).status == 404


def test_reasons_can_be_asked_for_one_by_one(past: Past) -> None:
    answer = ask(
        app_of(past=past), f"/api/history?metrics=throttle_reasons:hw_slowdown,state&from={START}&to={START + 100}"
    )
    assert answer.status == 200
    assert {one["key"] for one in answer.json["series"]} >= {"state"}


def test_points_are_kept_within_what_fits(past: Past, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("gpulse.live.past._MOST_VALUES", 40)
    plain = ask(
        app_of(past=past), f"/api/history?metrics=utilization,temperature&from={START}&to={START + 100}&points=100"
    ).json
    assert 0 < len(plain["times"]) <= 12


@pytest.mark.parametrize(
    "query",
    ["points=0", f"points={POINTS + 1}", "points=1.5", "points=x", "points=", "points=1e400", "points=nan", "from=x", "from=-1", "to=1e12",
     "from=inf", "from=1_0", "from=20&to=10", "from=10&to=10", "metrics=nonsense", "metrics=", "metrics=utilization,,power_draw",
     "metrics=host.nonsense", "metrics=cpu_percent", "metrics=utilization:x", "metrics=throttle_reasons:", "gpus=", "gpus=a,,b",
     "gpus=a%20b",
     "gpus=%00", f"gpus={'x' * 101}", f"gpus={','.join(map(str, range(65)))}", "from=%D9%A1", "from=" + "1" * 70],
)  # fmt: skip
def test_parameters_that_make_no_sense_are_named(past: Past, query: str) -> None:
    answer = ask(app_of(past=past), f"/api/history?{query}")
    assert (answer.status, answer.headers["content-type"]) == (422, "application/problem+json")
    assert answer.json["detail"].partition(":")[0] in ("points", "from", "to", "metrics", "gpus")
    assert answer.json["title"].startswith("Unprocessable")


def test_without_a_history_that_is_said_and_events_come_from_memory() -> None:
    hub = hub_of(1)
    hub.add(sample(1, name="new"))
    hub.events.keep([Event(START + 1, "xid", ("0",), uuids=("GPU-0",), value=79.0)])
    app = app_of(hub)
    assert ask(app, "/api/history").status == 404
    query = f"from={START}&to={START + 10}"
    assert [event["kind"] for event in ask(app, f"/api/events?{query}").json["events"]] == ["xid"]
    assert ask(app, f"/api/events?{query}&kinds=lost").json["events"] == []
    assert ask(app, "/api/events?from=1&to=2").json["events"] == []


def test_events_come_from_the_history(past: Past) -> None:
    app = app_of(past=past)
    events = ask(app, f"/api/events?from={START - 10}&to={START + 200}").json["events"]
    assert {"start", "stop"} <= {event["kind"] for event in events}
    assert all(set(event) == {"time", "uuid", "uuids", "kind", "level", "text"} for event in events)
    only = ask(app, f"/api/events?from={START - 10}&to={START + 200}&kinds=stop").json["events"]
    assert {event["kind"] for event in only} == {"stop"}


def test_a_parameter_that_nobody_knows_is_named_and_not_ignored() -> None:
    answer = ask(app_of(), "/api/events?form=1")
    assert (answer.status, "'form'" in answer.json["detail"]) == (422, True)
    assert ask(app_of(), "/api/snapshot?x=1").status == 422


def test_a_history_that_cannot_be_read_is_a_503(tmp_path: Path) -> None:
    app = app_of(past=Past(str(tmp_path / "missing.db")))
    for path in ("/api/history", "/api/events"):
        assert ask(app, path).status == 503
    assert ask(app, "/api/snapshot").status == 200


def test_large_answers_are_packed_for_those_who_can_unpack() -> None:
    plain, packed = (
        ask(app_of(), "/api/metrics-catalog", accept_encoding=how) for how in ("identity", "gzip, deflate")
    )
    assert packed.headers["content-encoding"] == "gzip"
    assert len(packed.raw) < len(plain.raw) / 3
    assert packed.json == plain.json


def test_text_of_processes_stays_text() -> None:
    hub = Hub(None, 1.0)
    hub.add(sample(0, command=EVIL, name=EVIL))
    for path in ("/api/snapshot", "/api/processes"):
        answer = ask(app_of(hub), path)
        assert answer.headers["content-type"] == "application/json"
        assert EVIL in json.dumps(answer.json, ensure_ascii=False).encode().decode("unicode_escape")
    assert b"\x1b" not in hub.greeting()[1]


@pytest.mark.parametrize("path", ["/%3Cscript%3Ealert(1)%3C/script%3E", "/api/%3Cimg%3E", "/static/%3Cb%3E"])
def test_no_error_repeats_what_was_asked(path: str) -> None:
    answer = ask(app_of(), path, accept="text/html")
    assert answer.status == 404
    assert b"<" not in answer.body


def test_metrics_are_read_by_prometheus_own_parser() -> None:
    answer = ask(app_of(), "/metrics", known=False)
    assert answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    assert any(family.name == "gpulse_gpu_up" for family in text_string_to_metric_families(answer.body.decode()))


def test_metrics_may_come_from_elsewhere_and_know_what_is_accepted() -> None:
    answer = ask(app_of(metrics=lambda accept: (accept.encode(), "x/y")), "/metrics", accept="a/b")
    assert (answer.body, answer.headers["content-type"]) == (b"a/b", "x/y")


def test_readiness_ends_when_samples_stop() -> None:
    hub = hub_of(1)
    assert ask(app_of(hub), "/readyz").status == 200
    hub._seen -= 9
    answer = ask(app_of(hub), "/readyz")
    assert answer.status == 503
    assert re.fullmatch(r"the last sample is \d+ s old.", answer.json["detail"])
    assert ask(app_of(hub), "/metrics").status == 200


def test_every_path_is_in_the_openapi_document() -> None:
    plain = ask(app_of(), "/api/openapi.json").json
    assert set(plain["paths"]) == {
        *(question.path for question in QUESTIONS),
        "/api/stream",
        "/api/monitors",
        "/metrics",
        "/healthz",
        "/readyz",
    }
    named = {parameter["name"] for parameter in plain["paths"]["/api/history"]["get"]["parameters"]}
    assert named == {"metrics", "gpus", "from", "to", "points"}
    text = json.dumps(plain)
    for part in text.split('"#/components/schemas/')[1:]:
        assert part.partition('"')[0] in plain["components"]["schemas"]


def test_a_snapshot_of_the_past_is_what_was_recorded_then(past: Past) -> None:
    plain = ask(app_of(past=past), f"/api/snapshot?at={START + 30.4}").json
    gpu = plain["gpus"][0]
    assert plain["time"] == START + 30
    assert (gpu["utilization"], gpu["processes"][0]["pid"], plain["server"]["history"]) == (30, 42, True)
    assert plain["alerts"] == []


def test_nothing_was_recorded_during_an_outage(past: Past) -> None:
    answer = ask(app_of(past=past), f"/api/snapshot?at={START + 50}")
    assert (answer.status, answer.json["detail"]) == (404, "nothing was recorded at that time.")
    assert ask(app_of(), f"/api/snapshot?at={START}").status == 404


def test_command_lines_of_the_past_can_be_off(past: Past) -> None:
    hub = hub_of(1, commands=False)
    assert b"train.py" not in ask(app_of(hub, past=past), f"/api/snapshot?at={START + 30}").body


def test_an_outage_is_told_as_a_gap_even_in_a_short_answer(past: Past) -> None:
    for start, end in ((0, 100), (39, 61)):
        plain = ask(app_of(past=past), f"/api/history?metrics=utilization&from={START + start}&to={START + end}").json
        assert plain["gaps"] == [[START + 39, START + 60]]


@pytest.mark.parametrize(
    ("word", "expected"),
    [
        ("0", ["GPU-0"]),
        ("0-1", ["GPU-0", "GPU-1"]),
        ("1,GPU-0", ["GPU-1", "GPU-0"]),
        ("GPU-1,1", ["GPU-1"]),
        ("all", None),
    ],
)
def test_gpus_are_named_as_everywhere(past: Past, word: str, expected: list[str] | None) -> None:
    app = app_of(past=past)
    for path in ("history?metrics=utilization&", "usage?", "compare?"):
        assert ask(app, f"/api/{path}gpus={word}&from={START}&to={START + 100}").status == 200
    plain = ask(app, f"/api/history?metrics=utilization&gpus={word}&from={START}&to={START + 100}").json
    assert {series["uuid"] for series in plain["series"]} == {*(expected or UUIDS)}


@pytest.mark.parametrize("word", ["7", "0-7", "GPU", "visible"])
def test_a_name_of_no_gpu_is_a_404(past: Past, word: str) -> None:
    answer = ask(app_of(past=past), f"/api/history?gpus={word}&from={START}&to={START + 100}")
    assert (answer.status, word in answer.json["detail"]) == (404, True)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("-1h", -3600.0),
        ("-90s", -90.0),
        ("-1h30m", -5400.0),
        ("now", 0.0),
        ("2001-09-09T01:46:40Z", 1e9),
        ("2001-09-09T02:46:40.5%2B01:00", 1e9 + 0.5),
        ("2001-09-09T02:46:40+01:00", 1e9),
        ("1000000000.25", 1e9 + 0.25),
    ],
)
def test_times_may_be_relative_or_rfc_3339(past: Past, text: str, expected: float) -> None:
    now = time.time()
    given = read([timestamp("at", "")], {"at": unquote_plus(text)})["at"]
    assert given == pytest.approx(expected if expected > 1e6 else now + expected, abs=5.0 if expected <= 0 else 1e-6)
    assert ask(app_of(past=past), f"/api/snapshot?at={text}").status in (200, 404)


@pytest.mark.parametrize(
    "text",
    ["-", "-600", "-x", "--1h", "-1h-", "yesterday", "2026-11-15", "2026-11-15T03:00:00", "2026-13-01T00:00:00Z"],
)
def test_what_is_no_time_is_refused(past: Past, text: str) -> None:
    assert ask(app_of(past=past), f"/api/events?from={text}").status == 422


def test_an_unknown_kind_is_refused_with_the_kinds_there_are(past: Past) -> None:
    for app in (app_of(past=past), app_of()):
        answer = ask(app, "/api/events?kinds=lost,foo")
        assert answer.status == 400
        assert "'foo'" in answer.json["detail"]
        assert all(kind in answer.json["detail"] for kind in KINDS)
        for kind in (*KINDS, "alert", "memory_leak"):
            assert ask(app, f"/api/events?kinds={kind}").status == 200, kind
