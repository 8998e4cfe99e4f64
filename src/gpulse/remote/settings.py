"""The machines of a fleet: named in Python or on the command line, as lists of hosts, or in fleet.toml; and those that run
`gpulse serve`, which are asked for their snapshot every interval."""

from __future__ import annotations

import json
import os
import re

from ..errors import ConfigError, GpulseError, UsageError
from ..model.codec import from_plain, time_text
from ..sources.slurm import expanded, gpu_nodes, split_names
from ..store.config import read_config
from ..store.place import config_path
from ..store.secret_file import read_secret
from .fleet import Fleet, PollingFeed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from http.client import HTTPConnection
    from typing import Any

    from ..model.fleet import FleetSnapshot, HostState
    from ..model.snapshot import Snapshot
    from .fleet import Feed
    from .past import Past

_TEXTS = ("address", "token_file", "user", "password_file", "ca_file")
_KEYS = {"url": (*_TEXTS, "headers"), "prometheus": (*_TEXTS, "match", "headers")}


def fleet_path(environ: Mapping[str, str] = os.environ) -> str:
    """Return the file that is read if none is named: fleet.toml beside the settings."""
    return os.path.join(os.path.dirname(config_path(environ)), "fleet.toml")


def read_feeds(path: str, interval: float) -> list[Feed]:
    """Return the feeds of a file, none if it does not exist; raises ConfigError, naming the file and the key."""
    tables = read_config(path)
    for key in tables:
        if key not in ("ssh", *_KEYS):
            raise ConfigError(f"{path}: unknown key {key!r};", "choose from ssh, url and prometheus.")
    urls = [_url(entry, path, "url") for entry in _entries(tables, "url", path)]
    entries = _entries(tables, "prometheus", path)
    servers = [(_url(entry, path, "prometheus"), entry.get("match", "")) for entry in entries]
    return _feeds(_ssh_hosts(tables, path), urls, servers, interval)


def read_hosts(path: str) -> list[str]:
    """Return the names of all machines of a file, for others to scrape; none if it does not exist. Raises ConfigError."""
    tables = read_config(path)
    urls = (_url(entry, path, "url").host for entry in _entries(tables, "url", path))
    return [*_ssh_hosts(tables, path), *urls]


def _ssh_hosts(tables: Mapping[str, Any], path: str) -> list[str]:
    names = tables.get("ssh", [])
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise ConfigError(f"{path}: ssh is not a list of texts;", 'write it as ssh = ["gpu[01-16]"].')
    return parse_hosts(",".join(names))


def _feeds(
    hosts: Sequence[str], urls: Sequence[Url], servers: Iterable[tuple[Url, str]], interval: float
) -> list[Feed]:
    """Return the feeds of hosts over ssh, of machines with `gpulse serve`, and of Prometheus servers, each with a matcher."""
    from .prometheus import PrometheusFeed
    from .ssh import SshFeed

    feeds: list[Feed] = [SshFeed(hosts, interval)] if hosts else []
    feeds += [UrlFeed(urls, interval)] if urls else []
    return feeds + [PrometheusFeed(server, interval, matcher) for server, matcher in servers]


def _entries(tables: Mapping[str, Any], table: str, path: str) -> list[Mapping[str, Any]]:
    found = tables.get(table, [])
    if not isinstance(found, list) or not all(isinstance(entry, dict) for entry in found):
        raise ConfigError(f"{path}: {table} is not a list of tables;", f"write each as lines below [[{table}]].")
    for entry in found:
        for key, value in entry.items():
            if key not in _KEYS[table]:
                raise ConfigError(f"{path}: [[{table}]] has no key {key!r};", f"choose from {', '.join(_KEYS[table])}.")
            fits = isinstance(value, dict) if key == "headers" else isinstance(value, str)
            if not fits:
                raise ConfigError(f"{path}: {key} of [[{table}]] has the wrong type;", "see docs/fleet.md.")
        if "address" not in entry:
            raise ConfigError(f"{path}: a [[{table}]] has no address;", 'write it as address = "http://gpu1:9440".')
    return found


