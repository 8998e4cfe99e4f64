"""Which of the processes on the GPUs belong to model servers of this user, and where these listen on this machine.

Ports are asked only of processes whose command lines are those of servers: a training listens, too, and its ports are no place
for HTTP. What listens only on an outward address is asked if the settings name it.
"""

from __future__ import annotations

import os
import re
import socket
import struct

from ..model.serving import server_kind
from ..sources.files import link, names, read_bytes, read_environ
from ..sources.processes import parse_stat
from ..value import Value, fresh
from .settings import Address

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping
    from typing import Any


_MOST_PORTS = 4  # asked per server
_SKIPPED = 2  # processes between the one on the GPU and the first with the words of a server: spawned workers have none
_DEEPEST = 16
_SHELLS = ("tmux", "screen", "systemd", "sshd", "jupyter", "code-server")  # everything runs below them
_PORT = re.compile(r"(?:--[a-z-]*port|(?<![a-z-])-p)[= ](\d{1,5})\b")
_PATH = re.compile(r"(?:--model-id|--model-path|--model|(?<![a-z-])-m|\bvllm serve)[= ]([^-\s]\S*)")
_NAME = re.compile(r"(?:--served-model-name|--alias)[= ]([^-\s]\S*)")
_TABLE = 1 << 18  # bytes: the kernel lists sockets that listen first
_LISTENS = "0A"


class FoundServer(Value):
    """A server: its kind, its main process, its processes on GPUs, and the addresses to ask, likeliest first.

    `outward` are those that cannot be reached over loopback, and so are not asked.
    """

    kind: str
    pid: int
    pids: tuple[int, ...]
    command: str
    addresses: list[Address] = fresh(factory=list)
    outward: list[Address] = fresh(factory=list)

    @property
    def path(self) -> str:
        """The model that the command line names: a file, a folder or a name of Hugging Face's hub; or an empty text."""
        found = _PATH.search(self.command)
        return found[1] if found else ""

    @property
    def model(self) -> str:
        """What the model is called, as far as the command line says."""
        if found := _NAME.search(self.command):
            return found[1]
        path = self.path.rstrip("/")
        return path.rpartition("/")[2] if path.startswith(("/", ".", "~")) else path


class _Process:
    __slots__ = ("command", "kind", "name", "parent", "pid")

    def __init__(self, pid: int, parent: int, name: str, words: list[str]) -> None:
        self.pid = pid
        self.parent = parent
        self.name = name
        self.command = " ".join(words)
        self.kind = "" if name.startswith(_SHELLS) else server_kind(f"{name} {_program(words)}")


