"""The way in: a verb's name to its file, nothing imported until it is named; errors to stderr and exit codes."""

from __future__ import annotations

import os
import sys

from ..errors import GpulseError, UsageError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from .options import Verb

# One line a verb: its name, and what it does. Its file is commands/NAME.py.
VERBS = {
    "status": "One glance: what every GPU does and who uses it",
    "top": "The live screen: GPUs, charts, processes, the last minutes",
    "query": "nvidia-smi's own words: fields, CSV, loops, logs; and more",
    "run": "A command, watched: what it did, on which GPUs, and why it was slow",
    "pick": "Free GPUs, for CUDA_VISIBLE_DEVICES; can wait for them",
    "report": "What a recording says: summary, charts, events; two compared",
    "record": "Keep what the GPUs do in a file, a line a sample",
    "replay": "Play a recording: pause, step, seek, any speed",
    "history": "Looking back: figures, plots, who used what, what happened",
    "serve": "A page, an API and Prometheus' text for all who watch this machine",
    "metrics": "The catalog: every metric, its unit and meaning",
    "doctor": "What was found, what is missing and how to get it",
    "completion": "Completions for bash, zsh or fish",
}
SILENT_PIPE = 141  # what a shell reports for a program that SIGPIPE ended


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line and return its exit code; never raises for what a user or a machine can do."""
    words = list(sys.argv[1:] if argv is None else argv)
    _mend_streams()
    try:
        code = _run(words)
        sys.stdout.flush()
        return code
    except GpulseError as error:
        return _fail(f"gpulse: {error}", error.exit_code)
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        # whoever read us has left; closing stdout again at exit must not complain
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return SILENT_PIPE
    except OSError as error:
        return _fail(f"gpulse: {error.strerror or error}.", 1)


def _mend_streams() -> None:
    """Make output safe: a closed stream swallows, and a character the stream cannot write is spelled out."""
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w"))  # noqa: SIM115  # it stands in for the stream as long as we run
        elif hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")


def _run(words: list[str]) -> int:
    if words and words[0] in ("--version", "-V"):
        from .._version import __version__

        _say(f"gpulse {__version__}")
        return 0
    if words and words[0] in ("--help", "-h", "help"):
        from .help import overview, verb_help

        _say(verb_help(load(words[1])) if len(words) > 1 else overview())
        return 0
    name = words.pop(0) if words and not words[0].startswith("-") else "status"
    verb = load(name)
    from .options import parse

    arguments = parse(verb, words)
    if arguments.help:
        from .help import verb_help

        _say(verb_help(verb))
        return 0
    return verb.run(arguments)


def load(name: str) -> Verb:
    """Import the file of a verb; raise UsageError when there is none."""
    if name not in VERBS:
        from ..model.select import nearest

        close = nearest(name, VERBS)
        hint = f"; did you mean {close[0]}?" if close else "."
        raise UsageError(f"there is no verb {name!r}{hint}", "`gpulse --help` lists them.")
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
        pass  # nobody is there to be told
    return code