def _url(entry: Mapping[str, Any], path: str, table: str) -> Url:
    token = read_secret(entry["token_file"], f"{path}: token_file") if "token_file" in entry else ""
    headers = {str(key): str(value) for key, value in entry.get("headers", {}).items()}
    if any(not (key + value).isprintable() for key, value in headers.items()):
        raise ConfigError(f"{path}: headers of [[{table}]] have characters that no header may have.")
    if "user" in entry:
        from base64 import b64encode

        password = read_secret(entry["password_file"], f"{path}: password_file") if "password_file" in entry else ""
        pair = f"{entry['user']}:{password}"  # quotes of one kind inside each other need Python 3.12
        headers["Authorization"] = f"Basic {b64encode(pair.encode()).decode()}"
    ca_file = os.path.expanduser(entry["ca_file"]) if "ca_file" in entry else None
    return Url(entry["address"], token, headers, ca_file)


_PATTERN = frozenset("*?!")  # in ~/.ssh/config these make a pattern, not a name
# ssh takes user@host and host names; a leading dash would be an option, and other characters have a meaning for some shell.
_NAME = re.compile(r"^[A-Za-z0-9_][A-Za-z0-9_.@:%+-]*$")


def parse_hosts(text: str, ssh_config: str | None = None) -> list[str]:
    """Return the hosts of a list, each once: `a,b`, `gpu[01-16,20]`, `@FILE` with one entry per line, `config` for ~/.ssh/config,
    `slurm` or `slurm:PARTITION` for the nodes with GPUs.

    Raises UsageError if a file cannot be read, a range is none, or a name cannot be one; GpulseError if Slurm does not answer.
    """
    found: list[str] = []
    for entry in split_names(text):
        if entry.startswith("@"):
            found += [host for line in _lines(entry[1:]) for host in parse_hosts(line, ssh_config)]
        elif entry == "config":
            found += configured_hosts(ssh_config or os.path.expanduser("~/.ssh/config"))
        elif entry == "slurm" or entry.startswith("slurm:"):
            found += _slurm_nodes(entry.removeprefix("slurm").removeprefix(":"))
        else:
            found += expanded(entry)
    for host in found:
        if not _NAME.match(host):
            raise UsageError(f"{host!r} is not a host name;", "write hosts as a,b,gpu[01-16], @FILE, config or slurm.")
    return list(dict.fromkeys(found))


def configured_hosts(path: str) -> list[str]:
    """Return the names after `Host` in an ssh configuration, without patterns; raise UsageError if it cannot be read."""
    words = (line.strip().split() for line in _lines(path))
    return [name for first, *names in words if first.lower() == "host" for name in names if not _PATTERN & set(name)]


def _slurm_nodes(partition: str) -> list[str]:
    if partition and not _NAME.match(partition):
        raise UsageError(f"{partition!r} is not a partition of Slurm;", "write it as slurm:PARTITION.")
    nodes = gpu_nodes(partition)
    if not nodes:
        where = f"partition {partition}" if partition else "any partition"
        raise UsageError(
            f"Slurm has no node with a GPU in {where};", "name the hosts, or look at `sinfo -N -o '%N %G'`."
        )
    return nodes


def _lines(path: str) -> Iterable[str]:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            lines = file.read(1 << 24).splitlines()
    except OSError as error:
        raise UsageError(f"hosts: {path} cannot be read ({error.strerror});", "name another file.") from None
    return [line for line in (line.partition("#")[0].strip() for line in lines) if line]


