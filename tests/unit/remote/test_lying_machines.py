"""Machines, Prometheus servers and model servers that lie: nothing outside of the catalog's range reaches totals, page or terminal."""

from __future__ import annotations

import json
import math
import re
from typing import TYPE_CHECKING, Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from gpulse.analysis.fleet import FleetWatch, Funnel
from gpulse.live.fleet import FleetHub, funnel_plain
from gpulse.live.fleet_api import TABLES, table_rows
from gpulse.model.catalog import GPU_METRICS, HOST_METRICS, PROCESS_METRICS, SERVER_METRICS
from gpulse.model.codec import to_line
from gpulse.model.fleet import FleetSnapshot, HostReport
from gpulse.model.metric import Number, Numbers
from gpulse.present.theme import Theme
from gpulse.remote.fleet import Fleet
from gpulse.remote.past import EXPORTED, SERIES, PrometheusPast, UrlPast
from gpulse.remote.prometheus import PrometheusFeed
from gpulse.remote.samples import SampleReader
from gpulse.remote.settings import Refused, Url, snapshot_of
from gpulse.surfaces.exporter.exporter import Exporter
from gpulse.surfaces.fleet.view import fleet_view, free_lines, loss_lines

if TYPE_CHECKING:
    from collections.abc import Mapping

    from gpulse.model.metric import Metric, Reading
    from gpulse.model.snapshot import Snapshot

NOW = 1_700_000_000.0
_WRONG: st.SearchStrategy[Any] = st.one_of(
    st.sampled_from([1e18, 1e300, -1e300, -1, -0.5, 101.5, 10**400, -(10**30), 2**63, math.nan, math.inf, -math.inf]),
    st.sampled_from(["97", "", "\x1b]0;owned\x07", "a\nb\r\x00", None, True, [], {}, [1e300] * 3, ["x"], [math.nan]]),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
)


def _value(metric: Metric) -> st.SearchStrategy[Any]:
    """Anything a machine can write for a metric: often of the right type, rarely in range."""
    if isinstance(metric, Number):
        return st.one_of(st.floats(0, 150), st.integers(0, 2**70), _WRONG)
    if isinstance(metric, Numbers):
        return st.one_of(st.lists(st.floats(), max_size=3), _WRONG)
    return st.one_of(st.text(max_size=8), _WRONG)


def _readings(metrics: Mapping[str, Metric], always: tuple[str, ...] = ()) -> st.SearchStrategy[dict[str, Any]]:
    some = st.lists(st.sampled_from(sorted(metrics)), max_size=8).map(lambda keys: {*keys, *always})
    return some.flatmap(lambda keys: st.fixed_dictionaries({key: _value(metrics[key]) for key in sorted(keys)}))


_SUMMED = ("utilization", "sm_active", "memory_used", "memory_total", "power_draw", "index", "name")
_PROCESSES = st.lists(_readings(PROCESS_METRICS, ("pid", "user", "cpu_percent", "memory_used")), max_size=2)


@st.composite
def _gpus(draw: st.DrawFn, whole: bool = True) -> dict[str, Any]:
    gpu = draw(_readings(GPU_METRICS, _SUMMED)) | {
        "state": draw(st.sampled_from(["ok", "ok", "lost", "timeout", 7])),
        "since": draw(
            st.sampled_from(["2023-11-14T22:00:00Z", "9999-01-01T00:00:00Z", "0001-01-01T00:00:00Z", 1e300, None])
        ),
        "gaps": draw(st.sampled_from([{}, {"processes": "denied"}, {"utilization": "vacation"}, 7])),
        "processes": draw(_PROCESSES),
    }
    if whole and draw(st.booleans()):
        gpu.pop("sm_active")  # then its instances tell
    else:
        gpu |= {"sm_active": draw(st.floats(0, 100))}
    return gpu | ({"instances": draw(st.lists(_gpus(False), max_size=4))} if whole else {})


@st.composite
def _machines(draw: st.DrawFn) -> dict[str, Any]:
    return {
        "schema": 1,
        "time": draw(
            st.sampled_from([NOW, "2023-11-14T22:13:20Z", "9999-12-31T23:59:59Z", "0001-01-01T00:00:00Z", 1e30])
        ),
        "host": draw(_readings(HOST_METRICS, ("name", "cpu_percent", "memory_used", "memory_total"))),
        "driver": {"version": draw(_WRONG)},
        "gpus": draw(st.lists(_gpus(), max_size=3)),
        "serving": draw(st.lists(_readings(SERVER_METRICS, ("server", "kv_cache", "running")), max_size=2)),
        "errors": [{"source": draw(_WRONG), "message": draw(_WRONG)}],
    }


