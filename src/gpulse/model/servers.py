"""Programs that serve models, and those that reserve memory at their start, known by their command lines."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .catalog import Process

# True for servers that reserve nearly all of the memory at their start, or step by step, whatever they need of it.
_SERVERS = {
    "vllm": True,
    "sglang": True,
    "tritonserver": True,
    "tensorflow_model_server": True,
    "trtllm": True,
    "text-generation": True,
    "lmdeploy": True,
    "ollama": False,
    "llama-server": False,
    "uvicorn": False,
    "gunicorn": False,
    "api_server": False,
    "serve": False,
    "servereplica": False,  # of Ray Serve
}
_FRAMEWORKS = ("tensorflow", "jax")  # reserve memory at the start of any program


def serves(process: Process | None) -> bool:
    """Return whether a process looks like a server of models, which waits for requests."""
    return _SERVES.search(_words(process)) is not None


def preallocates(process: Process | None) -> bool:
    """Return whether a process looks like one that reserves memory ahead of need, so that a full GPU says nothing."""
    return _PREALLOCATES.search(_words(process)) is not None


def shareable_words(process: Process) -> str:
    """Return what a command line says about its kind of program, and nothing else of it."""
    return " ".join(dict.fromkeys(_KNOWN.findall(_words(process))))


def _words(process: Process | None) -> str:
    return "" if process is None else f"{process.name or ''} {process.command or ''}".lower()


def _any_of(names: list[str]) -> re.Pattern[str]:
    """Return a pattern for whole words: observe.py does not serve, and train_triton.py is no tritonserver."""
    return re.compile(rf"(?<![a-z0-9])(?:{'|'.join(map(re.escape, names))})(?![a-z0-9])")


_SERVES = _any_of([*_SERVERS])
_KNOWN = _any_of([*_SERVERS, *_FRAMEWORKS])
_PREALLOCATES = _any_of([*(name for name, reserves in _SERVERS.items() if reserves), *_FRAMEWORKS])