def fleet(
    *,
    ssh: str | Sequence[str] = (),
    url: str | Sequence[str] = (),
    prometheus: str | Sequence[str] | None = None,
    token: str = "",
    prometheus_token: str = "",
    file: str | None = None,
    timeout: float = 5.0,
) -> FleetSnapshot:
    """Return the newest sample of many machines, each with its state and age; waits at most `timeout` seconds for the last.

    `ssh` are hosts as in `gpulse fleet --ssh`, `url` addresses of `gpulse serve`, `prometheus` that of a Prometheus or
    VictoriaMetrics. `token` is sent only to the machines of `url`, `prometheus_token` only to those of `prometheus`.
    Without any of them, `file` or fleet.toml beside the settings names the machines.
    Raises UsageError if there are none; a machine that cannot be read is no error.
    """
    feeds = named_feeds(ssh, url, prometheus or (), timeout, token, prometheus_token)
    if file is not None or not feeds:
        feeds += read_feeds(file or fleet_path(), timeout)
    if not feeds:
        raise UsageError("no machines were named;", "pass ssh=, url= or prometheus=, or write a fleet.toml.")
    with Fleet(feeds, timeout) as machines:
        machines.wait(timeout)
        return machines.read()


def named_feeds(
    ssh: str | Sequence[str],
    url: str | Sequence[str],
    prometheus: str | Sequence[str],
    interval: float,
    token: str = "",
    prometheus_token: str = "",
) -> list[Feed]:
    """Return the feeds for machines that were named one by one; each kind of server is sent its own token, and no other."""
    urls = [Url(one, token) for one in ([url] if isinstance(url, str) else url)]
    servers = [
        (Url(one, prometheus_token), "") for one in ([prometheus] if isinstance(prometheus, str) else prometheus)
    ]
    return _feeds(parse_hosts(ssh if isinstance(ssh, str) else ",".join(ssh)), urls, servers, interval)


_MOST_PROBLEMS = 1000  # of one machine
_PATIENCE = 5.0  # seconds for one answer
MOST = 1 << 25  # bytes of one answer


