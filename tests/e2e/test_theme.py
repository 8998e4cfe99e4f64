"""The colors of every command on a dark, a light and an unknown terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from gpulse.present.theme import Theme
from tests.e2e.lab import environment
from tests.e2e.test_terminal import Terminal, steady

QUERY = b"\x1b]11;?\x1b\\"
WHITE, BLACK = b"\x1b]11;rgb:ffff/ffff/ffff\x1b\\", b"\x1b]11;rgb:0000/0000/0000\x07"


def accent(name: str, background: str = "") -> bytes:
    """The code of a style that every palette has in another color."""
    return Theme(256, name=name, background=background).switch("accent").removeprefix("\x1b[0;").encode()


def env_of(folder: Path, **more: str) -> dict[str, str]:
    return environment(steady(), folder) | {"GPULSE_CONFIG": str(folder / "config.toml")} | more


def printed(env: dict[str, str], *words: str) -> bytes:
    with Terminal(env, *words) as terminal:
        terminal.wait()
        return terminal.raw


@pytest.mark.parametrize(
    ("environ", "words", "name"),
    [
        ({}, (), "neutral"),
        ({"COLORFGBG": "0;15"}, (), "light"),
        ({"COLORFGBG": "15;0"}, (), "dark"),
        ({"COLORFGBG": "15;0"}, ("--theme", "light"), "light"),
        ({"GPULSE_THEME": "light", "COLORFGBG": "15;0"}, (), "light"),
        ({"GPULSE_THEME": "light"}, ("--theme=dark",), "dark"),
    ],
)
def test_the_glance_has_the_colors_of_its_background(
    tmp_path: Path, environ: dict[str, str], words: tuple[str, ...], name: str
) -> None:
    raw = printed(env_of(tmp_path, **environ), *words)
    assert accent(name) in raw
    assert QUERY not in raw  # a command that ends at once does not wait for its terminal


@pytest.mark.parametrize("words", [(), ("--processes",), ("doctor",), ("why", "--for", "2s", "--interval", "0.2s")])
def test_the_saved_theme_reaches_every_command(tmp_path: Path, words: tuple[str, ...]) -> None:
    (tmp_path / "config.toml").write_text('[terminal]\ntheme = "blind"\n')
    raw = printed(env_of(tmp_path), *words)
    sheet = Theme(256, name="blind")
    codes = {sheet.switch(style)[4:].encode() for style in ("accent", "good", "memory", "user", "label")}
    others = {
        Theme(256, name="neutral").switch(style)[4:].encode() for style in ("accent", "good", "memory", "user", "label")
    }
    assert any(code in raw for code in codes - others)
    assert not any(code in raw for code in others - codes)


@pytest.mark.parametrize(
    "text", ['[terminal]\ntheme = "drak"\n', "theme = [", "terminal = 3 # theme\n", "[terminal]\ntheme = 3\n"]
)
def test_a_mistake_in_the_file_does_not_stop_the_glance(tmp_path: Path, text: str) -> None:
    (tmp_path / "config.toml").write_text(text)
    assert accent("neutral") in printed(env_of(tmp_path))


def test_a_mistake_in_the_variable_is_said(tmp_path: Path) -> None:
    raw = printed(env_of(tmp_path, GPULSE_THEME="drak"))
    assert raw.strip().startswith(b"gpulse: GPULSE_THEME: unknown theme 'drak' (did you mean 'dark'?)")


def test_a_pipe_has_no_colors_and_reads_no_settings(tmp_path: Path) -> None:
    env = env_of(tmp_path, GPULSE_THEME="drak")
    done = subprocess.run([sys.executable, "-m", "gpulse"], env=env, capture_output=True, check=False, timeout=30)
    assert (done.returncode, done.stderr) == (0, b"")
    assert b"\x1b" not in done.stdout


@pytest.mark.parametrize(("answer", "background"), [(WHITE, "light"), (BLACK, "dark")])
def test_the_live_screen_asks_its_terminal(tmp_path: Path, answer: bytes, background: str) -> None:
    with Terminal(env_of(tmp_path), "top") as terminal:
        terminal.until(QUERY)
        terminal.press(answer)
        terminal.until(accent("auto", background))
        terminal.press(b"q")
        assert terminal.wait() == 0


def test_a_late_answer_changes_the_colors_and_types_nothing(tmp_path: Path) -> None:
    with Terminal(env_of(tmp_path), "top") as terminal:
        terminal.until(accent("neutral"))
        terminal.press(WHITE[:9])
        terminal.press(WHITE[9:])
        terminal.until(accent("light"))
        terminal.until(lambda: "help" in terminal.lines[-1])
        assert "rgb" not in terminal.text
        terminal.press(b"q")
        assert terminal.wait() == 0


@pytest.mark.parametrize("words", [("--theme", "light"), ("--theme", "mono"), ("--color", "never")])
def test_a_screen_that_needs_no_answer_does_not_ask(tmp_path: Path, words: tuple[str, ...]) -> None:
    with Terminal(env_of(tmp_path), "top", *words) as terminal:
        terminal.until(lambda: "help" in terminal.lines[-1])
        terminal.press(b"q")
        assert terminal.wait() == 0
        assert QUERY not in terminal.raw
