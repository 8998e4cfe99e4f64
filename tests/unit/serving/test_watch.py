"""Servers behind real sockets are asked in a thread: whatever they do, nobody waits, and it is said once."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from gpulse.model.catalog import Gpu, Host, Process, Server
from gpulse.model.codec import to_plain
from gpulse.model.snapshot import Snapshot
from gpulse.serving.asked_server import DEADLINE
from gpulse.serving.discovery import Discovery
from gpulse.serving.kind import Kind
from gpulse.serving.kinds import read_snapshot
from gpulse.serving.settings import ServingSettings, read_settings, read_tariff
from gpulse.serving.tracking import ServingTracker
from gpulse.serving.watch import ServingWatch

from . import answers
from .scripted_server import FAULTS, ScriptedServer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from gpulse.model.serving import ServerSample
    from gpulse.model.snapshot import Problem

_SAID = {
    "hang": "does not answer within",
    "loris": "does not answer within",
    "large": "longer than 2 MiB",
    "large_chunked": "longer than 2 MiB",
    "html": "web page",
    "denied": "asks for a token",
    "redirect": "redirects",
    "missing": "HTTP 404",
    "broken": "HTTP 500",
    "garbage": "not HTTP",
    "nothing": "ended before",
    "other": "no figures of a known kind",
}


@pytest.fixture
def watching() -> Iterator[Callable[[ServingSettings], ServingWatch]]:
    made: list[ServingWatch] = []

    def watch(settings: ServingSettings) -> ServingWatch:
        made.append(ServingWatch(settings))
        return made[-1]

    yield watch
    for one in made:
        one.close()
        if one._thread is not None:
            one._thread.join(60)
            assert not one._thread.is_alive()


@contextmanager
def serving(body: Callable[[], bytes], fault: str = "none") -> Iterator[ScriptedServer]:
    server = ScriptedServer(body, fault)
    try:
        yield server
    finally:
        server.close()


def until(
    watch: ServingWatch,
    done: Callable[[tuple[ServerSample, ...], tuple[Problem, ...]], object],
    pids: frozenset[int] = frozenset(),
) -> tuple[tuple[ServerSample, ...], tuple[Problem, ...]]:
    """Observe until something is there."""
    end = time.monotonic() + 20
    while time.monotonic() < end:
        answer = watch.observe(pids)
        if done(*answer):
            return answer
        with watch._changed:
            watch._changed.wait(0.1)
    raise AssertionError(f"not within 20 s: {answer}")


@pytest.mark.parametrize("fault", ["none", "chunked", "closing"])
def test_a_configured_server_is_asked(fault: str, watching: Callable[[ServingSettings], ServingWatch]) -> None:
    with serving(answers.vllm().encode, fault) as server:
        watch = watching(ServingSettings({"endpoints": [f"http://127.0.0.1:{server.port}"]}))
        [one], problems = until(watch, lambda samples, problems: samples)
        assert (one.server, one.model, one.endpoint) == ("vllm", "acme/tiny-7b", f"127.0.0.1:{server.port}")
        assert one.counts["generation_tokens"] == 5000
        assert not problems
        until(watch, lambda samples, problems: samples[0].at > one.at)
        assert (server.connections == 1) == (fault != "closing")  # a connection that may stay is used again


@pytest.mark.parametrize("fault", [fault for fault in FAULTS if fault not in ("none", "chunked", "closing")])
def test_a_fault_is_said_once_and_delays_nobody(
    fault: str, watching: Callable[[ServingSettings], ServingWatch]
) -> None:
    with serving(answers.vllm().encode) as good, serving(answers.vllm().encode, fault) as bad:
        endpoints = [f"http://127.0.0.1:{one.port}" for one in (bad, good)]
        watch = watching(ServingSettings({"endpoints": endpoints}))
        samples, _ = until(watch, lambda samples, problems: samples)
        assert samples[0].endpoint == f"127.0.0.1:{good.port}"
        _, problems = until(watch, lambda samples, problems: problems)
        assert [_SAID[fault] in one.message for one in problems] == [True], problems
        asked = len(bad.requests)
        until(watch, lambda now, problems: now[0].at > samples[0].at)
        assert len(bad.requests) == asked == 1


@pytest.mark.parametrize("path", ["", "/llm/metrics"])
def test_a_second_page_adds_what_the_first_lacks(
    path: str, watching: Callable[[ServingSettings], ServingWatch]
) -> None:
    with serving(answers.llama_cpp().encode) as server:
        second = path.replace("metrics", "slots") or "/slots"
        server.pages[second.encode()] = answers.llama_slots((1000, 24, 0)), "none"
        watch = watching(ServingSettings({"endpoints": [f"http://127.0.0.1:{server.port}{path}"]}))
        [one], problems = until(watch, lambda samples, problems: samples)
        assert one.gauges == {"running": 2, "waiting": 1, "kv_cache": 25.0}
        assert not problems
        until(watch, lambda samples, problems: samples[0].at > one.at)
        assert server.connections == 1


@pytest.mark.parametrize("fault", ["hang", "large", "html", "missing", "garbage", "other"])
def test_a_second_page_that_fails_takes_nothing_away_and_is_left_alone(
    fault: str, watching: Callable[[ServingSettings], ServingWatch]
) -> None:
    with serving(answers.llama_cpp().encode) as server:
        server.pages[b"/slots"] = b"", fault
        watch = watching(ServingSettings({"endpoints": [f"http://127.0.0.1:{server.port}"]}))
        [one], problems = until(watch, lambda samples, problems: samples)
        assert one.gauges == {"running": 2, "waiting": 1}
        assert not problems
        asked = [request.split()[1] for request in server.requests].count(b"/slots")
        until(watch, lambda samples, problems: samples[0].at > one.at)
        assert [request.split()[1] for request in server.requests].count(b"/slots") == asked > 0


def test_another_machine_tells_of_the_servers_on_its_gpus(
    tmp_path: Path, watching: Callable[[ServingSettings], ServingWatch]
) -> None:
    names: dict[str, Any] = {"server": "vllm", "gpus": ("GPU-a",), "pid": 7}
    told = (
        Server(names | {"model": "m", "endpoint": "127.0.0.1:8000", "generation_rate": 900.0, "tokens_per_joule": 4.5}),
        Server(names | {"model": "n", "endpoint": "127.0.0.1:8001"}, {"running": "timeout"}),
        Server({"server": "vllm", "model": "ours", "endpoint": "here:8000"}),  # which it has from somebody else
    )
    plain = to_plain(Snapshot(0.0, (), Host({"name": "gpu2"}), serving=told)) | {"time": 17.5}
    secret = tmp_path / "token"
    secret.write_text("s3cret")
    with serving(json.dumps(plain).encode) as server:
        name = f"127.0.0.1:{server.port}"
        settings = {"endpoints": [f"http://{name}/api/snapshot"], "token_files": [f"{name}={secret}"]}
        samples, problems = until(watching(ServingSettings(settings)), lambda samples, problems: samples)
        assert not problems
        assert b"Authorization: Bearer s3cret\r\n" in server.requests[0]
    ours = Gpu({"uuid": "GPU-a", "power_draw": 300.0}, processes=(Process({"pid": 7}),))
    first, second = ServingTracker().readings(samples, [ours], samples[0].at)
    assert (first.server, first.model, first.endpoint) == ("vllm", "m", "gpu2:8000")
    assert (first.generation_rate, first.tokens_per_joule, first.gpus, first.pid) == (900.0, 4.5, None, None)
    assert "generation_rate" not in first.gaps
    assert (second.endpoint, second.gap("running")) == ("gpu2:8001", "timeout")


@pytest.mark.parametrize("body", [b"{}", b"[]", b"{", b'{"schema": 1, "serving": 5, "host": 7}', b"\xff"])
def test_what_is_no_snapshot_tells_of_nobody(body: bytes) -> None:
    assert read_snapshot(body) == []


def test_a_refused_token_says_what_to_do_and_a_given_one_is_sent(
    tmp_path: Path, watching: Callable[[ServingSettings], ServingWatch]
) -> None:
    secret = tmp_path / "token"
    secret.write_text("s3cret\n")
    with serving(answers.vllm().encode, "denied") as server, serving(answers.vllm().encode) as other:
        names = [f"127.0.0.1:{one.port}" for one in (server, other)]
        watch = watching(
            ServingSettings(
                {"endpoints": [f"http://{name}" for name in names], "token_files": [f"{names[0]}={secret}"]}
            )
        )
        _, [problem] = until(watch, lambda samples, problems: problems and samples)
        assert "token_files" in problem.remedy
        assert "s3cret" not in repr(problem)
        assert b"Authorization: Bearer s3cret\r\n" in server.requests[0]
        assert b"Authorization" not in other.requests[0]  # a token goes nowhere else


def test_a_server_that_falls_silent_has_a_reason(watching: Callable[[ServingSettings], ServingWatch]) -> None:
    with serving(answers.vllm().encode) as server:
        watch = watching(ServingSettings({"endpoints": [f"127.0.0.1:{server.port}"]}))
        until(watch, lambda samples, problems: samples)
        server.fault = "hang"
        [one], [problem] = until(watch, lambda samples, problems: problems)
        assert one.gap == "timeout"
        assert one.counts == {}
        assert "does not answer" in problem.message


def test_observing_never_waits(watching: Callable[[ServingSettings], ServingWatch]) -> None:
    with serving(answers.vllm().encode, "hang") as server:
        watch = watching(ServingSettings({"endpoints": [f"127.0.0.1:{server.port}"]}))
        began = time.thread_time()
        for _ in range(20):
            watch.observe(())
        assert time.thread_time() - began < DEADLINE  # of its own CPU time, not of the clock: the machine may be busy


@contextmanager
def process(name: str, *arguments: str) -> Iterator[tuple[int, int]]:
    """Run the scripted server under the name of a real one; yield its PID and port."""
    program = str(Path(__file__).with_name("scripted_server.py"))
    child = subprocess.Popen(
        [name, program, *arguments],
        executable=sys.executable,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(Path("src").absolute()), str(Path.cwd())])},
    )
    try:
        assert child.stdout is not None
        yield child.pid, int(child.stdout.readline())
    finally:
        child.kill()
        child.communicate()


@pytest.mark.parametrize(
    ("program", "kind", "model"),
    [
        ("vllm", "vllm", "acme/tiny-7b"),
        ("sglang", "sglang", "acme/tiny-7b"),
        ("text-generation-router", "tgi", ""),
        ("llama-server", "llama.cpp", ""),
        ("tritonserver", "triton", "tensorrt_llm"),
        ("ollama", "ollama", "tiny:7b"),
    ],
)
def test_a_process_on_a_gpu_leads_to_its_server(
    program: str, kind: str, model: str, watching: Callable[[ServingSettings], ServingWatch]
) -> None:
    with process(program, kind, "none") as (pid, port):
        watch = watching(ServingSettings())
        samples, problems = until(watch, lambda samples, problems: samples, frozenset({pid}))
        assert (samples[0].server, samples[0].model) == (kind, model)
        assert (samples[0].endpoint, samples[0].pid) == (f"127.0.0.1:{port}", pid)
        assert not problems
        until(watch, lambda samples, problems: not samples)  # it leaves the GPU


def test_a_training_that_listens_is_not_asked() -> None:
    with process("python", "vllm", "none") as (pid, _):
        assert Discovery().find([pid]) == []


def test_nobody_elses_server_is_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    with process("vllm", "vllm", "none") as (pid, _):
        assert Discovery().find([pid])
        monkeypatch.setattr(os, "geteuid", lambda: 12345)
        assert Discovery().find([pid]) == []


def test_discovery_can_be_switched_off(watching: Callable[[ServingSettings], ServingWatch]) -> None:
    with process("vllm", "vllm", "none") as (pid, port), serving(answers.vllm().encode) as server:
        watch = watching(ServingSettings({"discover": False, "endpoints": [f"127.0.0.1:{server.port}"]}))
        [one], _ = until(watch, lambda samples, problems: samples, frozenset({pid}))
        assert one.endpoint != f"127.0.0.1:{port}"


def test_a_single_sample_has_rates(watching: Callable[[ServingSettings], ServingWatch]) -> None:
    with process("vllm", "vllm", "none") as (pid, _):
        watch = watching(ServingSettings())
        watch.observe([pid])
        first, second = watch.wait(20)
        assert second[0][0].counts["generation_tokens"] > first[0][0].counts["generation_tokens"]


def test_without_servers_its_thread_is_left_asleep_until_it_must_look(
    watching: Callable[[ServingSettings], ServingWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    watch = watching(ServingSettings())
    until(watch, lambda samples, problems: watch._looked_for == frozenset({1}), frozenset({1}))
    woken: list[None] = []
    monkeypatch.setattr(watch, "_wake", lambda: woken.append(None))
    watch.observe([1])
    assert not woken
    watch.observe([1, 2])
    assert len(woken) == 1
    monkeypatch.undo()


def test_settings_of_file_and_environment(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text('[serving]\nendpoints = ["http://gpu2:8000", "nonsense:99999"]\ndiscover = false\n')
    settings = read_settings({"GPULSE_CONFIG": str(path)})
    assert [one.name for one in settings.endpoints] == ["gpu2:8000"]
    assert not settings.discover
    settings = read_settings(
        {"GPULSE_CONFIG": str(path), "GPULSE_SERVING_ENDPOINTS": "https://llm.example.org/metrics"}
    )
    [one] = settings.endpoints
    assert (one.name, one.path, one.tls) == ("llm.example.org:443", "/metrics", True)


def test_prices_of_file_and_environment(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text("[cost]\nprice = 0.3\ngpu_price = true\n")
    tariff = read_tariff({"GPULSE_CONFIG": str(path)})
    assert (tariff.price, tariff.gpu_price) == (0.3, None)
    tariff = read_tariff({"GPULSE_CONFIG": str(path), "GPULSE_COST_PRICE": "nan", "GPULSE_COST_GPU_PRICE": "2.5"})
    assert (tariff.price, tariff.gpu_price) == (None, 2.5)


def test_a_server_that_cannot_even_be_asked_delays_nobody(
    watching: Callable[[ServingSettings], ServingWatch], monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(kind: Kind, body: bytes) -> str | None:
        if b"odd" in body:
            raise ZeroDivisionError
        return whole(kind, body)

    whole = Kind.prefix_in
    monkeypatch.setattr(Kind, "prefix_in", broken)
    with serving(answers.vllm().encode) as good, serving(lambda: b"odd 1\n") as odd:
        endpoints = [f"http://{'a' * 70}:8000", *(f"http://127.0.0.1:{one.port}" for one in (odd, good))]
        watch = watching(ServingSettings({"endpoints": endpoints}))
        _, problems = until(watch, lambda samples, problems: samples and len(problems) == 2)
    assert "its name is not known" in problems[0].message
    assert "asking it fails (ZeroDivisionError)" in problems[1].message
