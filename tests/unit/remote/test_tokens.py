"""Which server is sent which token: machines with `gpulse serve` theirs, Prometheus its own, and nobody else any."""

from __future__ import annotations

import http.server
import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest

from gpulse.cli.commands.fleet import feeds_of
from gpulse.cli.main import load
from gpulse.cli.options import parse
from gpulse.errors import UsageError
from gpulse.remote.fleet import Fleet

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


class Asked:
    """A server that notes the token of each request; `moved` is where it redirects to."""

    def __init__(self, moved: str = "") -> None:
        self.tokens: list[str | None] = []
        asked = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.tokens.append(self.headers.get("Authorization"))
                self.send_response(302 if moved else 404)
                if moved:
                    self.send_header("Location", moved)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: object) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"


@contextmanager
def asked(moved: str = "") -> Iterator[Asked]:
    one = Asked(moved)
    thread = threading.Thread(target=one.server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield one
    finally:
        one.server.shutdown()
        thread.join()
        one.server.server_close()


def read(*words: str) -> None:
    with Fleet(feeds_of(parse(load("fleet"), list(words)))) as fleet:
        fleet.wait(30)


def secret(folder: Path, text: str) -> str:
    path = folder / text
    path.write_text(f"{text}\n")
    path.chmod(0o600)
    return str(path)


def test_each_kind_of_server_is_sent_its_own_token_only(tmp_path: Path) -> None:
    with asked() as first, asked() as second, asked() as prometheus:
        read(
            *("--url", first.url, "--url", second.url, "--prometheus", prometheus.url),
            *("--token-file", secret(tmp_path, "machines")),
        )
        assert (first.tokens[0], second.tokens[0]) == ("Bearer machines", "Bearer machines")
        assert set(prometheus.tokens) == {None}
    with asked() as machine, asked() as prometheus:
        read(
            *("--url", machine.url, "--prometheus", prometheus.url),
            *("--prometheus-token-file", secret(tmp_path, "metrics")),
        )
        assert (set(machine.tokens), set(prometheus.tokens)) == ({None}, {"Bearer metrics"})


@pytest.mark.parametrize("option", ["--url", "--prometheus"])
def test_a_redirect_gets_no_token(tmp_path: Path, option: str) -> None:
    flag = "--token-file" if option == "--url" else "--prometheus-token-file"
    with asked() as other, asked(moved=f"{other.url}/api/snapshot") as server:
        read(option, server.url, flag, secret(tmp_path, "machines"))
        assert server.tokens[0] == "Bearer machines"
        assert other.tokens == []


@pytest.mark.parametrize(
    ("flag", "option", "words"),
    [
        ("--token-file", "--url", ("--prometheus", "http://127.0.0.1:1")),
        ("--prometheus-token-file", "--prometheus", ("--url", "http://127.0.0.1:1")),
        ("--token-file", "--url", ("--ssh", "gpu1")),
    ],
)
def test_a_token_that_no_server_is_named_for_is_refused(
    tmp_path: Path, flag: str, option: str, words: tuple[str, ...]
) -> None:
    with pytest.raises(UsageError, match=f"{flag} is sent only to {option}"):
        read(*words, flag, secret(tmp_path, "lost"))
