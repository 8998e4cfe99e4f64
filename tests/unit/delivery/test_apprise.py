"""Messages through the real Apprise, to servers on the loopback."""

from __future__ import annotations

import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from gpulse.analysis.alerts import Notice
from gpulse.delivery.apprise import AppriseDelivery
from gpulse.delivery.delivery import Failed
from gpulse.delivery.settings import DeliverySetup, deliveries_from
from gpulse.errors import ConfigError, GpulseError
from tests.unit.delivery.servers import Taken, server
from tests.unit.delivery.transitions import AT, fire, hot, idle, notice, turned

pytest.importorskip("apprise")
pytestmark = pytest.mark.filterwarnings("ignore:'imghdr' is deprecated")  # Apprise loads it
LINK = "https://node7/gpulse/"
SECRET = "SECRETSECRETSECRET"


@pytest.fixture(autouse=True)
def _no_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")


def target(taken: Taken) -> str:
    """Return the address of a server for Apprise's plug-in for JSON."""
    return taken.url.replace("http://", "json://").replace("SECRET", SECRET)


def sent(*notices: Notice, limit: int = 30) -> list[dict[str, str]]:
    """Return the messages that a server is sent."""
    with server() as taken:
        delivery, said = AppriseDelivery(target(taken), host="node7", link=LINK, limit=limit), list[str]()
        delivery.say = said.append
        delivery.start()
        for one in notices:
            delivery.put(one)
        delivery.close()
        assert delivery.end(time.monotonic() + 60)
        assert said == []
    return taken.bodies


def test_a_message_says_whose_what_since_when_and_what_to_do() -> None:
    body, more = sent(notice(idle()), notice(hot(3)))
    assert body["title"].startswith("node7: ada's python")
    assert body["message"].startswith("user: ada\njob: 123\nvalue: 1.0 GiB\nsince: ")
    assert "\nWhat to do: Shut the notebook kernel" in body["message"]
    assert body["message"].endswith(f"{LINK}#/timelines?from=1699999700&to=1700000300&gpus=GPU-1")
    assert "\nvalue: 93 °C\nlimit: above 86 °C\n" in f"\n{more['message']}"


def test_nobody_is_mentioned_whatever_a_process_is_called() -> None:
    (body,) = sent(notice(idle()))
    assert "<@\u200beveryone>" in body["title"]
    text = fire("busy", "GPU-1", AT, "@here is ada@example.org", {})
    assert sent(notice(text))[0]["title"] == "node7: @\u200bhere is ada@example.org"


def test_eight_gpus_are_one_message() -> None:
    gpus = [hot(gpu) for gpu in range(8)]
    over = notice(*(hot(gpu, "clear") for gpu in range(8)), active=2)
    first, last = sent(notice(*gpus), over)
    assert (first["title"], first["type"]) == ("node7: GPUs 0-7: near temperature limit", "warning")
    assert "GPU 7 is at 97 °C" in first["message"]
    assert (last["title"], last["type"]) == ("node7: resolved: GPUs 0-7: near temperature limit", "success")
    assert "2 other alerts of this rule still active." in last["message"]


def test_the_service_is_told_how_bad_it_is() -> None:
    bad = notice(fire("lost", "GPU-1", AT, "lost", {}, severity="critical"))
    good = notice(fire("gpu_free", "GPU-1", AT, "free", {}, severity="info"))
    assert [body["type"] for body in sent(bad, good)] == ["failure", "info"]


def test_more_messages_than_the_limit_are_counted_and_told_with_the_next() -> None:
    many = [notice(turned("fire", "hot", "GPU-1", AT + at, f"hot {at}", {})) for at in range(5)]
    later = notice(turned("fire", "hot", "GPU-1", AT + 3601, "later", {}))
    bodies = sent(*many, later, limit=2)
    assert len(bodies) == 3
    assert "This is the last message for now" in bodies[1]["message"]
    assert "3 alerts before this one were not sent" in bodies[2]["message"]


def test_a_refusal_says_why_but_not_the_url(capfd: pytest.CaptureFixture[str]) -> None:
    with server(403) as taken:
        delivery = AppriseDelivery(target(taken))
        with pytest.raises(Failed) as raised:
            delivery.deliver(notice(hot(1)))
    assert str(raised.value).startswith("json://***: ")
    assert "403" in str(raised.value)
    assert SECRET not in str(raised.value)
    assert (delivery.place, len(taken.bodies)) == ("json://***", 1)
    assert capfd.readouterr() == ("", "")