def _check(reading: Reading, metrics: Mapping[str, Metric]) -> None:
    for key, value in reading.items():
        metric = metrics[key]
        for number in value if isinstance(value, tuple) else (value,):
            if isinstance(metric, (Number, Numbers)):
                assert isinstance(number, (int, float)), key
                assert not isinstance(number, bool), key
                assert metric.low <= number <= metric.high, key


def check_snapshot(snapshot: Snapshot) -> None:
    """Every value has the type and the range of the catalog, and no GPU uses more memory than it has."""
    _check(snapshot.host, HOST_METRICS)
    for server in snapshot.serving:
        _check(server, SERVER_METRICS)
    for gpu in (part for whole in snapshot.gpus for part in (whole, *whole.instances)):
        _check(gpu, GPU_METRICS)
        if gpu.memory_used is not None and gpu.memory_total is not None and not gpu.memory_unified:
            assert gpu.memory_used <= gpu.memory_total
        for process in gpu.processes:
            _check(process, PROCESS_METRICS)


def check_fleet(fleet: FleetSnapshot) -> None:
    """Totals, terminal, tables and page have only numbers that so many GPUs can have."""
    sums = Funnel(gpu for _, gpu in fleet.gpus())
    assert 0 <= sums.active <= sums.total
    assert sums.effective is None or 0 <= sums.effective <= sums.judged
    assert 0 <= (sums.power or 0.0) <= sums.total * GPU_METRICS["power_draw"].high
    assert sums.memory_used <= sums.total * 2**60
    json.dumps(funnel_plain(sums), allow_nan=False)
    found = FleetWatch().add(fleet)
    theme = Theme()
    lines = [*loss_lines(fleet, found, theme), *free_lines(fleet, 1, 0.0, theme)]
    lines += [line for by in ("host", "gpu", "user", "job") for line in fleet_view(fleet, theme, 120, found, by)]
    for text in (line.render(theme, 120) for line in lines):
        assert text.isprintable(), text
        shares = [float(share) for share in re.findall(r"(-?[\d.]+) ?%", text)]
        assert all(0 <= share <= 100 for share in shares), text
    for by in TABLES:
        _, rows = table_rows(fleet, by, "", "", 0, 2000)
        json.dumps(rows, allow_nan=False)
        assert all(0 <= (row.get(key) or 0) <= 100 for row in rows for key in ("active", "effective"))
    hub = FleetHub(Fleet([], 5.0))
    hub.add(fleet)
    json.dumps(hub.overview(), allow_nan=False)
    json.dumps(fleet.to_plain(), allow_nan=False)


def check_metrics(snapshot: Snapshot) -> None:
    """The page for Prometheus has only finite numbers, and no family of it fails."""
    failed: list[str] = []
    exporter = Exporter(say=failed.append)
    exporter.add(snapshot)
    _, families = exporter.series(processes=True, dcgm=True, smi=True)
    assert all(math.isfinite(value) for _, samples in families for _, value in samples)
    assert failed == []


_SLOW = settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.reuse, Phase.generate],  # an example of many machines takes minutes to shrink
)


@_SLOW
@given(st.lists(_machines(), min_size=1, max_size=2))
def test_a_machine_that_lies_reaches_no_total_no_page_and_no_terminal(plains: list[dict[str, Any]]) -> None:
    hosts = []
    for at, plain in enumerate(plains):
        try:
            snapshot = snapshot_of(json.dumps(plain).encode())
        except Refused:
            continue
        check_snapshot(snapshot)
        to_line(snapshot)
        check_metrics(snapshot)
        hosts.append(HostReport(f"box{at}\x1b[31m", "url", "ok", snapshot, 1.0))
    check_fleet(FleetSnapshot(NOW, tuple(hosts)))


@_SLOW
@given(_machines())
def test_a_machine_over_ssh_is_believed_no_more(plain: dict[str, Any]) -> None:
    reader = SampleReader("box")
    for snapshot in reader.feed(json.dumps(plain).encode() + b"\n"):
        check_snapshot(snapshot)
    reader.close()


class _Answers(Url):
    """A server that answers every request with the same body."""

    __slots__ = ("body",)

    def __init__(self, body: object) -> None:
        super().__init__("http://127.0.0.1:9090")
        self.body = body

    def fetched(self, path: str) -> bytes:
        return json.dumps(self.body).encode()


