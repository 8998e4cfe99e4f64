"""Tokens, where they are kept and shown, and the names a server answers to."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import GpulseError
from gpulse.surfaces.web.access import Hosts, Session, carries, is_loopback, new_token, token_of

TOKEN = "j5RlHH5ALnUWZKGOf4ZoODhiWBlxWI5l"  # the same in every run: it is part of the names of tests
SESSION = Session.derive(TOKEN, "box http://127.0.0.1:9440/")
COOKIE = f"{SESSION.name}={SESSION.value}"


def bearer(value: str) -> list[tuple[bytes, bytes]]:
    return [(b"authorization", value.encode())]


def test_a_token_has_128_bits_at_least_and_is_new_each_time() -> None:
    assert len(new_token()) * 6 >= 128
    assert len({new_token() for _ in range(100)}) == 100


def test_a_token_file_is_made_for_its_owner_only_and_read_again(tmp_path: Path) -> None:
    path = tmp_path / "token"
    before = os.umask(0)
    try:
        token = token_of(str(path))
    finally:
        os.umask(before)
    assert path.stat().st_mode & 0o777 == 0o600
    assert token_of(str(path)) == token


@pytest.mark.parametrize("mode", [0o644, 0o604, 0o606, 0o777])
def test_a_token_file_that_others_can_read_is_refused(open_folder: Path, mode: int) -> None:
    path = open_folder / "token"
    path.write_text(TOKEN)
    path.chmod(mode)
    with pytest.raises(GpulseError, match="readable by other users"):
        token_of(str(path))


@pytest.mark.parametrize(
    "text", ["", "short", "a" * 21, "with space in the middle of it", "två-ä" * 6, f"{TOKEN} {TOKEN}"]
)
def test_a_file_that_holds_no_token_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "token"
    path.write_text(text)
    path.chmod(0o600)
    with pytest.raises(GpulseError, match=r"does not contain a token|is empty"):
        token_of(str(path))


@pytest.mark.parametrize("name", [".", "missing/token"])
def test_a_place_that_cannot_hold_a_token_is_said(tmp_path: Path, name: str) -> None:
    with pytest.raises(GpulseError, match="token file"):
        token_of(str(tmp_path / name))


@pytest.mark.parametrize(
    "headers",
    [
        bearer(f"Bearer {TOKEN}"),
        bearer(f"bearer   {TOKEN} "),
        [(b"cookie", COOKIE.encode())],
        [(b"cookie", f'other=1; {SESSION.name}="{SESSION.value}"'.encode())],
        [(b"cookie", f"{SESSION.name}=old; {COOKIE}".encode())],
        [(b"cookie", f"{SESSION.name}=old".encode()), (b"cookie", COOKIE.encode())],
    ],
)
def test_the_token_is_taken_from_the_header_and_the_session_from_the_cookie(headers: list[tuple[bytes, bytes]]) -> None:
    assert carries(headers, TOKEN, SESSION)


@pytest.mark.parametrize(
    "headers",
    [
        [],
        bearer(""),
        bearer("Bearer"),
        bearer("Bearer "),
        bearer(f"Bearer {TOKEN}x"),
        bearer(f"Bearer {TOKEN[:-1]}"),
        bearer(f"Basic {TOKEN}"),
        bearer(f"{TOKEN}"),
        bearer("Bearer tökén"),
        [(b"authorization", b"Bearer \xff\xfe")],
        bearer(f"Bearer {SESSION.value}"),
        [(b"cookie", f"{SESSION.name}=".encode())],
        [(b"cookie", f"{SESSION.name}={TOKEN}".encode())],
        [(b"cookie", f"x{COOKIE}".encode())],
        [(b"cookie", f"gpulse_token={TOKEN}".encode())],
        [(b"x-token", TOKEN.encode())],
    ],
)
def test_anything_else_is_no_token(headers: list[tuple[bytes, bytes]]) -> None:
    assert not carries(headers, TOKEN, SESSION)


@given(st.binary(max_size=60))
def test_no_bytes_break_the_comparison(value: bytes) -> None:
    assert not carries([(b"authorization", value), (b"cookie", value)], TOKEN, SESSION)


def test_tokens_are_compared_in_constant_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def never(*both: bytes) -> bool:
        asked.append(both)
        return False

    monkeypatch.setattr("gpulse.surfaces.web.access.hmac.compare_digest", never)
    assert not carries([*bearer(f"Bearer {TOKEN}"), (b"cookie", COOKIE.encode())], TOKEN, SESSION)
    assert asked == [(TOKEN.encode(), TOKEN.encode()), (SESSION.value.encode(), SESSION.value.encode())]


def test_the_cookie_is_out_of_reach_of_scripts_and_other_sites() -> None:
    assert SESSION.header("/x/", False) == f"{COOKIE}; Path=/x/; HttpOnly; SameSite=Strict"
    assert SESSION.header("/", True).endswith("; Secure")


def test_a_session_tells_no_token_and_opens_one_server_only() -> None:
    assert TOKEN not in COOKIE
    again, next_door = (Session.derive(TOKEN, f"box http://127.0.0.1:{port}/") for port in (9440, 9441))
    assert again == SESSION  # a browser stays logged in when the server starts again
    assert next_door.name != SESSION.name
    assert next_door.value != SESSION.value
    assert Session.derive(f"{TOKEN}x", "box http://127.0.0.1:9440/").value != SESSION.value


@pytest.mark.parametrize(
    "header", ["localhost", "LOCALHOST:9440", "localhost.", "127.0.0.1:80", "[::1]", "[::1]:9440", "box", "box:1"]
)
def test_the_servers_own_names_are_answered_to(header: str) -> None:
    assert Hosts(["localhost", "127.0.0.1", "::1", "Box"]).permit(header)


@pytest.mark.parametrize(
    "header",
    ["", "evil.example", "localhost.evil.example", "localhost@evil", "localhost:", "localhost:9440:1", "[::1", "::1", "[evil]", "10.0.0.1",
     "localhost, evil", "localhost\tx", "127.0.0.1.nip.io", "locälhost", "[::1]x", "localhost:999999"],
)  # fmt: skip
def test_other_names_are_not(header: str) -> None:
    assert not Hosts(["localhost", "127.0.0.1", "::1"]).permit(header)


def test_beyond_loopback_any_address_will_do_but_no_name() -> None:
    hosts = Hosts(["localhost"], addresses=True)
    assert hosts.permit("10.1.2.3:9440")
    assert hosts.permit("[fe80::1]:9440")
    assert not hosts.permit("evil.example:9440")
    assert not hosts.permit("1.2.3")


@pytest.mark.parametrize(
    ("name", "is_one"),
    [
        ("127.0.0.1", True),
        ("127.8.0.1", True),
        ("::1", True),
        ("localhost", True),
        ("0.0.0.0", False),
        ("::", False),
        ("box", False),
    ],
)
def test_what_only_this_machine_can_reach(name: str, is_one: bool) -> None:
    assert is_loopback(name) is is_one


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_token_file_of_another_user_is_not_accepted_and_not_written(tmp_path: Path) -> None:
    path = tmp_path / "token"
    path.write_text(f"{new_token()}\n", encoding="ascii")
    path.chmod(0o600)
    before = path.read_bytes()
    os.chown(path, 65534, 65534)
    with pytest.raises(GpulseError, match="belongs to another user"):
        token_of(str(path))
    assert path.read_bytes() == before


def test_a_fifo_in_the_place_of_the_token_is_refused_without_waiting_for_it(tmp_path: Path) -> None:
    path = tmp_path / "token"
    os.mkfifo(path, 0o600)
    with pytest.raises(GpulseError, match="not a regular file"):
        token_of(str(path))
