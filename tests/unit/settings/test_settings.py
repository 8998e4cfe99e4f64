"""Settings: one table, one order of precedence, and mistakes told with file, line and key."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

from gpulse.cli.commands import serve
from gpulse.cli.options import parse
from gpulse.errors import ConfigError
from gpulse.settings.effective import (
    chosen,
    effective,
    effective_alerts,
    mistakes,
    settings_check,
    template,
    write_template,
)
from gpulse.settings.table import SERVE, TABLES, TOP, Setting, toml
from gpulse.surfaces.top.state import ScreenSettings

try:
    import tomllib
except ModuleNotFoundError:  # Python 3.10
    import tomli as tomllib

ALL = [setting for table in TABLES.values() for setting in table.values()]


def values(table: str, file: dict[str, Any], environ: dict[str, str]) -> dict[str, tuple[Any, str]]:
    return {each.setting.key: (each.value, each.origin) for each in effective(table, {table: file}, environ)}


def test_the_environment_comes_before_the_file_and_the_file_before_the_default() -> None:
    found = values("serve", {"port": 1, "bind": "a"}, {"GPULSE_SERVE_PORT": "2"})
    assert found["port"] == (2, "environment")
    assert found["bind"] == ("a", "file")
    assert found["interval"] == (1.0, "default")


def test_what_is_wrong_is_not_taken() -> None:
    assert values("serve", {"port": "x"}, {})["port"] == (9440, "default")
    assert values("serve", {"port": 5}, {"GPULSE_SERVE_PORT": "x"})["port"] == (5, "file")


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: f"{setting.table}.{setting.key}")
def test_every_setting_takes_its_own_default_and_example(setting: Setting) -> None:
    value = setting.example if setting.default is None else setting.default
    assert setting.check(value) == (value, [])
    assert tomllib.loads(f"x = {toml(value)}")["x"] == value
    text = ",".join(value) if isinstance(value, list) else str(value)
    assert setting.parse(text) == (value, [])
    assert setting.help[0].isupper()
    assert not setting.help.endswith(".")
    table = "" if setting.table == "terminal" else f"{setting.table}_"  # GPULSE_THEME is typed by people
    assert setting.environ == f"GPULSE_{table}{setting.key}".upper()


@pytest.mark.parametrize("setting", ALL, ids=lambda setting: f"{setting.table}.{setting.key}")
@given(value=st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.lists(st.text() | st.integers()))
@hypothesis_settings(deadline=None, max_examples=30)
def test_any_value_is_taken_or_refused_with_a_sentence(setting: Setting, value: Any) -> None:
    taken, wrong = setting.check(value)
    assert (taken is None) <= bool(wrong)
    assert all(sentence.endswith((".", "?")) for sentence in wrong)
    if isinstance(value, str):
        setting.parse(value)


def test_the_options_of_serve_are_its_settings() -> None:
    flags = {flag for option in serve.VERB.options for flag in option.flags}
    for setting in SERVE.values():
        assert set(setting.flag.split(", ")) <= flags, setting


def test_the_screen_has_every_setting_of_the_table() -> None:
    assert ScreenSettings().values() == {key: setting.default for key, setting in TOP.items()}


def filled(words: list[str], file: dict[str, Any], environ: dict[str, str] | None = None) -> Any:
    arguments = parse(serve.VERB, words)
    serve._fill(arguments, chosen("serve", {"serve": file}, environ or {}, "file"))
    serve._check(arguments)
    return arguments


@pytest.mark.parametrize(
    ("words", "file", "expected"),
    [
        ([], {"port": 1}, {"port": 1}),
        (["--port", "0"], {"port": 1}, {"port": 0}),
        (["--no-history"], {"history": "/x"}, {"history": None, "no_history": True}),
        (["--history", "/y"], {"history": False}, {"history": "/y", "no_history": False}),
        ([], {"history": False}, {"no_history": True}),
        ([], {"history": True}, {"no_history": False, "history": None}),
        ([], {"commands": False}, {"no_commands": True}),
        (["--no-commands"], {"commands": True}, {"no_commands": True}),
        (["--no-auth"], {"token_file": "/t"}, {"token_file": None, "no_auth": True}),
        (["--bind", "::1"], {"unix_socket": "/s", "port": 3}, {"unix_socket": None, "bind": "::1", "port": 3}),
        (["--bind", "0.0.0.0:80"], {"port": 3}, {"port": None}),
        (["--unix-socket", "/s"], {"bind": "a", "port": 3}, {"bind": None, "port": None}),
        (["--interval", "5"], {"interval": 2}, {"interval": 5.0}),
        ([], {"interval": 2}, {"interval": 2.0}),
        ([], {}, {"interval": 1.0, "base_path": "/"}),
        ([], {"base_path": "/gpulse"}, {"base_path": "/gpulse/"}),
        ([], {"allow_host": ["a", "b"]}, {"allow_host": ["a", "b"]}),
    ],
)
def test_an_option_comes_before_the_file(words: list[str], file: dict[str, Any], expected: dict[str, Any]) -> None:
    arguments = filled(words, file)
    assert {key: getattr(arguments, key) for key in expected} == expected


def test_the_environment_fills_what_no_option_says() -> None:
    environ = {"GPULSE_SERVE_PORT": "7", "GPULSE_SERVE_COMMANDS": "no", "GPULSE_SERVE_ALLOW_HOST": "a, b"}
    arguments = filled([], {"port": 1}, environ)
    assert (arguments.port, arguments.no_commands, arguments.allow_host) == (7, True, ["a", "b"])
    assert filled(["--port", "9"], {}, environ).port == 9


def test_a_mistake_names_file_line_and_key(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("# first\n[serve]\nbind = 'x'\nport = 'y'\n")
    with pytest.raises(ConfigError, match=r"c\.toml, line 4: serve\.port: 'y' is not an integer\.") as caught:
        chosen("serve", tomllib.loads(path.read_text()), {}, str(path))
    assert caught.value.exit_code == 2
    with pytest.raises(ConfigError, match=r"^GPULSE_SERVE_PORT: '70000' is not|^GPULSE_SERVE_PORT: 70000 is not"):
        chosen("serve", {}, {"GPULSE_SERVE_PORT": "70000"}, str(path))


MISTAKES = [
    ("[serve]\nprot = 1\n", 2, "serve.prot: unknown setting (did you mean 'port'?)."),
    ("[serve]\n\nport = 70000\n", 3, "serve.port: 70000 is not between 0 and 65535."),
    ("[terminal]\ntheme = 'drak'\n", 2, "terminal.theme: unknown theme 'drak' (did you mean 'dark'?)."),
    ("top.interval = 0\n", 1, "top.interval: 0 s is not between 0.1 and 3600 s."),
    ("top = { interval = 0 }\n", 1, "top.interval: 0 s is not between 0.1 and 3600 s."),
    ("x = 1\n[top]\n[sevre]\n", 3, "sevre: unknown table (did you mean 'serve'?)."),
    ("serve = 3\n", 1, "serve: it is not a table; put its keys under [serve]."),
    ("[alerts]\nlog = true\n[alerts.hot]\nabove = 'x'\n", 4, "alerts.hot.above: 'x' is not a number."),
    ("[alerts.hot]\nfor = 3\nabvoe = 3\n", 3, "alerts.hot: unknown key 'abvoe'"),
    ("[alerts]\n\nenable = ['hto']\n", 3, "alerts.enable: unknown rule 'hto'"),
    ("[[alerts.rule]]\nname='a'\nmetric='utilization'\nabove=1\n[[alerts.rule]]\nname='b'\nmetric='power_darw'\nabove=1\n", 7,
     "alerts.rule b.metric: unknown metric"),
    ("[alerts]\n[[alerts.rule]]\nmetric='utilization'\nabove=1\n", 2, "alerts.rule 1: name is missing"),
    ("[serve]\nport = \n", 2, "invalid value"),
]  # fmt: skip


@pytest.mark.parametrize(("text", "line", "says"), MISTAKES, ids=[says[:30] for _, _, says in MISTAKES])
def test_every_mistake_has_its_line(tmp_path: Path, text: str, line: int, says: str) -> None:
    path = tmp_path / "c.toml"
    path.write_text(text)
    found = mistakes(str(path), {})
    assert any(each.startswith(f"{path}, line {line}: {says}") for each in found), found
    check = settings_check({"GPULSE_CONFIG": str(path)})
    assert (check.level, str(path) in check.found) == ("warn", True)


def test_all_mistakes_are_listed(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    path.write_text("[serve]\nport = 'x'\nprot = 1\n[top]\nsort = 3\n[alerts]\nlog = true\nnope = 1\n")
    assert len(mistakes(str(path), {"GPULSE_TOP_DECIMAL": "perhaps"})) == 4  # rules alone do not judge unknown keys


def test_a_new_file_changes_nothing_and_every_line_of_it_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "new" / "c.toml"
    write_template(str(path))
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)
    assert mistakes(str(path), {}) == []
    assert not any(
        each.origin == "file" for table in TABLES for each in effective(table, tomllib.loads(path.read_text()), {})
    )
    used = re.sub(r"^# (\[.*\]|[a-z_]+ = .*)$", r"\1", template(), flags=re.MULTILINE)
    file = tomllib.loads(used)
    path.write_text(used)
    assert mistakes(str(path), {}) == []
    for table, settings in TABLES.items():
        assert set(file[table]) == set(settings)
    assert {"rule", "webhook", "command", "enable", "hot"} <= set(file["alerts"])
    with pytest.raises(ConfigError, match="already exists"):
        write_template(str(path))
    assert path.read_text() == used


def test_secrets_of_alerts_are_masked() -> None:
    hook = {"url": "https://u:p@hooks.example.org/T0/SECRET", "headers": {"Authorization": "Bearer SECRET"}}
    table = {"webhook": [hook, {"url": "apprise:slack://SECRET/SECRET/SECRET"}]}
    shown = {name: value for name, value, _ in effective_alerts(table)}
    assert shown["alerts.webhook"] == [
        {"url": "https://hooks.example.org/***", "headers": {"Authorization": "…"}},
        {"url": "apprise:slack://***"},
    ]
    assert shown["alerts.hot.for"] == "30s"


def test_the_doctor_says_which_file_is_used(tmp_path: Path) -> None:
    path = tmp_path / "c.toml"
    missing = settings_check({"GPULSE_CONFIG": str(path)})
    assert (missing.level, missing.found) == ("ok", f"{path} does not exist; defaults are used.")
    path.write_text("[terminal]\ntheme = 'light'\n")
    assert settings_check({"GPULSE_CONFIG": str(path)}).found == f"{path}, 1 setting."
