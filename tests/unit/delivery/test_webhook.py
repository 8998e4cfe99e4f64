"""Alerts over HTTP: to servers that are well, slow, broken, elsewhere or not there."""

from __future__ import annotations

import shutil
import socket
import ssl
import subprocess
import threading
import time
from pathlib import Path

import pytest

from gpulse.analysis.alerts import Transition
from gpulse.delivery.post import Webhook
from gpulse.present.alerts import alert_plain
from tests.unit.delivery.servers import server
from tests.unit.delivery.transitions import fire, notice, turned

HOT = fire("hot", "GPU-1", 1_700_000_000.5, "GPU 1 is at 99 °C", {"temperature": 99.0}, gpu="1")
COOL = turned("clear", "hot", "GPU-1", 1_700_000_090.5, "GPU 1 has cooled down", {}, gpu="1")


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def run(hook: Webhook, *transitions: Transition) -> list[str]:
    """Deliver, wait until all is done and return what was said."""
    said: list[str] = []
    hook.say = said.append
    hook.start()
    for transition in transitions:
        hook.put(notice(transition))
    hook.close()
    assert hook.end(time.monotonic() + 20)
    return said


def test_json_is_all_there_is_to_know() -> None:
    with server() as taken:
        hook = Webhook(taken.url, headers={"Authorization": "Bearer abc"}, host="node7")
        assert run(hook, HOT, COOL) == []
    assert [body["state"] for body in taken.bodies] == ["fire", "clear"]
    assert alert_plain(HOT).items() <= taken.bodies[0].items()
    assert taken.bodies[0]["host"] == "node7"
    assert taken.headers[0]["Authorization"] == "Bearer abc"
    assert taken.headers[0]["Content-Type"] == "application/json"
    assert (hook.delivered, hook.failed) == (2, 0)


def test_what_may_get_better_is_tried_again() -> None:
    with server(500, 503, 429, 204) as taken:
        hook = Webhook(taken.url, backoff=0.001)
        assert run(hook, HOT) == []
    assert len(taken.bodies) == 4
    assert (hook.delivered, hook.failed) == (1, 0)


def test_what_does_not_get_better_is_said_once_and_counted() -> None:
    with server(500) as taken:
        hook = Webhook(taken.url, backoff=0.001, retries=2)
        said = run(hook, HOT, COOL)
    assert len(taken.bodies) == 6
    assert (hook.delivered, hook.failed) == (0, 2)
    place = taken.url.removesuffix("/services/SECRET")
    assert said == [
        f"alerts: webhook: {place}/***: responded with status 500 (reported once; further alerts are still sent)."
    ]


def test_a_refusal_is_not_repeated() -> None:
    with server(403) as taken:
        assert "responded with status 403" in run(Webhook(taken.url), HOT)[0]
    assert len(taken.bodies) == 1


def test_a_redirect_is_not_followed() -> None:
    with server() as elsewhere, server(302, Location=elsewhere.url) as taken:
        said = run(Webhook(taken.url, headers={"Authorization": "Bearer abc"}), HOT)
    assert elsewhere.bodies == []
    assert len(taken.bodies) == 1
    assert "responded with status 302; use the address it redirects to" in said[0]


def test_nobody_there_is_said_without_the_secret() -> None:
    with socket.socket() as bound:  # bound but not listening: refused for sure
        bound.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{bound.getsockname()[1]}/SECRET?token=SECRET"
        hook = Webhook(url, retries=1, backoff=0.001)
        said = run(hook, HOT)
    assert "refused" in said[0]
    assert "SECRET" not in said[0]


def test_a_server_that_does_not_speak_http_is_said_without_the_secret() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def answer() -> None:
            client, _ = listening.accept()
            with client:
                client.recv(65536)
                client.sendall(b"SSH-2.0-OpenSSH\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        said = run(Webhook(f"http://127.0.0.1:{listening.getsockname()[1]}/SECRET", retries=0), HOT)
        thread.join()
    assert "BadStatusLine" in said[0]
    assert "SECRET" not in said[0]


def test_a_slow_server_is_given_up() -> None:
    with server() as taken:
        taken.gate.clear()
        hook = Webhook(taken.url, timeout=0.05, retries=0)
        assert "no response in time" in run(hook, HOT)[0]


def test_handing_over_never_waits_and_the_oldest_go() -> None:
    with server() as taken:
        taken.gate.clear()
        hook = Webhook(taken.url, timeout=20, limit=0)
        hook.start()
        hook.put(notice(HOT))
        assert taken.asked.wait(60)
        for at in range(300):  # returns although the one before is still on its way
            hook.put(notice(fire("hot", "GPU-1", float(at), "hot", {})))
        assert hook.dropped == 300 - 256
        taken.gate.set()
        hook.close()
        assert hook.end(time.monotonic() + 20)
    assert [body["time"] for body in taken.bodies[1:]] == [float(at) for at in range(44, 300)]


def test_closing_in_the_middle_of_retries_does_not_wait_for_them() -> None:
    with server(500, Retry_After="60") as taken:
        hook = Webhook(taken.url)
        said: list[str] = []
        hook.say = said.append
        hook.start()
        hook.put(notice(HOT))
        assert taken.asked.wait(60)
        hook.close()
        assert not hook.end(time.monotonic())
        thread = hook._thread
        assert thread is not None
        thread.join(60)
        assert not thread.is_alive()
    assert hook.failed == 1


@pytest.mark.skipif(shutil.which("openssl") is None, reason="no openssl to make a certificate with")
def test_a_certificate_that_nobody_vouches_for_is_refused(tmp_path: Path) -> None:
    words = "req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=localhost -keyout key -out certificate"
    subprocess.run(["openssl", *words.split()], cwd=tmp_path, check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "certificate", tmp_path / "key")
    with server(tls=context) as taken:
        said = run(Webhook(taken.url, retries=0), HOT)
    assert "certificate verify failed" in said[0].lower()
    assert taken.bodies == []
