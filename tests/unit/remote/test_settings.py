"""fleet.toml."""

from __future__ import annotations

from pathlib import Path

import pytest

from gpulse.errors import GpulseError
from gpulse.remote.prometheus import PrometheusFeed
from gpulse.remote.settings import Url, UrlFeed, fleet_path, read_feeds
from gpulse.remote.ssh import SshFeed

EXAMPLE = (Path(__file__).parents[3] / "docs/fleet.md").read_text().partition("```toml\n")[2].partition("```")[0]


def test_the_example_has_all_three_kinds(tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    (tmp_path / "secret").write_text("hunter2\n")
    path.write_text(EXAMPLE.replace("~/.config/gpulse/gpu1.token", str(tmp_path / "secret")).replace(
        "~/.config/gpulse/prometheus.password", str(tmp_path / "secret")))  # fmt: skip
    feeds = read_feeds(str(path), 5.0)
    assert [type(feed) for feed in feeds] == [SshFeed, UrlFeed, PrometheusFeed]


def test_no_file_is_no_feed(tmp_path: Path) -> None:
    assert read_feeds(str(tmp_path / "none.toml"), 5.0) == []


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("hosts = []", "unknown key 'hosts'"),
        ('ssh = "gpu1"', "is not a list"),
        ('url = "http://a"', "is not a list of tables"),
        ("[[url]]\nname = 'a'", "has no key 'name'"),
        ("[[url]]\ntoken_file = 'x'", "has no address"),
        ("[[url]]\naddress = 'http://a'\ntoken_file = '/nonexistent'", "cannot be read"),
        ("[[url]]\naddress = 7", "wrong type"),
        ("[[prometheus]]\naddress = 'http://a:b@c'", "password in an address"),
        ("[[prometheus]]\naddress = 'http://a'\nheaders = {'x' = \"a\\nb\"}", "no header may have"),
        ("ssh = [", "line 1"),
    ],
)
def test_what_is_wrong_is_said_in_one_sentence(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "fleet.toml"
    path.write_text(text)
    with pytest.raises(GpulseError, match=words) as caught:
        read_feeds(str(path), 5.0)
    assert "\n" not in str(caught.value)


def test_the_file_is_beside_the_settings(tmp_path: Path) -> None:
    assert fleet_path({"GPULSE_CONFIG": f"{tmp_path}/config.toml"}) == f"{tmp_path}/fleet.toml"


def test_a_token_is_sent_to_nobody_else_and_a_user_as_basic_auth(tmp_path: Path) -> None:
    assert Url("http://a:9440/base/", "abc").headers["Authorization"] == "Bearer abc"
    assert Url("a", "").headers == {"Accept": "application/json"}
    assert (Url("https://a/base/").base, Url("a:9440").name, Url("a").name) == ("/base", "a:9440", "a")
