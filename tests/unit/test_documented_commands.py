"""Every command in the documents is one that gpulse understands, and those that can be tried on the demo answer there."""

from __future__ import annotations

import gzip
import re
import shlex
import shutil
import time
from pathlib import Path

import pytest

from gpulse.cli.main import VERBS, _verb_and_options, load, main
from gpulse.cli.options import parse
from gpulse.recordings import demo
from gpulse.recordings.demo import write_history, write_recording
from gpulse.surfaces.query.smi.answers import view_of, view_of_command
from gpulse.surfaces.query.smi.grammar import parse as parse_smi

ROOT = Path(__file__).parents[2]
PAGES = {path.name: path.read_text(encoding="utf-8") for path in (ROOT / "README.md", *(ROOT / "docs").glob("*.md"))}
OPERATORS = {"|", "||", ">", "&", "<"}  # of the shell: what follows is not gpulse's


def commands(page: str) -> list[str]:
    """Return the commands in the code blocks of a page, without comments and without what other programs do with the output."""
    found = []
    for language, block in re.findall(r"```(\w*)\n(.*?)```", page, flags=re.DOTALL):
        for line in block.replace("\\\n", " ").splitlines():
            text = line.strip().removeprefix("$ ") if language == "console" else line.strip()
            if re.match(r"(sudo )?gpulse( |$)", text):
                words = shlex.split(text.removeprefix("sudo "), comments=True)
                end = next((at for at, word in enumerate(words) if word in OPERATORS), len(words))
                found.append(shlex.join(words[:end]))
    return found


def inline(page: str) -> list[str]:
    """Return the commands in running text, which may have placeholders or lack the values of options."""
    return re.findall(r"`(gpulse [a-z-][^`\n]*)`", re.sub(r"```.*?```", "", page, flags=re.DOTALL))


COMMANDS = sorted({command for page in PAGES.values() for command in commands(page)})
INLINE = sorted({command for page in PAGES.values() for command in inline(page)})
# Which commands are not tried here, and why.
NOT_TRIED = {
    r"gpulse (top|demo)\b": "a screen, or takes minutes; tests of its own",
    r"gpulse (serve|mcp)\b": "a server",
    r"gpulse (run|stacks)\b": "needs a program",
    r"gpulse fleet\b": "needs other machines",
    r"gpulse (service|queue|reserve|release)\b": "changes the machine, or names an entry of its own",
    r"gpulse alerts (ack|test|silence --end)\b": "needs an alert, a silence or a delivery",
    r"gpulse config (init|check)\b": "needs or writes the settings of the user",
    r"gpulse runs (open|compare .*4f2a)": "needs a browser or runs with these ids",
    r"gpulse report --compare last$": "needs a recorded run",
    r"gpulse (history|report) --from ": "the demo has only the last ten hours",
    r"gpulse usage .*\.db": "needs the histories of other machines",
    r"gpulse record --history": "the demo is not recorded in this machine's history",
    r"gpulse pick .*--timeout": "waits",
    r"gpulse status --watch|gpulse --watch|-lms 100|-l 1 ": "never ends",
    r"--install|--capture|--source amd:|--job 12345 -o": "needs or writes files of its own",
}
TRIED = [command for command in COMMANDS if not any(re.search(pattern, command) for pattern in NOT_TRIED)]
PLACES = {"4242": "31871", "12345": "48213"}  # a process and a job of the demo
SHORTER = {
    "why": ("--for", "2s"),
    "record": ("--count", "2"),
    "query": ("--count", "2"),
    "replay": ("--speed", "max"),
}
CODES = {"--check": 1}  # something is wrong on the demo


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_is_one_that_gpulse_understands(command: str) -> None:
    name, words = _verb_and_options(shlex.split(command)[1:])
    verb = load(name or "status")
    if not verb.raw:
        parse(verb, words)
    elif "--install" not in words:
        request = parse_smi([word for word in words if word != "--demo"])
        assert view_of_command(request.command, request.rest) if request.command else view_of(request)


@pytest.mark.parametrize("command", INLINE)
def test_a_command_in_the_text_has_a_verb_and_options_that_exist(command: str) -> None:
    words = [word for word in command.split(" -- ")[0].split()[1:] if word[:1].isalpha() or word.startswith("-")]
    verb = load(words[0] if words[0] in VERBS else "status")
    known = {flag for option in verb.options for flag in option.flags}
    assert words[0] in VERBS or words[0].startswith("-"), command
    assert verb.raw or [word for word in words if word.startswith("--") and word.split("=")[0] not in known] == []


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the recordings that the documents name, and one night of the demo."""
    folder = tmp_path_factory.mktemp("documented")
    write_recording(str(folder / "run.ndjson"), time.time(), 20.0)
    for name in ("run.jsonl", "before.ndjson", "after.ndjson", "load.ndjson"):
        shutil.copyfile(folder / "run.ndjson", folder / name)
    (folder / "run.ndjson.gz").write_bytes(gzip.compress((folder / "run.ndjson").read_bytes()))
    write_history(str(folder / "night.db"), time.time())
    return folder


@pytest.fixture
def _home(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "GPULSE_CLAIMS"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setenv("GPULSE_RUNS", str(tmp_path / "runs"))
    monkeypatch.setattr(demo, "write_history", lambda path, now: shutil.copyfile(folder / "night.db", path))
    for path in folder.iterdir():
        (tmp_path / path.name).symlink_to(path)
    monkeypatch.chdir(tmp_path)


def on_the_demo(command: str) -> list[str]:
    """Return the words of a command that is asked of the demo, and that takes as little time as it can."""
    words = [PLACES.get(word, word) for word in shlex.split(command)[1:]]
    verb, recorded = words[0] if words else "", "--source" in words
    if verb == "record":
        words = [f"new-{word}" if ".ndjson" in word else word for word in words]
    shorter = () if recorded or "--since" in words else SHORTER.get(verb, ())
    return [*words, *shorter, *([] if recorded else ["--demo"])]


@pytest.mark.usefixtures("_home")
@pytest.mark.parametrize("command", TRIED)
def test_a_command_answers_on_the_demo(command: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    before = {*tmp_path.iterdir()}
    words = on_the_demo(command)
    code = main(words)
    out, err = capfd.readouterr()
    assert code == next((CODES[word] for word in words if word in CODES), 0), err
    assert out or {*tmp_path.iterdir()} - before, err  # it prints its answer, or writes a file


def test_most_commands_are_tried_and_no_reason_is_without_a_command() -> None:
    assert len(TRIED) > 50
    assert [pattern for pattern in NOT_TRIED if not any(re.search(pattern, command) for command in COMMANDS)] == []
