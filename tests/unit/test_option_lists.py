"""Options that take a list, in every verb: repeating one is the same as separating its values by commas."""

from __future__ import annotations

import pytest

from gpulse.cli.main import VERBS, load
from gpulse.cli.options import Option, Verb, parse
from gpulse.errors import UsageError
from gpulse.surfaces.query.smi.grammar import parse as parse_smi

# Two values for each placeholder of a list.
VALUES = {
    "LIST": ("user", "host"),
    "METRICS": ("utilization", "power_draw"),
    "NAMES": ("bar1_used", "serial"),
    "FIELDS": ("index", "name"),
    "FILES": ("a.json", "b.json"),
    "HOSTS": ("gpu[01-03,7]", "@hosts"),
    "URLS": ("http://a:9440", "http://b:9440"),
    "COLUMNS": ("-cpu_percent", "pid"),
    "SECTIONS": ("MEMORY", "POWER"),
}
LISTS = [(verb, option) for verb in map(load, VERBS) if not verb.raw for option in verb.options if option.many]
NAMED = [(verb, option, flag) for verb, option in LISTS if not option.positional for flag in option.flags]
IDS = [f"{verb.name} {flag}" for verb, _, flag in NAMED]


def given(verb: Verb, option: Option, *words: str) -> object:
    return getattr(parse(verb, list(words)), option.name)


def test_every_option_that_names_several_things_is_a_list() -> None:
    """A placeholder in the plural, or help that speaks of commas, promises a list."""
    single = {"SECONDS", "MS", "GROUPS", "GRAMS"}  # one number, or letters in one word
    promised = [
        f"{verb.name} {option.flags[0]}"
        for verb in map(load, VERBS)
        if not verb.raw
        for option in verb.options
        if option.value and not option.positional and not option.many
        if (option.value.endswith("S") and option.value not in single)
        or option.value == "LIST"
        or "by commas" in option.help
    ]
    assert promised == []
    assert len(IDS) > 50  # --gpu alone has three flags in a dozen verbs


@pytest.mark.parametrize(("verb", "option", "flag"), NAMED, ids=IDS)
def test_a_repeated_list_is_the_same_as_one_with_commas(verb: Verb, option: Option, flag: str) -> None:
    first, second = VALUES[option.value]
    together = given(verb, option, flag, f"{first},{second}")
    assert given(verb, option, flag, first, flag, second) == together
    assert together not in (given(verb, option, flag, first), given(verb, option, flag, second))
    if flag.startswith("--"):
        assert given(verb, option, f"{flag}={first}", f"{flag}={second}") == together
    mixed = (flag, f"{first},{second}", option.flags[0], first)
    assert given(verb, option, *mixed) == given(verb, option, flag, f"{first},{second},{first}")


@pytest.mark.parametrize("verb", [verb for verb in map(load, VERBS) if not verb.raw], ids=lambda verb: verb.name)
def test_of_an_option_with_one_value_the_last_counts(verb: Verb) -> None:
    for option in verb.options:
        if option.name == "color":
            assert given(verb, option, "--color", "never", "--color", "always") == "always"
        if option.name == "source":
            assert given(verb, option, "--source", "amd", "--source", "nvidia") == "nvidia"


def test_an_empty_value_of_a_repeated_list_is_still_refused() -> None:
    with pytest.raises(UsageError, match="empty list"):
        parse(load("fleet"), ["--url", "http://a", "--url", ","])


def test_a_wrong_value_of_a_repeated_list_is_quoted_alone() -> None:
    with pytest.raises(UsageError, match="unknown column 'nonsense'"):
        parse(load("top"), ["--sort", "pid", "--sort", "nonsense"])


@pytest.mark.parametrize(
    ("words", "option", "expected"),
    [
        (["-i", "0", "-i", "2", "--query-gpu=index", "--format=csv"], "--id", "0,2"),
        (["--query-gpu=index", "--query-gpu=name", "--format=csv"], "--query-gpu", "index,name"),
        (["-q", "-d", "MEMORY", "--display=POWER"], "--display", "MEMORY,POWER"),
        (["--query-gpu=index", "--format=csv", "--format=csv,noheader"], "--format", "csv,noheader"),
    ],
)
def test_smi_takes_repeated_lists_too(words: list[str], option: str, expected: str) -> None:
    assert parse_smi(words).get(option) == expected
