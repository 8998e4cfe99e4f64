"""Tests for the past of machines: range queries to a server with fixed answers, histories of gpulse, and Slurm's own words."""

from __future__ import annotations

import http.server
import json
import threading
from collections.abc import Iterator
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from gpulse.remote.past import PrometheusClient, PrometheusPast, UrlPast, granted
from gpulse.remote.settings import Refused, Url
from gpulse.sources.slurm import granted_gpus

TIMES = [1000.0, 1060.0, 1120.0]
_JOBS = """JobId=7 JobName=train
   UserId=ada(1000) GroupId=ada(1000) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
     Nodes=gpu[01-02] CPU_IDs=0-7 Mem=0 GRES=gpu:h100:2(IDX:0-1)
     Nodes=gpu03 CPU_IDs=0 Mem=0 GRES=gpu:h100:2(IDX:3,5)

JobId=8 JobName=cpu
   UserId=bob(1001) GroupId=bob(1001) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
     Nodes=gpu01 CPU_IDs=0 Mem=0 GRES=

JobId=9 JobName=old
   UserId=eve(1002) GroupId=eve(1002) MCS_label=N/A
   JobState=COMPLETED Reason=None Dependency=(null)
     Nodes=gpu01 CPU_IDs=0 Mem=0 GRES=gpu:h100:1(IDX:7)

JobId=10 JobName=x
   UserId=eve(1002) GroupId=eve(1002) MCS_label=N/A
   JobState=RUNNING Reason=None Dependency=(null)
     Nodes=gpu[1-99999999] CPU_IDs=0 Mem=0 GRES=gpu:h100:1(IDX:0)
"""


class _Server(http.server.BaseHTTPRequestHandler):
    answers: dict[str, Any] = {}
    asked: list[str] = []

    def do_GET(self) -> None:
        parts = urlsplit(self.path)
        query = parse_qs(parts.query).get("query", [""])[0]
        self.asked.append(query or self.path)
        found: Any = next((answer for key, answer in self.answers.items() if key in (query or parts.path)), [])
        body = json.dumps({"data": {"result": found}} if query else found).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture
def server() -> Iterator[Url]:
    _Server.answers, _Server.asked = {}, []
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), _Server) as running:
        thread = threading.Thread(target=running.serve_forever, daemon=True)
        thread.start()
        yield Url(f"http://127.0.0.1:{running.server_port}")
        running.shutdown()
        thread.join(60)


def series(values: dict[float, float], **labels: str) -> dict[str, Any]:
    return {"metric": labels, "values": [[at, str(value)] for at, value in values.items()]}


def past_of(url: Url) -> PrometheusPast:
    return PrometheusPast(PrometheusClient(url, 'cluster="x"'), {"box": "box"}, {"box": {("instance", 'b"ox:1')}})


def test_the_history_of_a_machine_is_one_query_in_stored_units(server: Url) -> None:
    util = series({1000: 0.5, 1120: 1.0}, __name__="gpulse_gpu_utilization_ratio", instance="box:1", uuid="GPU-1")
    dcgm = series({1060: 42.0}, __name__="DCGM_FI_DEV_GPU_UTIL", Hostname="box", UUID="GPU-2")
    part = series({1060: 1.0}, __name__="DCGM_FI_DEV_GPU_UTIL", Hostname="box", UUID="GPU-2", GPU_I_ID="1")
    _Server.answers = {"instance": [util, dcgm, part]}
    found = past_of(server).history("box", TIMES, 60.0)
    assert found == {("GPU-1", "utilization"): [50.0, None, 100.0], ("GPU-2", "utilization"): [None, 42.0, None]}
    (query,) = _Server.asked
    assert 'instance="b\\"ox:1"' in query
    assert 'cluster="x"' in query
    assert past_of(server).history("other", TIMES, 60.0) is None


def test_sm_activity_is_preferred_in_the_map(server: Url) -> None:
    _Server.answers = {
        "sm_active": [series({1000: 0.1}, __name__="gpulse_gpu_sm_active_ratio", instance="box:1")],
        "utilization": [series({1000: 0.9, 1060: 0.8}, __name__="gpulse_gpu_utilization_ratio", instance="box:1"),
                        series({1000: 0.9}, __name__="gpulse_gpu_utilization_ratio", instance="stranger:1")],
    }  # fmt: skip
    assert {name: list(row) for name, row in past_of(server).shares(TIMES, 60.0).items()} == {"box": [10, 80, 255]}


def test_usage_has_owners_and_the_rest_of_each_machine(server: Url) -> None:
    owner = {"instance": "box:1", "user": "ada", "scheduler": "slurm", "job_id": "7"}
    _Server.answers = {
        'gpulse_gpu_utilization_ratio", cluster="x"} * on': [series({1000: 0.5}, **owner)],
        'gpulse_gpu_power_draw_watts", cluster="x"} * on': [series({1000: 700.0}, **owner)],
        'sum by (Hostname, hostname, node, instance, user, scheduler, job_id, pod, container) ({__name__="gpulse_gpu_job_info"':
            [series({1000: 1.0}, **owner)],
        "sum by (__name__, Hostname, hostname, node, instance) ({__name__=~\"gpu_gfx":
            [series({1000: 0.5}, __name__="gpulse_gpu_utilization_ratio", instance="box:1")],
        "count by": [series({1000: 4.0}, instance="box:1")],
    }  # fmt: skip
    usage = past_of(server).usage(TIMES, 3600.0)
    (user,) = usage.rows("user")
    assert (user["name"], user["gpu_hours"], user["idle_share"], user["energy"]) == ("ada", 1.0, 50.0, 700 * 3600)
    (machine,) = usage.rows("host")
    assert (machine["gpu_hours"], machine["held_hours"], machine["idle_share"]) == (4.0, 1.0, 87.5)
    assert usage.rows("job")[0]["name"] == "slurm:7"


def test_an_answer_that_is_none_is_refused(server: Url) -> None:
    _Server.answers = {"instance": [{"metric": {}, "values": [["x", "y"]]}]}
    with pytest.raises(Refused):
        past_of(server).history("box", TIMES, 60.0)


def test_a_machine_with_gpulse_tells_its_own_history(server: Url) -> None:
    answer = {"times": [1000, 1030, 1060], "series": [{"uuid": "GPU-1", "key": "utilization", "mean": [10, 30, None]},
                                                      {"uuid": "GPU-1", "key": "nonsense", "mean": [1, 2, 3]}]}  # fmt: skip
    _Server.answers = {"/api/history": answer}
    past = UrlPast({"box": server})
    assert past.history("box", TIMES, 60.0) == {("GPU-1", "utilization"): [20.0, None, None]}
    assert past.history("other", TIMES, 60.0) is None
    _Server.answers = {"/api/history": {"series": "no"}}
    assert past.history("box", TIMES, 60.0) == {}


def test_slurm_tells_which_gpus_running_jobs_have() -> None:
    ada = {"user": "ada", "job": "slurm:7"}
    found = granted_gpus(lambda words: _JOBS)
    assert found == {"gpu01": {0: ada, 1: ada}, "gpu02": {0: ada, 1: ada}, "gpu03": {3: ada, 5: ada}}


def test_a_pod_is_not_the_one_of_the_exporter() -> None:
    assert granted({"exported_pod": "train-0", "exported_namespace": "lab", "pod": "dcgm-1"}) == {"pod": "lab/train-0"}
    assert granted({"pod": "dcgm-exporter-x", "container": "exporter"}) == {}
    assert granted({"pod": "train-0", "namespace": "lab", "container": "main"}) == {"pod": "lab/train-0"}
    assert granted({}) == {}
