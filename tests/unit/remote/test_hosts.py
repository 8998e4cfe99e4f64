"""Lists of hosts: names, ranges, files and ~/.ssh/config."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.errors import UsageError
from gpulse.remote.settings import parse_hosts
from gpulse.sources.slurm import expanded


@pytest.mark.parametrize(
    ("text", "hosts"),
    [
        ("a,b", ["a", "b"]),
        ("a b\tc", ["a", "b", "c"]),
        ("a,a,b", ["a", "b"]),
        ("ada@gpu1.example.org", ["ada@gpu1.example.org"]),
        ("gpu[01-03,7]", ["gpu01", "gpu02", "gpu03", "gpu7"]),
        ("r[1-2]n[1-2],x", ["r1n1", "r1n2", "r2n1", "r2n2", "x"]),
        ("", []),
    ],
)
def test_names_and_ranges(text: str, hosts: list[str]) -> None:
    assert parse_hosts(text) == hosts


@pytest.mark.parametrize(
    "text", ["-oProxyCommand=x", "a;b", "$(id)", "a`b`", "gpu[1-]", "gpu[3-1]", "gpu[0-99999]", "[", "a/b", "'a'"]
)
def test_what_is_no_host_is_refused(text: str) -> None:
    with pytest.raises(UsageError):
        parse_hosts(text)


def test_a_file_has_one_entry_per_line_and_comments(tmp_path: Path) -> None:
    path = tmp_path / "hosts"
    path.write_text("# machines\ngpu1\n\n gpu[2-3]  # new ones\n")
    assert parse_hosts(f"@{path},gpu9") == ["gpu1", "gpu2", "gpu3", "gpu9"]


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="cannot be read"):
        parse_hosts(f"@{tmp_path}/none")


def test_names_of_the_ssh_configuration_without_patterns(tmp_path: Path) -> None:
    path = tmp_path / "config"
    path.write_text("Host gpu1 gpu2\n  HostName 10.0.0.1\nHost *\n  User ada\nhost box !bad\n")
    assert parse_hosts("config", str(path)) == ["gpu1", "gpu2", "box"]


@given(st.lists(st.integers(0, 9999), min_size=1, max_size=20), st.integers(1, 4))
def test_a_range_names_as_many_hosts_as_it_has_numbers(numbers: list[int], digits: int) -> None:
    text = f"n[{','.join(f'{number:0{digits}d}' for number in numbers)}]"
    assert expanded(text) == [f"n{number:0{digits}d}" for number in numbers]
