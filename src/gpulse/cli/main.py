"""Entry point: find the verb, import only its file, and turn errors into messages on stderr and exit codes."""

from __future__ import annotations

import codecs
import os
import sys

from .. import errors
from ..errors import GpulseError, UsageError
from ..present.text import ascii_only, ascii_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .options import Verb

# Verb and summary. The verb's file is commands/NAME.py.
VERBS = {
    "status": "Show every GPU: utilization, memory, power, and who is using it",
    "top": "Monitor GPUs and processes on a live screen",
    "query": "Query metrics with nvidia-smi's fields and formats",
    "why": "Explain what limits each GPU, with evidence and advice",
    "stacks": "Show what a Python process is executing now, without pausing it",
    "smi": "Run as nvidia-smi: its options, its output, its exit codes",
    "run": "Run a command and report its GPU usage and bottleneck",
    "pick": "Select free GPUs for CUDA_VISIBLE_DEVICES, waiting for them if asked",
    "queue": "Show who waits for GPUs and who holds them until when",
    "reserve": "Reserve GPUs for yourself for some time, now or later",
    "release": "Give back a reservation before it is over",
    "runs": "List past runs, and compare them: speed, commit, what limited them",
    "report": "Summarize a recording, or compare two",
    "record": "Record GPU samples to a file or to this machine's history",
    "replay": "Play back a recording",
    "history": "Query recorded history: metrics, usage by user or job, events",
    "usage": "Account for GPU hours, energy and cost by user, project, job or day",
    "alerts": "List active alerts, silence or acknowledge them, test how they are delivered",
    "fleet": "Show many machines: over ssh, from their servers, or from Prometheus",
    "serve": "Serve a web dashboard, a JSON API and Prometheus metrics",
    "service": "Run `gpulse serve` as a systemd service: show, install or remove its unit",
    "mcp": "Serve read-only GPU tools to AI assistants (Model Context Protocol)",
    "demo": "Walk through gpulse on a simulated machine, in two minutes",
    "metrics": "List every metric with its unit and meaning",
    "config": "Show, check or create the settings file",
    "doctor": "Check drivers, permissions and packages, and explain what is missing",
    "completion": "Print a completion script for bash, zsh or fish",
}
SILENT_PIPE = 141  # the exit code a shell reports for a program killed by SIGPIPE


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; errors caused by the user or the machine never raise."""
    words = _own_words() if argv is None else list(argv)
    _mend_streams()
    before, errors.on_command_line = errors.on_command_line, True
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except GpulseError as error:
        return _fail(f"gpulse: {error}", error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # the reader closed the pipe; the flush at interpreter exit must not fail again
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SILENT_PIPE
    except OSError as error:
        return _fail(f"gpulse: {error.strerror or error}.", 1)
    finally:
        errors.on_command_line = before


def _own_words() -> list[str]:
    """Return the words of the command line; started as nvidia-smi, gpulse is `gpulse smi`."""
    name = os.path.basename(sys.argv[0])
    return ["smi", *sys.argv[1:]] if name == "nvidia-smi" else sys.argv[1:]


def _mend_streams() -> None:
    """Make output safe: replace closed streams with /dev/null, and write in ASCII what a stream or terminal cannot show."""
    codecs.register_error("gpulse", _encodable)
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # replaces the stream until exit
        elif hasattr(stream, "reconfigure"):
            # a pipe may hold a document, which is UTF-8 whatever the terminal can show
            plain = ascii_only(os.environ) and (name == "stderr" or stream.isatty())
            stream.reconfigure(encoding="ascii" if plain else None, errors="gpulse")


def _encodable(error: UnicodeError) -> tuple[str, int]:
    if not isinstance(error, UnicodeEncodeError):
        raise error
    return ascii_text(error.object[error.start : error.end]), error.end


def _run(words: list[str]) -> int:
    name, words = _verb_and_options(words)
    if name == "--version":
        from .._version import __version__

        _say(f"gpulse {__version__}")
        return 0
    if name == "--help":
        from .help import overview, verb_help

        _say(verb_help(load(words[0])) if words else overview())
        return 0
    verb = load(name or "status")
    from .options import parse

    arguments = parse(verb, words)
    if arguments.help:
        from .help import overview, verb_help

        _say(verb_help(verb) if name else overview())
        return 0
    from .state import state_of

    with state_of(verb, arguments) as arguments.state:
        return verb.run(arguments)


def _verb_and_options(words: list[str]) -> tuple[str, list[str]]:
    """Return the verb (empty: none given) and the other words; options may come before the verb.

    --version and --help count as verbs, and what follows --help is the verb it is about.
    """
    at = _position(words) if words and words[0].startswith("-") else 0
    before, name, after = words[:at], "".join(words[at : at + 1]), words[at + 1 :]
    if name in ("--version", "-V"):
        return "--version", []
    if name in ("--help", "-h", "help"):
        return "--help", [word for word in after if not word.startswith("-")][:1]
    if name.startswith("-"):  # not an option of status: its parser explains the error
        return "", words
    return name, before + after


def _position(words: list[str]) -> int:
    """Return where the verb is after leading options, which may be those of status or of the verb itself."""
    from .options import skip_options

    first = skip_options(load("status"), words, VERBS)
    for at, verb in enumerate(words):
        if verb in VERBS and at > first and skip_options(load(verb), words, VERBS) == at:
            return at
    return first


def load(name: str) -> Verb:
    """Import the file of a verb; raise UsageError if the verb is unknown."""
    if name not in VERBS:
        from ..model.select import did_you_mean

        raise UsageError(f"unknown verb {name!r}{did_you_mean(name, VERBS)}", "see `gpulse --help`.")
    module = __import__(f"gpulse.cli.commands.{name}", fromlist=["VERB"])
    verb: Verb = module.VERB
    return verb


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")


def _fail(text: str, code: int) -> int:
    try:
        sys.stderr.write(f"{text}\n")
        sys.stderr.flush()
    except OSError:
        pass  # stderr is closed too
    return code