def test_a_reason_that_names_part_of_the_url_is_masked() -> None:
    with socket.socket() as bound:  # bound but not listening: refused for sure
        bound.bind(("127.0.0.1", 0))
        delivery = AppriseDelivery(f"json://127.0.0.1:{bound.getsockname()[1]}/{SECRET}")
        with pytest.raises(Failed, match=r"Connection error .* to \*\*\*$") as raised:
            delivery.deliver(notice(hot(1)))
    assert "127.0.0.1" not in str(raised.value)


@pytest.mark.parametrize("url", [f"nonsense://{SECRET}", f"slack://{SECRET}", f"tgram://{SECRET}/chat"])
def test_a_url_that_apprise_does_not_know_is_not_repeated(url: str, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(Failed, match="does not know such a URL") as raised:
        AppriseDelivery(url).deliver(notice(hot(1)))
    assert SECRET not in str(raised.value)
    assert capfd.readouterr() == ("", "")


def test_each_of_two_messages_on_their_way_has_its_own_reason() -> None:
    found: dict[int, str] = {}
    with server(403) as one, server(500) as other:

        def deliver(code: int, taken: Taken) -> None:
            try:
                AppriseDelivery(target(taken)).deliver(notice(hot(1)))
            except Failed as error:
                found[code] = str(error)

        threads = [threading.Thread(target=deliver, args=given) for given in ((403, one), (500, other))]
        for taken in (one, other):
            taken.gate.clear()
        for thread in threads:
            thread.start()
        assert one.asked.wait(60)
        assert other.asked.wait(60)
        for taken in (one, other):
            taken.gate.set()
        for thread in threads:
            thread.join(60)
    assert "403" in found[403]
    assert "500" in found[500]


def test_the_url_may_be_in_a_file(tmp_path: Path) -> None:
    file = tmp_path / "url"
    with server() as taken:
        file.write_text(f"apprise:{target(taken)}\n")
        file.chmod(0o600)
        table = {"webhook": {"url_file": str(file)}}
        (delivery,) = deliveries_from(table, DeliverySetup(table, ()))
        delivery.deliver(notice(hot(1)))
    assert len(taken.bodies) == 1
    assert (delivery.name, delivery.place) == ("apprise", "json://***")


def test_the_package_is_not_loaded_before_there_is_a_message() -> None:
    code = (
        "import sys; from gpulse.delivery.settings import DeliverySetup, deliveries_from; "
        "table = {'webhook': {'url': 'apprise:json://a'}}; deliveries_from(table, DeliverySetup(table, ())); "
        "sys.exit('apprise' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_missing_package_is_said_with_the_command_that_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "apprise", None)
    with pytest.raises(Failed, match=r"json://\*\*\* needs apprise; run .*install"):
        AppriseDelivery(f"json://{SECRET}").deliver(notice(hot(1)))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    table = {"webhook": {"url": f"apprise:json://{SECRET}"}}
    with pytest.raises(GpulseError, match=r"alerts\.webhook with apprise:URL needs apprise; run .*install") as raised:
        deliveries_from(table, DeliverySetup(table, ()))
    assert SECRET not in str(raised.value)


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ({"url": f"apprise:{SECRET}"}, "what follows apprise: is not a URL of Apprise;"),
        ({"url": f"apprise:json://{SECRET}", "shape": "json"}, "alerts.webhook.shape is for http and https addresses"),
        ({"url": f"apprise:json://{SECRET}", "retries": 3}, "alerts.webhook.retries is for http and https addresses"),
        ({"url": f"apprise:json://{SECRET} x"}, "alerts.webhook.url is not an http or https address, or apprise:URL;"),
        ({"url": f"slack://{SECRET}"}, "alerts.webhook.url is not an http or https address, or apprise:URL;"),
        ({"url": "https://a", "url_file": "b"}, "alerts.webhook needs url or url_file, one of them;"),
        ({}, "alerts.webhook needs url or url_file, one of them;"),
        ({"url_file": 3}, "alerts.webhook needs url or url_file, one of them;"),
    ],
)
def test_mistakes_are_said_without_the_url(table: dict[str, object], sentence: str) -> None:
    whole = {"webhook": table}
    with pytest.raises(ConfigError) as raised:
        deliveries_from(whole, DeliverySetup(whole, ()))
    assert sentence in str(raised.value)
    assert SECRET not in str(raised.value)