class Discovery:
    """Looks for servers below /proc; `root` is prefixed to it, for tests."""

    def __init__(self, root: str = "", ports: Mapping[str, Collection[int]] | None = None) -> None:
        self._proc = f"{root}/proc"
        self._usual = dict(ports or {})
        self._uid = os.geteuid()

    def find(self, pids: Collection[int]) -> list[FoundServer]:
        """Return the servers that these processes belong to; the ports of another user's processes are never looked up."""
        groups: dict[int, tuple[_Process, list[int]]] = {}
        for pid in pids:
            if (main := self._main(pid)) is not None:
                groups.setdefault(main.pid, (main, []))[1].append(pid)
        if not groups:
            return []
        children = self._children()
        ours = link(f"{self._proc}/self/ns/net")
        found = []
        for main, on_gpus in groups.values():
            server = FoundServer(main.kind, main.pid, tuple(sorted(on_gpus)), main.command)
            members = list(_tree(main.pid, children))
            commands = [process for pid in members if (process := self._process(pid)) is not None]
            self._add_addresses(server, [one.pid for one in commands], " ".join(one.command for one in commands), ours)
            found.append(server)
        return found

    def _main(self, pid: int) -> _Process | None:
        """Return the highest of the processes above this one that is still part of the server; None if it is no server."""
        main: _Process | None = None
        skipped = 0
        for _ in range(_DEEPEST):
            process = self._process(pid) if pid > 1 else None
            if process is None:
                break
            if process.kind:
                main = process
            elif main is not None or skipped == _SKIPPED:
                break
            else:
                skipped += 1
            pid = process.parent
        return main

    def _process(self, pid: int) -> _Process | None:
        """Read a process of this user; None for one of somebody else, and one that has ended."""
        folder = f"{self._proc}/{pid}"
        try:
            if os.stat(folder).st_uid != self._uid:
                return None
        except OSError:
            return None
        stat = parse_stat(read_bytes(f"{folder}/stat", 4096) or b"")
        if stat is None:
            return None
        words = (read_bytes(f"{folder}/cmdline", 16384) or b"").rstrip(b"\0").decode("utf-8", "replace").split("\0")
        return _Process(pid, stat.parent, stat.name, words)

    def _children(self) -> dict[int, list[int]]:
        found: dict[int, list[int]] = {}
        for name in names(self._proc):
            if name.isdecimal() and (stat := parse_stat(read_bytes(f"{self._proc}/{name}/stat", 4096) or b"")):
                found.setdefault(stat.parent, []).append(int(name))
        return found

    def _add_addresses(self, server: FoundServer, members: list[int], commands: str, namespace: str) -> None:
        listening: dict[int, tuple[Address, bool]] = {}  # by port, with whether its process only serves
        tables: dict[str, dict[str, tuple[str, int]]] = {}
        for pid in members:
            where = link(f"{self._proc}/{pid}/ns/net")
            if where != namespace:
                continue  # in a container with a network of its own, 127.0.0.1 is another machine
            if where not in tables:
                tables[where] = dict(self._listening(pid))
            for inode in self._sockets(pid):
                if inode in tables[where]:
                    host, port = tables[where][inode]
                    loopback = _loopback(host)
                    if not loopback:
                        server.outward.append(Address(host, port))
                    elif port not in listening:
                        listening[port] = Address(loopback, port), pid not in server.pids or len(members) == 1
        named = [int(port) for port in _PORT.findall(commands)]
        usual = [*self._usual.get(server.kind, ())]
        fronts = [port for port, (_, front) in listening.items() if front] or list(listening)
        ranked = dict.fromkeys(port for port in (*named, *usual, *sorted(fronts)) if port in listening)
        server.addresses = [listening[port][0] for port in ranked][:_MOST_PORTS]

    def _sockets(self, pid: int) -> Iterator[str]:
        folder = f"{self._proc}/{pid}/fd"
        for descriptor in names(folder):
            target = link(f"{folder}/{descriptor}")
            if target.startswith("socket:["):
                yield target[8:-1]

    def _listening(self, pid: int) -> Iterator[tuple[str, tuple[str, int]]]:
        """Yield inode, host and port of the sockets of this user that listen."""
        for table in ("tcp", "tcp6"):
            content = (read_bytes(f"{self._proc}/{pid}/net/{table}", _TABLE) or b"").decode("ascii", "replace")
            for line in content.splitlines()[1:]:
                words = line.split()
                if len(words) > 9 and words[3] == _LISTENS and words[7] == str(self._uid):
                    host, _, port = words[1].partition(":")
                    try:
                        yield words[9], (_host(host), int(port, 16))
                    except (ValueError, OSError, struct.error):
                        continue


def _program(words: list[str]) -> str:
    """Return the program of a command line and what an interpreter runs, not its arguments: these may name anything."""
    named = [words[0].rpartition("/")[2]]
    for at, word in enumerate(words[1:], 1):
        if word == "-m":
            named += words[at + 1 : at + 2]
            break
        if not word.startswith("-"):
            named.append(word.rpartition("/")[2])
            break
    return " ".join(named)


def _tree(root: int, children: Mapping[int, list[int]]) -> Iterator[int]:
    waiting, seen = [root], {root}
    while waiting:
        pid = waiting.pop(0)
        yield pid
        fresh = [child for child in children.get(pid, ()) if child not in seen]
        seen.update(fresh)
        waiting += fresh