_LABELS = st.fixed_dictionaries(
    {
        "__name__": st.sampled_from(sorted(SERIES)),
        "Hostname": st.sampled_from(["a", "b\x1b[31m"]),
        "uuid": st.sampled_from(["GPU-1", "GPU-2\x07"]),
        "gpu": st.sampled_from(["0", "9" * 400, "-1", "x"]),
    }
)
_NUMBER = st.one_of(
    st.sampled_from(["1e300", "-1", "NaN", "+Inf", "-Inf", "100000000000000064", "0.5", "50"]), st.floats().map(str)
)
_AT = st.sampled_from([NOW, 0, -1e300, 1e300, math.nan, math.inf])
_VECTOR = st.lists(
    st.fixed_dictionaries({"metric": _LABELS, "value": st.tuples(_AT, _NUMBER), "values": st.just([])}), max_size=12
)


@_SLOW
@given(_VECTOR)
def test_a_prometheus_that_lies_reaches_no_total(series: list[dict[str, Any]]) -> None:
    answer = _Answers({"status": "success", "data": {"resultType": "vector", "result": series}})
    feed = PrometheusFeed(answer, 5.0)
    fleet = Fleet([feed], 5.0)
    feed._server = fleet.expect("prometheus", "prometheus")
    feed._refresh(fleet)
    found = fleet.read()
    for host in found.hosts:
        if host.snapshot is not None:
            check_snapshot(host.snapshot)
    check_fleet(found)


@_SLOW
@given(st.lists(st.tuples(_LABELS, st.lists(_NUMBER, min_size=3, max_size=3)), max_size=6))
def test_the_past_of_a_prometheus_that_lies_has_only_values_that_can_be(series: list[tuple[Any, list[str]]]) -> None:
    times = [NOW, NOW + 60, NOW + 120]
    result = [{"metric": labels, "values": list(zip(times, texts, strict=True))} for labels, texts in series]
    answer = _Answers({"status": "success", "data": {"result": result}})
    feed = PrometheusFeed(answer, 5.0)
    names, labels = {"a": "a", "b\x1b[31m": "b"}, {"a": {("Hostname", "a")}}
    past = PrometheusPast(feed._client, names, labels)
    for (_, key), values in (past.history("a", times, 60.0) or {}).items():
        assert all(value is None or GPU_METRICS[key].low <= value <= GPU_METRICS[key].high for value in values)
    for row in past.usage(times, 60.0).rows("host"):
        assert math.isfinite(row["gpu_hours"])
        assert row["gpu_hours"] >= 0
        assert row["idle_share"] is None or -1e-6 <= row["idle_share"] <= 100 + 1e-6
        assert row["energy"] is None or math.isfinite(row["energy"])


@_SLOW
@given(st.sampled_from(EXPORTED), st.lists(st.one_of(st.none(), st.floats(), st.integers()), min_size=3, max_size=3))
def test_the_past_of_a_machine_that_lies_has_only_values_that_can_be(key: str, values: list[float | None]) -> None:
    times = [NOW, NOW + 60, NOW + 120]
    answer = {"times": times, "series": [{"uuid": "GPU-1", "key": key, "mean": values}]}
    found = UrlPast({"a": _Answers(answer)}).history("a", times, 60.0) or {}
    for (_, known), shown in found.items():
        metric = GPU_METRICS[known]
        assert all(value is None or metric.low <= value <= metric.high for value in shown)


def test_the_lie_that_was_seen() -> None:
    """One machine said 1e17 % and 10^20 bytes; the fleet showed 100000000000000064%."""
    lie = {
        "index": 0,
        "utilization": 1e17,
        "sm_active": 1e17,
        "memory_used": 10**20,
        "memory_total": 1,
        "power_draw": -5,
    }
    sane = {"index": 0, "utilization": 50.0, "memory_used": 1, "memory_total": 4, "power_draw": 100.0}
    hosts = [
        HostReport(name, "url", "ok", snapshot_of(json.dumps({"schema": 1, "time": NOW, "gpus": [gpu]}).encode()), 1.0)
        for name, gpu in (("liar", lie), ("box", sane))
    ]
    liar = hosts[0].gpus[0]
    assert (liar.utilization, liar.sm_active, liar.memory_used, liar.power_draw) == (None, None, None, None)
    assert liar.gap("utilization") == liar.gap("memory_used") == "failed"
    sums = Funnel(gpu for host in hosts for gpu in host.gpus)
    assert (sums.active, sums.known, sums.utilization, sums.power) == (0.5, 1, 50.0, 100.0)
    assert (sums.memory_used, sums.memory_total) == (1, 4)
    text = "\n".join(line.render(Theme(), 120) for line in fleet_view(FleetSnapshot(NOW, tuple(hosts)), Theme(), 120))
    assert re.search(r"liar .* -  +- ", text), text
