"""The Python face: one look at many machines."""

from __future__ import annotations

from ..errors import UsageError
from .fleet import Fleet

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..model.fleet import FleetSnapshot
    from .fleet import Feed


def fleet(
    *,
    ssh: str | Sequence[str] = (),
    url: str | Sequence[str] = (),
    prometheus: str | None = None,
    token: str = "",
    file: str | None = None,
    timeout: float = 5.0,
) -> FleetSnapshot:
    """Return the newest sample of many machines, each with its state and age; waits at most `timeout` seconds for the last.

    `ssh` are hosts as in `gpulse fleet --ssh`, `url` addresses of `gpulse serve`, `prometheus` that of a Prometheus or
    VictoriaMetrics; `token` is sent to the last two. Without any of them, `file` or fleet.toml beside the settings names the machines.
    Raises UsageError if there are none; a machine that cannot be read is no error.
    """
    from .settings import fleet_path, read_feeds

    feeds = named_feeds(ssh, url, prometheus, token, timeout)
    if file is not None or not feeds:
        feeds += read_feeds(file or fleet_path(), timeout)
    if not feeds:
        raise UsageError("no machines were named;", "pass ssh=, url= or prometheus=, or write a fleet.toml.")
    with Fleet(feeds, timeout) as machines:
        machines.wait(timeout)
        return machines.read()


def named_feeds(
    ssh: str | Sequence[str], url: str | Sequence[str], prometheus: str | None, token: str, interval: float
) -> list[Feed]:
    """Return the feeds for machines that were named one by one."""
    from .hosts import parse_hosts
    from .prometheus import PrometheusFeed
    from .ssh import SshFeed
    from .urls import Url, UrlFeed

    feeds: list[Feed] = []
    if hosts := parse_hosts(ssh if isinstance(ssh, str) else ",".join(ssh)):
        feeds.append(SshFeed(hosts, interval))
    if url:
        feeds.append(UrlFeed([Url(one, token) for one in ([url] if isinstance(url, str) else url)], interval))
    if prometheus:
        feeds.append(PrometheusFeed(Url(prometheus, token), interval))
    return feeds
