"""Since when something is wrong in a fleet: what the machine itself says, never when this computer began to watch."""

from __future__ import annotations

import http.server
import json
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import pytest

from gpulse.analysis.fleet import FleetWatch
from gpulse.live.fleet import fleet_problems
from gpulse.model.catalog import Gpu, Host
from gpulse.model.codec import to_line, to_plain
from gpulse.model.fleet import FleetSnapshot, HostReport
from gpulse.model.snapshot import Snapshot
from gpulse.present.theme import Theme
from gpulse.remote.fleet import Fleet
from gpulse.remote.samples import SampleReader
from gpulse.remote.settings import Url, UrlFeed, began_of
from gpulse.surfaces.fleet.view import fleet_view

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

NOW = 1_700_000_000.0
HOUR = 3600.0


def machine(at: float, lost_since: float | None, lost: bool = True) -> Snapshot:
    gpu = Gpu({"index": 0, "uuid": "GPU-1"}, state="lost" if lost else "ok", since=lost_since if lost else None)
    return Snapshot(at, (gpu,), Host({"name": "box"}))


def watched(
    samples: list[Snapshot], began: Mapping[tuple[str, str], tuple[float, float]] | None = None
) -> tuple[FleetSnapshot, Any]:
    """Watch a machine and return its last report and what is wrong with it."""
    watch, found, fleet = FleetWatch(), {}, FleetSnapshot(NOW, ())
    for sample in samples:
        report = HostReport("box", "url", "ok", sample, 1.0, began=began or {})
        fleet = FleetSnapshot(sample.time, (report,))
        found = dict(watch.add(fleet))
    return fleet, found


def lost(fleet: FleetSnapshot, found: Any) -> dict[str, Any]:
    (problem,) = [one for one in fleet_problems(fleet, found) if one["key"] == "lost"]
    return problem


def test_a_gpu_that_was_lost_before_we_watched_is_lost_since_the_machine_says() -> None:
    fleet, found = watched([machine(NOW + at, NOW - 3 * HOUR) for at in range(0, 60, 5)])
    assert lost(fleet, found)["since"] == NOW - 3 * HOUR
    text = "\n".join(line.render(Theme(), 120) for line in fleet_view(fleet, Theme(), 120, found))
    assert "for 3h" in text


def test_a_machine_that_does_not_know_leaves_it_open() -> None:
    fleet, found = watched([machine(NOW + at, None) for at in range(0, 60, 5)])
    assert lost(fleet, found)["since"] is None
    text = "\n".join(line.render(Theme(), 120) for line in fleet_view(fleet, Theme(), 120, found))
    assert " for " not in text


def test_what_began_while_we_watched_was_seen() -> None:
    before = [machine(NOW + at, None, lost=False) for at in range(0, 60, 5)]
    fleet, found = watched([*before, *(machine(NOW + at, NOW + 60) for at in range(60, 120, 5))])
    assert lost(fleet, found)["since"] == NOW + 60


def test_the_problems_of_the_machine_say_when_they_began_and_what_they_cost() -> None:
    told = {("lost", "GPU-1"): (NOW - 7 * HOUR, 7 * HOUR)}
    fleet, found = watched([machine(NOW + at, None) for at in range(0, 60, 5)], told)
    problem = lost(fleet, found)
    assert (problem["since"], problem["lost"]) == (NOW - 7 * HOUR, 7 * HOUR)


def test_a_machine_that_cannot_be_reached_has_no_begin() -> None:
    fleet = FleetSnapshot(NOW, (HostReport("box", "ssh", "unreachable", None, None, "no route"),))
    assert [one["since"] for one in fleet_problems(fleet, {})] == [None]


def test_over_ssh_the_recorder_that_we_started_has_not_seen_it_begin() -> None:
    reader = SampleReader("box")
    samples = [machine(NOW + at, NOW + 0.2) for at in range(3)] + [machine(NOW + 4, NOW + 4)]
    found = [shot for one in samples for shot in reader.feed(to_line(one).encode() + b"\n")]
    assert [shot.gpus[0].since for shot in found] == [None, None, None, NOW + 4]
    reader.close()


@pytest.mark.parametrize(
    ("problem", "expected"),
    [
        ({"key": "lost", "since": NOW - 60, "lost": 60.0, "uuids": ["GPU-1"]}, {("lost", "GPU-1"): (NOW - 60, 60.0)}),
        ({"key": "lost", "since": NOW - 60, "lost": 1e300, "uuids": ["GPU-1"]}, {("lost", "GPU-1"): (NOW - 60, 0.0)}),
        ({"key": "lost", "since": NOW + 60, "lost": 0, "uuids": ["GPU-1"]}, {}),
        ({"key": "lost", "since": -1e300, "lost": 0, "uuids": ["GPU-1"]}, {}),
        ({"key": "lost", "since": float("nan"), "lost": 0, "uuids": ["GPU-1"]}, {}),
        ({"key": "lost", "since": "yesterday", "uuids": ["GPU-1"]}, {}),
        ({"key": "lost", "since": None, "uuids": ["GPU-1"]}, {}),
        ({"key": "lost", "since": NOW - 60, "uuids": 7}, {}),
        ({"key": "lost", "since": NOW - 60, "uuids": []}, {}),
        (7, {}),
    ],
)
def test_problems_of_a_machine_are_checked(problem: object, expected: object) -> None:
    assert began_of(json.dumps({"problems": [problem]}).encode(), NOW) == expected


@contextmanager
def serving(answers: Mapping[str, object]) -> Iterator[str]:
    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self) -> None:
            body = json.dumps(answers.get(self.path)).encode()
            self.send_response(200 if self.path in answers else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *arguments: object) -> None:
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.parametrize("tells", [True, False])
def test_a_server_is_asked_for_its_problems_and_an_older_one_is_read_without(tells: bool) -> None:
    now = time.time()
    answers: dict[str, object] = {"/api/snapshot": to_plain(machine(now, None)) | {"time": now}}
    if tells:
        answers["/api/problems"] = {"problems": [{"key": "lost", "since": now - 60, "lost": 9.0, "uuids": ["GPU-1"]}]}
    with serving(answers) as url, Fleet([UrlFeed([Url(url)])]) as fleet:
        fleet.wait(30)
        (host,) = fleet.read().hosts
    assert host.state == "ok"
    assert dict(host.began) == ({("lost", "GPU-1"): (now - 60, 9.0)} if tells else {})
