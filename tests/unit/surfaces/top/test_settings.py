"""Settings survive a round trip, and a wrong one never costs more than itself."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.store.config import read_config, write_table
from gpulse.surfaces.top.state import CHARTS, COLUMNS, INTERVALS, PANELS, ScreenSettings, column_title

_ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


def _some(words: tuple[str, ...], least: int) -> st.SearchStrategy[list[str]]:
    return st.lists(st.sampled_from(words), unique=True, min_size=least)


_GOOD = st.fixed_dictionaries(
    {},
    optional={
        "interval": st.floats(0.1, 3600),
        "columns": _some(COLUMNS, 1),
        "charts": _some(CHARTS, 1),
        "sort": st.sampled_from(COLUMNS),
        "falling": st.booleans(),
        "fahrenheit": st.booleans(),
        "decimal": st.booleans(),
        "panels": _some(PANELS, 0),
    },
)


@given(values=_GOOD)
def test_what_was_chosen_comes_back(values: dict[str, Any]) -> None:
    settings, wrong = ScreenSettings.load(values)
    assert wrong == []
    assert settings.values() == {**ScreenSettings().values(), **values}
    assert settings.unknown == {}


def test_the_defaults_are_themselves_good() -> None:
    settings, wrong = ScreenSettings.load(ScreenSettings().values())
    assert wrong == []
    assert settings.values() == ScreenSettings().values()
    assert settings.interval in INTERVALS


@given(values=st.dictionaries(st.sampled_from(sorted(ScreenSettings().values())), _ANYTHING))
def test_anything_may_be_in_the_file(values: dict[str, Any]) -> None:
    settings, _ = ScreenSettings.load(values)
    again, wrong = ScreenSettings.load(settings.values())
    assert wrong == []
    assert again.values() == settings.values()


@pytest.mark.parametrize(
    ("key", "value", "sentence"),
    [
        ("interval", "fast", "interval: 'fast' is not a number of seconds."),
        ("interval", True, "interval: True is not a number of seconds."),
        ("interval", 0, "interval: 0 s is not between 0.1 and 3600 s."),
        ("interval", math.nan, "interval: nan s is not between 0.1 and 3600 s."),
        ("sort", "memory_usd", "sort: unknown column 'memory_usd' (did you mean 'memory_used'"),
        ("falling", 1, "falling: 1 is neither true nor false."),
        ("decimal", "yes", "decimal: 'yes' is neither true nor false."),
        ("columns", "pid", "columns: 'pid' is not a list of columns."),
        ("columns", [], "columns: there must be at least one column."),
        ("charts", ["utilisation"], "charts: unknown chart metric 'utilisation' (did you mean 'utilization'"),
        ("charts", ["name"], "charts: unknown chart metric 'name'"),
        ("panels", ["gpus!"], "panels: unknown panel 'gpus!'"),
    ],
)
def test_a_wrong_value_is_a_sentence_and_the_default(key: str, value: object, sentence: str) -> None:
    settings, wrong = ScreenSettings.load({key: value, "fahrenheit": True})
    assert len(wrong) == 1
    assert wrong[0].startswith(sentence)
    assert settings.values() == {**ScreenSettings().values(), "fahrenheit": True}


def test_a_wrong_word_in_a_list_does_not_cost_the_others() -> None:
    settings, wrong = ScreenSettings.load({"columns": ["pid", "clor", "user", "pid", 3]})
    assert settings.columns == ["pid", "user"]
    assert [sentence.split(" (")[0].rstrip(".") for sentence in wrong] == [
        "columns: unknown column 'clor'",
        "columns: unknown column 3",
    ]


def test_what_is_no_table_is_a_sentence_and_the_defaults() -> None:
    settings, wrong = ScreenSettings.load(3)
    assert wrong == ["top: 3 is not a table."]
    assert settings.values() == ScreenSettings().values()


def test_a_long_value_does_not_make_a_long_sentence() -> None:
    assert len(ScreenSettings.load({"sort": "x" * 1000})[1][0]) < 100


def test_keys_of_another_version_are_kept_aside() -> None:
    settings, wrong = ScreenSettings.load({"sparkle": [1], "interval": 2})
    assert (settings.unknown, wrong) == ({"sparkle": [1]}, [])
    assert "sparkle" not in settings.values()
    assert (settings.interval, type(settings.interval)) == (2.0, float)


def test_the_values_are_copies() -> None:
    settings = ScreenSettings()
    settings.values()["columns"].clear()
    assert settings.columns == ScreenSettings().columns


def test_they_fit_the_configuration_file(tmp_path: Path) -> None:
    path = str(tmp_path / "config.toml")
    chosen, _ = ScreenSettings.load({"interval": 0.5, "columns": ["pid", "command"], "theme": "blind", "panels": []})
    write_table(path, "top", chosen.values())
    found, wrong = ScreenSettings.load(read_config(path)["top"])
    assert wrong == []
    assert found.values() == chosen.values()


def test_every_column_has_a_title_of_its_own() -> None:
    titles = [column_title(column) for column in COLUMNS]
    assert len(set(titles)) == len(titles)
    assert (COLUMNS[0], titles[0]) == ("gpu", "GPU")
