"""Where the server listens, and what it says when it cannot."""

from __future__ import annotations

import os
import socket
from pathlib import Path

import pytest

from gpulse.errors import GpulseError, UsageError
from gpulse.surfaces.web.access import parse_bind, tcp_socket, unix_socket
from gpulse.surfaces.web.running import notify, watchdog_seconds


@pytest.mark.parametrize(
    ("text", "place"),
    [("127.0.0.1", ("127.0.0.1", 1)), ("0.0.0.0:80", ("0.0.0.0", 80)), ("[::1]:80", ("::1", 80)), ("[::1]", ("::1", 1)), ("::", ("::", 1)),
     ("box", ("box", 1)), ("box:0", ("box", 0)), (":8080", ("127.0.0.1", 8080))],
)  # fmt: skip
def test_addresses_are_read(text: str, place: tuple[str, int]) -> None:
    assert parse_bind(text, 1) == place


@pytest.mark.parametrize("text", ["box:x", "box:", "1.2.3.4:70000", "[::1]:-1", "[::1]:", "box:١"])
def test_a_port_that_is_none_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="port"):
        parse_bind(text, 1)


def test_a_port_in_use_is_said_with_the_next_step() -> None:
    with tcp_socket("127.0.0.1", 0) as first:
        first.listen()
        port = first.getsockname()[1]
        with pytest.raises(GpulseError, match=f"port {port} of 127.0.0.1 is in use; .*--port {port + 1}") as failure:
            tcp_socket("127.0.0.1", port)
    assert failure.value.exit_code == 1


@pytest.mark.parametrize(
    ("host", "said"), [("192.0.2.1", "is not an address of this machine"), ("no.such.host.invalid", "cannot listen on")]
)
def test_an_address_of_another_machine_is_said(host: str, said: str) -> None:
    with pytest.raises(GpulseError, match=said):
        tcp_socket(host, 0)


def test_a_socket_file_is_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "gpulse.sock"
    before = os.umask(0)
    try:
        with unix_socket(str(path)):
            assert path.stat().st_mode & 0o777 == 0o600
            assert os.umask(0) == 0
    finally:
        os.umask(before)


def test_a_socket_that_a_dead_server_left_is_replaced_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "gpulse.sock"
    unix_socket(str(path)).close()
    with unix_socket(str(path)) as bound:
        bound.listen()
        with pytest.raises(GpulseError, match="is in use"):
            unix_socket(str(path))
    file = tmp_path / "file"
    file.write_text("mine")
    with pytest.raises(GpulseError, match="is not a socket"):
        unix_socket(str(file))
    assert file.read_text() == "mine"
    with pytest.raises(GpulseError, match="cannot be listened on"):
        unix_socket(str(tmp_path / ("x" * 200)))


@pytest.mark.parametrize("kind", ["/", "@"])
def test_systemd_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str) -> None:
    address = f"{tmp_path}/notify" if kind == "/" else f"@gpulse-test-{os.getpid()}"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as systemd:
        systemd.bind(address.replace("@", "\0"))
        systemd.settimeout(60)
        monkeypatch.setenv("NOTIFY_SOCKET", address)
        notify("READY=1")
        assert systemd.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "relative", "/nowhere/notify"])
def test_where_nobody_listens_nothing_happens(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    notify("READY=1")


@pytest.mark.parametrize(
    ("micros", "pid", "seconds"),
    [("2000000", "", 2.0), ("2000000", "1", None), ("", "", None), ("0", "", None), ("x", "", None)],
)
def test_how_often_systemd_wants_to_hear(
    monkeypatch: pytest.MonkeyPatch, micros: str, pid: str, seconds: float | None
) -> None:
    monkeypatch.setenv("WATCHDOG_USEC", micros)
    monkeypatch.setenv("WATCHDOG_PID", pid)
    assert watchdog_seconds() == seconds
