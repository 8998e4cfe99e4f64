"""Alerts as one thing: from snapshots to whoever wants to know, and the configuration as the manual shows it."""

from __future__ import annotations

import os
import pty
import re
import threading
from pathlib import Path
from typing import Any

import pytest

from gpulse.analysis.alerts import BUILT_IN, Notice, Transition
from gpulse.delivery import Alerts
from gpulse.delivery.apprise import AppriseDelivery
from gpulse.delivery.delivery import Bell, Command
from gpulse.delivery.post import Webhook
from gpulse.errors import ConfigError
from gpulse.model.catalog import Gpu
from gpulse.model.snapshot import Snapshot
from gpulse.present.alerts import alert_line
from gpulse.store.config import read_config
from tests.unit.delivery.servers import server

MANUAL = Path(__file__).parents[3] / "docs" / "alerts.md"


def sample(time: float, lost: bool) -> Snapshot:
    return Snapshot(1_700_000_000.0 + time, (Gpu({"index": 0, "uuid": "GPU-0"}, state="lost" if lost else "ok"),))


def test_from_a_snapshot_to_everybody(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("no_proxy", "*")
    note, said = tmp_path / "note", list[str]()
    with server() as taken:
        table: dict[str, Any] = {
            "webhook": {"url": taken.url},
            "command": {"run": ["/bin/sh", "-c", 'echo "$GPULSE_STATE $GPULSE_HOST" >> "$1"', "sh", str(note)]},
        }
        alerts = Alerts(table, said.append, host="node7")
        for at in range(10):
            alerts.add(sample(at, lost=3 <= at < 6))
        assert alerts.active == ()
        assert [one.state for one in alerts.recent] == ["fire", "clear"]
        assert alerts.close(20)
    assert [body["state"] for body in taken.bodies] == ["fire", "clear"]
    assert note.read_text() == "fire node7\nclear node7\n"
    assert said == ["alert fire lost: GPU 0 is lost (fell off the bus)", "alert clear lost: GPU 0 is responding again"]


def test_a_terminal_that_hangs_holds_up_nothing() -> None:
    gate, asked = threading.Event(), threading.Event()

    def hangs(_: str) -> None:
        asked.set()
        gate.wait(30)

    alerts = Alerts({}, hangs)
    for at in range(2000):
        alerts.add(sample(at, lost=at % 2 == 0))
    assert asked.wait(60)
    assert not alerts.close(0)
    gate.set()


def test_deliveries_take_the_rules_they_are_for(tmp_path: Path) -> None:
    note = tmp_path / "note"
    run = ["/bin/sh", "-c", 'echo "$GPULSE_RULE $GPULSE_STATE" >> "$1"', "sh", str(note)]
    own = {"name": "warm", "metric": "temperature", "above": 50, "clear_for": 0}
    alerts = Alerts({"rule": [own], "command": [{"run": run, "rules": ["warm"], "clears": False}]}, lambda _: None)
    for at, degrees in enumerate((60, 40)):
        alerts.add(Snapshot(float(at), (Gpu({"uuid": "GPU-0", "temperature": degrees}, state="lost"),)))
    assert [one.rule for one in alerts.recent] == ["lost", "warm", "warm"]
    assert alerts.close(20)
    assert note.read_text() == "warm fire\n"


def test_what_rules_need_is_wanted() -> None:
    alerts = Alerts({"enable": ["hot"], "rule": [{"name": "a", "metric": "pcie_rx", "above": "1GiB"}]}, lambda _: None)
    assert {"temperature", "temperature_limit", "pcie_rx"} <= alerts.wanted.gpu
    assert alerts.wanted.process is None
    assert alerts.close(5)


class TestBell:
    def test_a_terminal_rings_for_what_begins(self) -> None:
        ours, theirs = pty.openpty()
        try:
            alerts = Alerts({"bell": os.ttyname(theirs), "log": False}, lambda _: None)
            alerts.add(sample(0, lost=True))
            alerts.add(sample(1, lost=False))
            assert alerts.close(10)
            assert os.read(ours, 10) == b"\a"
            assert [one.delivered for one in alerts.deliveries] == [1]
        finally:
            os.close(ours)
            os.close(theirs)

    @pytest.mark.parametrize(("path", "why"), [("/nowhere", "No such file"), ("/dev/null", "is not a terminal")])
    def test_what_is_no_terminal_is_said_and_not_written(self, path: str, why: str) -> None:
        said: list[str] = []
        alerts = Alerts({"bell": path, "log": False}, said.append)
        alerts.add(sample(0, lost=True))
        assert alerts.close(10)
        assert len(said) == 1
        assert why in said[0]


class TestManual:
    def test_the_example_is_a_configuration(self, tmp_path: Path) -> None:
        found = re.search(r"```toml\n(.*?)```", MANUAL.read_text(), re.DOTALL)
        assert found
        (tmp_path / "config.toml").write_text(found[1])
        alerts = Alerts(read_config(str(tmp_path / "config.toml"))["alerts"], lambda _: None)
        try:
            kinds = [type(one) for one in alerts.deliveries]
            assert kinds[:4] == [Webhook, AppriseDelivery, Command, Bell]
        finally:
            assert alerts.close(5)

    def test_every_rule_and_every_key_with_its_default_is_there(self) -> None:
        rows = dict(re.findall(r"^\| `(\w+)` \| .* \| (.*) \|$", MANUAL.read_text(), re.MULTILINE))
        assert rows.keys() == BUILT_IN.keys()
        for name, rule in BUILT_IN.items():
            assert set(re.findall(r"`(\w+)`", rows[name])) == rule.settings.keys()
            for key, default in re.findall(r"`(\w+)` ([\w.]+)", rows[name]):
                reader, value = rule.settings[key]
                written: Any = default if reader.__name__ != "number" else float(default)
                assert value is None or reader(written) == value, (name, key)

    def test_the_variables_are_those_of_the_command(self) -> None:
        from gpulse.delivery.delivery import variables

        transition = next(iter(_fires()))
        shown = set(re.findall(r"`(GPULSE_[A-Z]+)`", MANUAL.read_text()))
        assert {
            key for key in variables(Notice("fire", 0.0, (transition,)), "") if not key.startswith("GPULSE_VALUE_")
        } == shown


def _fires() -> list[Transition]:
    alerts = Alerts({"log": False}, lambda _: None)
    found = alerts.add(sample(0, lost=True))
    assert alerts.close(5)
    assert alert_line(found[0]) == "alert fire lost: GPU 0 is lost (fell off the bus)"
    return found


@pytest.mark.parametrize(
    ("table", "sentence"),
    [
        ([], "alerts is not a table;"),
        ({"webhok": {}}, "alerts: unknown key 'webhok' (did you mean 'webhook'?)"),
        ({"webhook": {"url": "ftp://a/b"}}, "alerts.webhook.url is not an http or https address, or apprise:URL;"),
        ({"webhook": {"url": "https://u:pw@a/b"}}, "alerts.webhook.url contains a user name;"),
        ({"webhook": {"url": "https://a", "shap": 1}}, "alerts.webhook: unknown key 'shap' (did you mean 'shape'?)"),
        (
            {"webhook": {"url": "https://a", "shape": "jsn"}},
            "alerts.webhook.shape: unknown shape 'jsn' (did you mean 'json'?)",
        ),
        ({"mail": {"to": "a@b"}}, "alerts: unknown key 'mail'"),
        ({"webhook": {"url": "https://a", "shape": 3}}, "alerts.webhook.shape: unknown shape 3;"),
        (
            {"webhook": {"url": "https://a", "headers": {"A": "b\r\nX: y"}}},
            "alerts.webhook.headers is not a table of plain",
        ),
        ({"webhook": {"url": "https://a", "timeout": "5h"}}, "alerts.webhook.timeout is not between 0 and 60 s."),
        ({"webhook": {"url": "https://a", "retries": -1}}, "alerts.webhook.retries: -1 is not a number from 0 to 10."),
        (
            {"webhook": {"url": "https://a", "rules": ["hott"]}},
            "alerts.webhook.rules: unknown rule 'hott' (did you mean 'hot'?)",
        ),
        ({"webhook": 3}, "alerts.webhook is not a table;"),
        ({"command": {"run": "notify"}}, "alerts.command.run is not a list of words;"),
        ({"command": {"run": []}}, "alerts.command.run is not a list of words;"),
        ({"command": {"run": ["a"], "clears": 1}}, "alerts.command.clears: 1 is neither true nor false."),
        ({"bell": 3}, "alerts.bell: 3 is neither true nor a terminal;"),
        ({"log": "no"}, "alerts.log: 'no' is neither true nor false."),
    ],
)
def test_mistakes_are_said_in_a_sentence_that_names_the_key(table: Any, sentence: str) -> None:
    with pytest.raises(ConfigError) as raised:
        Alerts(table, lambda _: None)
    assert sentence in str(raised.value)
    assert "pw@" not in str(raised.value)
