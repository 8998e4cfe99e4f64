"""Options and settings of `gpulse serve`: tokens, addresses, base path, settings file, systemd, and what is refused."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

pytest.importorskip("starlette")
pytest.importorskip("uvicorn")

from tests.e2e.lab import environment
from tests.e2e.serving import Serving, StreamOf, plain_environment, refused
from tests.fake_nvml import Scenario


@pytest.mark.parametrize(
    "options",
    [("--port", "x"), ("--port", "70000"), ("--bind", "1.2.3.4:x"), ("--key", "k"), ("--no-history", "--history", "h"),
     ("--base-path", "x"),
     ("--base-path", "/a b/"), ("--interval", "0"), ("--no-auth", "--token-file", "t"), ("--unix-socket", "s", "--port", "1")],
)  # fmt: skip
def test_options_that_make_no_sense_are_exit_2(tmp_path: Path, options: tuple[str, ...]) -> None:
    code, out, err = refused(tmp_path, "--demo", *options)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_a_token_file_is_kept_out_of_what_is_printed_and_used_again(tmp_path: Path) -> None:
    file = tmp_path / "token"
    tokens = []
    for _ in range(2):
        with Serving(tmp_path, "--token-file", str(file), "--no-history") as server:
            assert "token" not in server.link
            assert server.get("/api/openapi.json")[0] == 200
            tokens.append(server.token)
    assert tokens[0] == tokens[1]


def test_a_token_file_that_everybody_can_read_is_refused(tmp_path: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="gpulse-test-", dir="/tmp") as folder:
        Path(folder).chmod(0o755)
        file = Path(folder, "token")
        file.write_text(f"{'x' * 40}\n")
        file.chmod(0o644)
        code, out, err = refused(tmp_path, "--demo", "--port", "0", "--token-file", str(file))
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert f"{file} is readable by other users; run chmod 600 {file}" in err


def test_no_auth_is_said_aloud(tmp_path: Path) -> None:
    with Serving(tmp_path, "--no-auth", "--no-history") as server:
        assert server.get("/api/openapi.json", known=False)[0] == 200
        assert "authentication is disabled" in server.err


def test_beyond_loopback_scrapers_need_the_token_and_addresses_will_do(tmp_path: Path) -> None:
    with Serving(tmp_path, "--bind", "0.0.0.0:0", "--no-history", "--allow-host", "gpu.example,b") as server:
        assert server.get("/metrics", known=False)[0] == 401
        server.until("/readyz", 200)
        for path in ("/healthz", "/readyz"):
            assert server.get(path, known=False)[0] == 200
        assert server.get("/healthz", host="10.9.8.7:1")[0] == 200
        assert server.get("/healthz", host="gpu.example")[0] == 200
        assert server.get("/healthz", host="evil.example")[0] == 400
        assert "the token is sent unencrypted" in server.err


def test_below_a_base_path(tmp_path: Path) -> None:
    with Serving(tmp_path, "--base-path", "/gpus", "--no-history") as server:
        assert server.link.partition("?")[0].endswith("/gpus/")
        assert server.get(f"/gpus/?token={server.token}", known=False)[1]["set-cookie"].count("Path=/gpus/;") == 1
        assert server.get("/gpus/api/openapi.json")[0] == server.get("/api/openapi.json")[0] == 200
        assert server.get("/gpus")[1]["location"] == "gpus/"


def test_the_settings_fill_what_the_command_line_leaves_open(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        "[serve]\ncommands = false\nhistory = false\ninterval = 0.5\nport = 1\n[alerts]\nlog = false\n"
    )
    env = environment(Scenario.load("h200-busy"), tmp_path / "fake", GPULSE_CONFIG=str(tmp_path / "config.toml"))
    with Serving(tmp_path, "--port", "0", environ=env, source="") as server:
        server.until("/readyz", 200)
        assert {"commands": False, "history": False, "interval": 0.5}.items() <= server.json("/api/snapshot")[
            "server"
        ].items()


def test_metrics_that_the_settings_name_are_sampled_exported_listed_and_recorded(tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text(
        '[serve]\nmetrics = ["power_draw_instant", "utilization"]\ninterval = 0.2\n[alerts]\nlog = false\n'
    )
    history = {"GPULSE_CONFIG": str(config), "GPULSE_HISTORY": str(tmp_path / "history.db")}
    env = environment(Scenario.load("h200-busy"), tmp_path / "fake", **history)
    with Serving(tmp_path, environ=env, source="") as server:
        server.until("/readyz", 200)
        with StreamOf(server) as stream:
            samples = stream.events(10, "sample")
        assert "power_draw_instant" in json.dumps(samples[-1])
        assert server.json("/api/snapshot")["gpus"][0]["power_draw_instant"] > 0
        page = server.get("/metrics")[2].decode()
        assert "\ngpulse_gpu_power_draw_instant_watts{" in page
        assert "gpulse_gpu_temperature_margin" not in page
        listed = [metric["key"] for metric in server.json("/api/metrics-catalog")["gpu"]]
        assert "power_draw_instant" in listed
        assert "temperature_margin" not in listed
        [series] = server.json("/api/history?metrics=power_draw_instant")["series"]
        assert any(mean and mean > 0 for mean in series["mean"])


@pytest.mark.parametrize(
    "text",
    [
        "[serve]\nprot = 1",
        "[serve]\nmetrics = ['power_drawn']",
        "[serve]\nport = 'x'",
        "serve = 1",
        "[alerts]\nnonsense = 1",
    ],
)
def test_settings_that_make_no_sense_are_exit_2(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    code, out, err = refused(tmp_path, "--port", "0")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1


def test_systemd_hears_of_start_life_and_end(tmp_path: Path) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(str(tmp_path / "notify"))
        systemd.settimeout(30)
        environ = plain_environment(tmp_path, NOTIFY_SOCKET=str(tmp_path / "notify"), WATCHDOG_USEC="4000000")
        with Serving(tmp_path, "--no-history", environ=environ) as server:
            assert [systemd.recv(100) for _ in range(3)] == [b"READY=1", b"WATCHDOG=1", b"WATCHDOG=1"]
            assert server.end() == 0
        told = [systemd.recv(100)]
        while told[-1] == b"WATCHDOG=1":
            told.append(systemd.recv(100))
        assert told[-1] == b"STOPPING=1"


def test_without_the_extra_it_says_how_to_get_it(tmp_path: Path) -> None:
    for name in ("starlette", "uvicorn"):
        blocker = tmp_path / name
        blocker.mkdir()
        (blocker / f"{name}.py").write_text(f"raise ModuleNotFoundError('no', name={name!r})")
        path = f"{blocker}{os.pathsep}{plain_environment(tmp_path)['PYTHONPATH']}"
        code, out, err = refused(tmp_path, "--demo", PYTHONPATH=path)
        assert (code, out) == (1, "")
        assert re.fullmatch(rf"gpulse: `gpulse serve` needs {name}; run .* install 'h11.*starlette.*uvicorn.*\n", err)


def test_no_gpu_is_exit_3_with_the_reason(tmp_path: Path) -> None:
    env = environment(Scenario.load("not-loaded"), tmp_path, GPULSE_CONFIG=str(tmp_path / "none.toml"))
    done = subprocess.run(
        [sys.executable, "-m", "gpulse", "serve", "--port", "0", "--no-history"],
        env=env,
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )
    assert (done.returncode, done.stdout) == (3, "")
    assert "not loaded" in done.stderr