class Url:
    """The address of a server, and what it is asked with; raises UsageError if it is no http or https address.

    `token` is sent as a bearer token, `headers` as they are. `ca_file` names the certificates to trust instead of the system's.
    """

    __slots__ = ("base", "ca_file", "headers", "host", "port", "secure")

    def __init__(
        self, text: str, token: str = "", headers: Mapping[str, str] | None = None, ca_file: str | None = None
    ) -> None:
        from urllib.parse import urlsplit

        try:
            parts = urlsplit(text if "//" in text else f"http://{text}")
            self.port, self.host = parts.port, parts.hostname or ""
        except ValueError:
            parts, self.host = urlsplit(""), ""
        if parts.scheme not in ("http", "https") or not self.host:
            raise UsageError(f"{text!r} is not the address of a server;", "write it as http://gpu-box:9440.")
        if parts.username or parts.password:
            raise UsageError(
                f"{self.host}: a password in an address can be seen by everybody;",
                "put user and password_file into the settings file.",
            )
        self.secure = parts.scheme == "https"
        self.base = parts.path.rstrip("/")
        self.headers = {"Accept": "application/json", **(headers or {})}
        if token:
            self.headers["Authorization"] = f"Bearer {token}"
        self.ca_file = ca_file

    @property
    def name(self) -> str:
        """What the machine is called until it says its own name."""
        return self.host if self.port is None else f"{self.host}:{self.port}"

    def connect(self) -> HTTPConnection:
        """Return a connection, which is made with the first request; raises OSError if `ca_file` cannot be read."""
        from http.client import HTTPConnection, HTTPSConnection

        if not self.secure:
            return HTTPConnection(self.host, self.port, timeout=_PATIENCE)
        import ssl

        return HTTPSConnection(
            self.host, self.port, timeout=_PATIENCE, context=ssl.create_default_context(cafile=self.ca_file)
        )

    @property
    def link(self) -> str:
        """The address of its page, without anything secret."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return f"{'https' if self.secure else 'http'}://{host}{port}{self.base}/"

    def fetched(self, path: str) -> bytes:
        """Return the body of an answer, over a connection of its own; raises Refused or OSError."""
        connection = self.connect()
        try:
            return self.answer(connection, path)
        finally:
            connection.close()

    def answer(self, connection: HTTPConnection, path: str) -> bytes:
        """Return the body of an answer with status 200; raises Refused or OSError.

        Redirects are not followed, so that no other server gets the token.
        """
        from http.client import HTTPException

        try:
            connection.request("GET", self.base + path, headers=self.headers)
            response = connection.getresponse()
            body = response.read(MOST + 1)
        except (HTTPException, ValueError) as error:
            raise Refused("failed", f"it does not speak HTTP ({type(error).__name__})") from None
        if response.status in (401, 403):
            raise Refused("denied", "the token is wrong or missing")
        if response.status != 200:
            raise Refused("failed", f"it answers with status {response.status}")
        if len(body) > MOST:
            raise Refused("failed", "its answer is too long")
        return body


class Refused(Exception):
    """An answer that is no snapshot: the state that follows, and why."""

    def __init__(self, state: HostState, reason: str) -> None:
        super().__init__(reason)
        self.state = state
        self.reason = reason


def why_refused(error: Refused | OSError) -> tuple[HostState, str]:
    """Return the state of a machine whose server cannot be read, and why."""
    if isinstance(error, Refused):
        return error.state, error.reason
    return "unreachable", str(error.strerror or error or "no answer")


class UrlFeed(PollingFeed):
    """Asks each server in a thread of its own: one that hangs delays nobody."""

    def __init__(self, urls: Sequence[Url], interval: float = 5.0) -> None:
        super().__init__(interval)
        self._urls = tuple(urls)
        self._named: dict[str, Url] = {}

    @property
    def past(self) -> Past:  # type: ignore[override]
        """The histories that the servers record."""
        from .past import UrlPast

        return UrlPast(self._named)

    def start(self, fleet: Fleet) -> None:
        for url in self._urls:
            name = fleet.expect(url.name, "url", url.link)
            self._named[name] = url
            self._begin(self._poll, fleet, name, url)

    def _poll(self, fleet: Fleet, name: str, url: Url) -> None:
        try:
            connection = url.connect()
        except OSError as error:
            fleet.fail(name, "failed", f"{url.ca_file} cannot be read ({error.strerror or error})")
            return
        for _ in self._rounds():
            try:
                snapshot = snapshot_of(url.answer(connection, "/api/snapshot"))
                fleet.put(name, snapshot, began=_began(url, connection, snapshot.time))
            except (Refused, OSError) as error:
                connection.close()
                fleet.fail(name, *why_refused(error))
        connection.close()


def _began(url: Url, connection: HTTPConnection, now: float) -> Mapping[tuple[str, str], tuple[float, float]]:
    """Return when the problems of a machine began, as it says; nothing if it does not: we see them only since we ask."""
    try:
        return began_of(url.answer(connection, "/api/problems"), now)
    except Refused:
        return {}


def began_of(body: bytes, now: float) -> dict[tuple[str, str], tuple[float, float]]:
    """Return when problems began and the seconds of GPU time they have cost, by condition and UUID, from an answer of /api/problems.

    Times that are no numbers, or after `now` on the clock of that machine, are left out.
    """
    found: dict[tuple[str, str], tuple[float, float]] = {}
    try:
        for problem in json.loads(body)["problems"][:_MOST_PROBLEMS]:
            since, lost, uuids = problem.get("since"), problem.get("lost"), problem.get("uuids")
            if not isinstance(since, (int, float)) or not 0 < since <= now or not isinstance(uuids, list):
                continue
            most = (now - since) * len(uuids)
            cost = lost if isinstance(lost, (int, float)) and 0 <= lost <= most else 0.0
            found |= {(str(problem.get("key")), str(uuid)): (since, cost / len(uuids)) for uuid in uuids}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError, OverflowError):
        return {}
    return found


def snapshot_of(body: bytes) -> Snapshot:
    """Return the snapshot in an answer; raises Refused."""
    try:
        plain = json.loads(body)
        if isinstance(plain, dict) and isinstance(plain.get("time"), (int, float)):
            plain["time"] = time_text(plain["time"])  # the API has numbers, recordings have text
        return from_plain(plain)
    except (ValueError, OverflowError, OSError, RecursionError, GpulseError):
        raise Refused("failed", "its answer is not a snapshot of gpulse") from None
