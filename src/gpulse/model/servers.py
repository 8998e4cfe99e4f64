"""Programs that serve models, and those that reserve memory at their start, known by their command lines."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re

    from .catalog import Process

# Words of command lines. Where a server says of itself how it is doing, its kind: the name of a module of `serving.kinds`.
# True for servers that reserve nearly all of the memory at their start, or step by step, whatever they need of it.
_SERVERS = {
    "vllm": (True, "vllm"),
    "sglang": (True, "sglang"),
    "tritonserver": (True, "triton"),
    "triton_python_backend_stub": (True, "triton"),
    "tensorflow_model_server": (True, ""),
    "trtllm": (True, ""),
    "text-generation": (True, "tgi"),
    "lmdeploy": (True, ""),
    "nim_llm": (True, "nim"),
    "ollama": (False, "ollama"),
    "llama-server": (False, "llama.cpp"),
    "uvicorn": (False, ""),
    "gunicorn": (False, ""),
    "api_server": (False, ""),
    "serve": (False, ""),
    "servereplica": (False, "vllm"),  # of Ray Serve
    "raylet": (False, "vllm"),
}
_FRAMEWORKS = ("tensorflow", "jax")  # reserve memory at the start of any program


def mentions_server(text: str) -> bool:
    """Return whether a text may be the command line of a server that tells how it is doing; costs less than to know."""
    lowered = text.lower()
    return any(name in lowered for name in _GROUPS["tell"])


def server_kind(words: str) -> str:
    """Return the kind of the server that a name or command line is of; empty if it is of none that tells how it is doing."""
    return next((kind for word in _whole("tell").findall(words.lower()) if (kind := _SERVERS[word][1])), "")


def serves(process: Process | None) -> bool:
    """Return whether a process looks like a server of models, which waits for requests."""
    return _whole("serve").search(_words(process)) is not None


def preallocates(process: Process | None) -> bool:
    """Return whether a process looks like one that reserves memory ahead of need, so that a full GPU says nothing."""
    return _whole("reserve").search(_words(process)) is not None


def shareable_words(process: Process) -> str:
    """Return what a command line says about its kind of program, and nothing else of it."""
    return " ".join(dict.fromkeys(_whole("known").findall(_words(process))))


def _words(process: Process | None) -> str:
    return "" if process is None else f"{process.name or ''} {process.command or ''}".lower()


def _whole(group: str) -> re.Pattern[str]:
    """Return a pattern for the words of a group: observe.py does not serve, and train_triton.py is no tritonserver."""
    if group not in _patterns:
        import re  # a glance at the GPUs does without

        names = "|".join(map(re.escape, _GROUPS[group]))
        _patterns[group] = re.compile(rf"(?<![a-z0-9])(?:{names})(?![a-z0-9])")
    return _patterns[group]


_patterns: dict[str, re.Pattern[str]] = {}
_GROUPS = {
    "serve": [*_SERVERS],
    "known": [*_SERVERS, *_FRAMEWORKS],
    "tell": [name for name, (_, kind) in _SERVERS.items() if kind],
    "reserve": [*(name for name, (reserves, _) in _SERVERS.items() if reserves), *_FRAMEWORKS],
}
