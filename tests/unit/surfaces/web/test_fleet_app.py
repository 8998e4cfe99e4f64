"""Tests for the app of a fleet: its answers, its stream, and the same access control as for one machine."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from gpulse.live import fleet
from gpulse.live.fleet import SILENT, FleetHub
from gpulse.model.catalog import Gpu, Process
from gpulse.model.fleet import FleetSnapshot, HostReport
from gpulse.model.serving import Tariff
from gpulse.model.snapshot import Snapshot
from gpulse.remote.fleet import Fleet
from gpulse.remote.settings import Refused
from gpulse.surfaces.web.access import Hosts
from gpulse.surfaces.web.gate import ServerSettings
from gpulse.surfaces.web.server import make_fleet_app
from tests.unit.surfaces.web.asking import START, TOKEN, Answer, ask

HOSTILE = "gpu\x1b[2J<img src=x>"


def gpu(index: int, busy: float | None, user: str = "", state: Any = "ok") -> Gpu:
    values: dict[str, Any] = {
        "index": index,
        "uuid": f"GPU-{index}",
        "name": "NVIDIA H100",
        "memory_total": 80.0 * 2**30,
        "memory_used": 0.0,
    }
    if busy is not None:
        values["utilization"] = busy
    processes = (Process({"pid": 1, "user": user, "name": "python", "job": "slurm:1"}),) if user else ()
    return Gpu(values, {}, state=state, processes=processes)


def snapshot(at: float = 0.0) -> FleetSnapshot:
    busy = Snapshot(START + at, (gpu(0, 90.0, "ada"), gpu(1, 0.0)))
    lost = Snapshot(START + at, (gpu(0, None, state="lost"), gpu(1, 40.0, "bob")))
    machines = (
        HostReport("box1", "url", "ok", busy, 1.0, link="http://box1:9440/"),
        HostReport(HOSTILE, "ssh", "ok", lost, 1.0),
        HostReport("dead", "ssh", "unreachable", None, None, "no route \x1b[31m"),
    )
    return FleetSnapshot(START + at, machines, ({"box1": {1: {"user": "eve", "job": "slurm:9"}}},))


@pytest.fixture
def hub() -> FleetHub:
    made = FleetHub(Fleet([], 5.0), Tariff(gpu_price=2.0, currency="EUR"))
    made.add(snapshot())
    made.add(snapshot(5.0))
    return made


def asked(hub: FleetHub, path: str, **headers: Any) -> Answer:
    settings = ServerSettings(TOKEN, Hosts(["localhost", "127.0.0.1"]))
    return ask(make_fleet_app(hub, settings), path, **headers)


def test_the_overview_has_one_byte_per_gpu_and_one_letter_per_machine(hub: FleetHub) -> None:
    found = asked(hub, "/api/overview").json
    assert list(base64.b64decode(found["map"])) == [90, 0, SILENT, 40]
    assert found["states"] == "oou"
    assert [count for _, count in found["hosts"]] == [2, 2, 0]
    assert (found["funnel"]["total"], found["funnel"]["allocated"], found["funnel"]["down"]) == (4, 2, 1)
    assert found["server"]["currency"] == "EUR"


def test_the_map_keeps_its_shape_while_a_machine_is_away(hub: FleetHub) -> None:
    layout = hub.layout
    gone = [HostReport(one.name, one.source, "stale", None, 60.0) for one in snapshot().hosts]
    hub.add(FleetSnapshot(START + 10, tuple(gone)))
    assert hub.layout == layout
    assert list(base64.b64decode(hub.overview()["map"])) == [255] * 4
    hub.add(FleetSnapshot(START + 15, tuple(gone[:2])))
    assert hub.layout == layout + 1


def test_text_of_other_machines_is_clean_wherever_it_is(hub: FleetHub) -> None:
    for path in ("overview", "problems", "table?by=host", "table?by=gpu", "heat", "usage?by=host"):
        answer = asked(hub, f"/api/{path}")
        assert answer.status == 200, path
        assert "\\u001b" not in answer.body.decode(), path


def test_problems_name_their_machine_the_worst_first(hub: FleetHub) -> None:
    problems = asked(hub, "/api/problems").json["problems"]
    told = {(one["host"], one["severity"]) for one in problems}
    assert ("dead", "critical") in told
    assert any("lost" in one["text"] for one in problems)


def test_tables_are_filtered_sorted_and_cut(hub: FleetHub) -> None:
    rows = asked(hub, "/api/table?by=gpu&sort=-active&limit=1&offset=1").json
    assert (rows["total"], [row["active"] for row in rows["rows"]]) == (4, [40.0])
    found = asked(hub, "/api/table?by=gpu&filter=user:ada").json["rows"]
    assert [(row["host"], row["gpu"], row["users"]) for row in found] == [("box1", "0", ["ada"])]
    assert asked(hub, "/api/table?by=user&sort=name").json["rows"][0]["name"] == "ada"
    assert asked(hub, "/api/table?by=host&filter=dead").json["rows"][0]["state"] == "unreachable"
    unused = asked(hub, "/api/table?by=unused").json["rows"]
    assert [(row["host"], row["gpu"], row["user"], row["job"]) for row in unused] == [("box1", "1", "eve", "slurm:9")]


def test_what_is_missing_comes_last_in_any_order(hub: FleetHub) -> None:
    for sort in ("active", "-active"):
        rows = asked(hub, f"/api/table?by=host&sort={sort}").json["rows"]
        assert rows[-1]["name"] == "dead"


def test_free_gpus_are_whole_and_well(hub: FleetHub) -> None:
    assert [(row["host"], row["gpus"]) for row in asked(hub, "/api/free?memory=70GiB").json["rows"]] == [
        ("box1", ["1"])
    ]
    assert asked(hub, "/api/free?memory=90GiB").json["rows"] == []
    assert asked(hub, "/api/free?memory=much").status == 422


def test_one_machine_has_its_link_and_problems(hub: FleetHub) -> None:
    found = asked(hub, "/api/host?name=box1").json
    assert (found["host"]["link"], len(found["host"]["gpus"])) == ("http://box1:9440/", 2)
    assert asked(hub, "/api/host?name=nobody").status == 404
    assert asked(hub, "/api/host").status == 422


def test_history_and_map_over_time_say_since_when(hub: FleetHub) -> None:
    for at in range(10, 60, 5):
        hub.add(snapshot(float(at)))
    query = f"from={START}&to={START + 60}"
    found = asked(hub, f"/api/history?name=box1&{query}").json
    assert found["source"] == "memory"
    assert found["since"] is not None
    assert next(one for one in found["series"] if one["key"] == "utilization")["values"][0] == 90.0
    heat = asked(hub, f"/api/heat?{query}&points=4").json
    row = base64.b64decode(heat["map"])[: len(heat["times"])]
    assert 45 in row
    assert heat["memory_since"] == found["since"]


class DeadPast:
    """A Prometheus that cannot be reached."""

    def __init__(self) -> None:
        self.asked = 0

    def usage(self, times: object, step: object) -> object:
        self.asked += 1
        raise Refused("unreachable", "it does not answer")


def test_clients_of_a_history_that_does_not_answer_wait_for_it_once(
    hub: FleetHub, monkeypatch: pytest.MonkeyPatch
) -> None:
    past = DeadPast()
    monkeypatch.setattr(Fleet, "pasts", [past])

    def refused(hours: int) -> None:
        answer = asked(hub, f"/api/usage?from={START}&to={START + 3600 * hours}")
        assert (answer.status, answer.json["detail"]) == (502, "the history cannot be read: it does not answer.")

    for _ in range(3):
        refused(1)
    assert past.asked == 1
    monkeypatch.setattr(fleet, "_REFUSED", 0.0)
    refused(2)
    refused(2)
    assert past.asked == 3, "after a while it may be back"


def test_usage_has_hours_and_cost(hub: FleetHub) -> None:
    found = asked(hub, "/api/usage?by=user").json
    assert {row["name"] for row in found["rows"]} == {"ada", "bob"}
    assert found["rows"][0]["cost"] > 0
    assert found["counted_since"] is not None


def test_access_needs_the_token_and_a_known_host_name(hub: FleetHub) -> None:
    app = make_fleet_app(hub, ServerSettings(TOKEN, Hosts(["localhost"])))
    for path in ("/api/overview", "/api/stream", "/static/fleet.js", "/api/openapi.json"):
        assert ask(app, path, known=False).status == 401
    assert asked(hub, "/api/overview", host="evil.example").status == 400
    assert ask(app, "/healthz", known=False).status == 200
    assert ask(app, "/readyz", known=False).status == 200
    assert ask(app, "/api/table", method="POST").status == 405


def test_before_the_first_sample_it_says_so() -> None:
    empty = FleetHub(Fleet([], 5.0))
    assert asked(empty, "/api/overview").status == 503
    assert asked(empty, "/readyz").status == 503


@pytest.mark.parametrize(
    "path",
    ["overview", "snapshot", "problems", "table", "table?by=gpu", "table?by=unused", "free", "host?name=box1",
     "history?name=box1", "heat", "usage", "usage?by=day"],
)  # fmt: skip
def test_answers_have_the_documented_shape(hub: FleetHub, path: str) -> None:
    document = asked(hub, "/api/openapi.json").json
    question = document["paths"][f"/api/{path.partition('?')[0]}"]["get"]
    shape = question["responses"]["200"]["content"]["application/json"]["schema"]
    answer = asked(hub, f"/api/{path}").json
    Draft202012Validator({**shape, "components": document["components"]}).validate(answer)


def test_the_stream_tells_problems_only_when_they_change(hub: FleetHub) -> None:
    hub.add(snapshot(6.0))
    (entry,) = hub.after(hub.number - 1)
    events = [line for line in entry.data.decode().splitlines() if line.startswith("event:")]
    assert events == ["event: fleet"]
    tick = json.loads(entry.data.decode().partition("data: ")[2])
    assert tick["layout"] == hub.layout