def _host(text: str) -> str:
    """Return an address as the kernel writes it: words of four bytes, each in the order of this machine."""
    words = struct.pack(f"={len(text) // 8}I", *(int(text[at : at + 8], 16) for at in range(0, len(text), 8)))
    return socket.inet_ntop(socket.AF_INET if len(words) == 4 else socket.AF_INET6, words)


def _loopback(host: str) -> str:
    """Return the loopback address by which a socket can be reached, or an empty text."""
    if host == "0.0.0.0" or host.startswith(("127.", "::ffff:127.")):
        return host.removeprefix("::ffff:") if host != "0.0.0.0" else "127.0.0.1"
    return "::1" if host in ("::", "::1") else ""


_WEIGHTS = (".safetensors", ".gguf")
_BYTES = {"float32": 4, "float16": 2, "bfloat16": 2, "fp8": 1, "fp8_e4m3": 1, "fp8_e5m2": 1}


class ModelFiles(Value):
    """The files of one model: `weights` in bytes, and `token` bytes of the cache per token; None where they do not say."""

    weights: float | None
    token: float | None

    def add_to(self, gauges: dict[str, float]) -> None:
        """Add the memory of weights and cache to the figures of a server, which may state the tokens its cache has room for."""
        if self.weights is not None:
            gauges["memory_weights"] = self.weights
        if self.token is not None and "capacity" in gauges:
            gauges["memory_cache"] = gauges["capacity"] * self.token


def model_files(server: FoundServer, root: str = "") -> ModelFiles | None:
    """Return the files of the model that a server of this user was started with; None if they are not found."""
    model = server.path
    if not model:
        return None
    process = f"{root}/proc/{server.pid}"
    for folder in _folders(model, read_environ(f"{process}/environ"), link(f"{process}/cwd") or "/"):
        if os.path.isfile(folder):
            return ModelFiles(_size(folder) or None, None)
        sizes = [_size(os.path.join(folder, name)) for name in names(folder) if name.endswith(_WEIGHTS)]
        if sizes:
            return ModelFiles(float(sum(sizes)), _token_bytes(os.path.join(folder, "config.json"), server.command))
    return None


def _folders(model: str, environ: dict[str, str], working: str) -> list[str]:
    """Return where the model may be: a path, or the cache of Hugging Face's hub."""
    if model.startswith(("/", ".", "~")) or model.endswith(".gguf"):
        return [os.path.join(working, os.path.expanduser(model))]
    home = environ.get("HF_HOME") or os.path.join(environ.get("HOME", ""), ".cache/huggingface")
    hub = environ.get("HF_HUB_CACHE") or os.path.join(home, "hub")
    snapshots = os.path.join(hub, f"models--{model.replace('/', '--')}", "snapshots")
    return [os.path.join(working, model), *(os.path.join(snapshots, name) for name in names(snapshots))]


def _token_bytes(path: str, command: str) -> float | None:
    """Return the bytes that one token takes in the cache: keys and values of all layers."""
    import json

    try:
        config: Any = json.loads(read_bytes(path, 1 << 20) or b"")
        config = config.get("text_config", config)
        layers = int(config["num_hidden_layers"])
        if "kv_lora_rank" in config:  # latent attention keeps one vector instead of keys and values
            width = int(config["kv_lora_rank"]) + int(config["qk_rope_head_dim"])
        else:
            heads = int(config["num_attention_heads"])
            size = int(config.get("head_dim") or int(config["hidden_size"]) // heads)
            width = 2 * int(config.get("num_key_value_heads") or heads) * size
        kept = command.partition("--kv-cache-dtype")[2].lstrip(" =").partition(" ")[0]
        kind = kept if kept in _BYTES else str(config.get("dtype") or config.get("torch_dtype") or "bfloat16")
        return float(layers * width * _BYTES.get(kind, 2))
    except (ValueError, TypeError, KeyError, AttributeError, ZeroDivisionError):
        return None


def _size(path: str) -> int:
    try:
        return os.stat(path).st_size
    except OSError:
        return 0
