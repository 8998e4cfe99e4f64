"""`gpulse config`, as a user runs it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def config(folder: Path, *words: str, **environ: str) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(ROOT / "src"), "XDG_CONFIG_HOME": str(folder)} | environ
    return subprocess.run(
        [sys.executable, "-m", "gpulse", *words], env=env, capture_output=True, text=True, check=False, timeout=60
    )


def test_a_file_is_made_checked_shown_and_never_overwritten(tmp_path: Path) -> None:
    path = tmp_path / "gpulse" / "config.toml"
    assert config(tmp_path, "config", "check").returncode == 2
    assert config(tmp_path, "config", "init").stdout == f"wrote {path}\n"
    assert config(tmp_path, "config", "check").stdout == f"{path}: ok\n"
    text = path.read_text().replace("# port = 9440", "port = 8080")
    path.write_text(text)
    again = config(tmp_path, "config", "init")
    assert (again.returncode, again.stdout) == (2, "")
    assert again.stderr == f"gpulse: {path} already exists; edit it, or name another file with --path.\n"
    assert path.read_text() == text
    shown = config(tmp_path, "config", "show", GPULSE_THEME="light")
    rows = {line.split()[0]: " ".join(line.split()[1:]) for line in shown.stdout.splitlines()}
    line = text[: text.index("\nport = 8080")].count("\n") + 2
    assert rows["serve.port"] == f"8080 file, line {line}"
    assert rows["terminal.theme"] == '"light" GPULSE_THEME'
    assert rows["serve.bind"] == '"127.0.0.1" default'
    assert (shown.returncode, shown.stderr) == (0, "")


def test_mistakes_go_to_stderr_with_file_and_line_and_exit_2(tmp_path: Path) -> None:
    path = tmp_path / "own.toml"
    path.write_text('[serve]\nport = "x"\n[alerts]\nbell = 3\n[alerts.webhook]\nurl = "ftp://x"\n')
    done = config(tmp_path, "config", "check", "--path", str(path))
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.splitlines() == [
        f"gpulse: {path}, line 2: serve.port: 'x' is not an integer.",
        f"gpulse: {path}, line 6: alerts.webhook.url is not an http or https address, or apprise:URL; "
        'write url = "https://..." or url = "apprise:slack://...".',
    ]
    assert "config check" in config(tmp_path, "config", "--path", str(path)).stderr
    doctor = config(tmp_path, "doctor", GPULSE_CONFIG=str(path), COLUMNS="300")
    assert f"{path}, line 2: serve.port" in doctor.stdout
    serve = config(tmp_path, "serve", GPULSE_CONFIG=str(path))
    assert (serve.returncode, serve.stderr.startswith(f"gpulse: {path}, line 2: serve.port: 'x'")) == (2, True)


def test_it_is_there_for_programs_too_and_refuses_other_words(tmp_path: Path) -> None:
    done = config(tmp_path, "config", "show", "--json")
    plain = json.loads(done.stdout)
    assert plain["exists"] is False
    assert {"setting": "serve.port", "value": 9440, "origin": "default"} in plain["settings"]
    wrong = config(tmp_path, "config", "edit")
    assert (wrong.returncode, wrong.stderr.count("\n")) == (2, 1)
