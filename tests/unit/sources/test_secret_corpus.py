"""A corpus of command lines: no ordinary secret is shown, and what is no secret stays readable."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from gpulse.sources.secrets import MASK, mask
from tests.unit.sources.command_lines import SECRETS, with_secrets, without_secrets

_DASHED = ("-Zk39fjQ2w", "-correct-horse")
_PART = 6  # characters of a secret that are too many to show


def _shows(shape: str, secret: str) -> bool:
    shown = mask([word.replace("§", secret) for word in shlex.split(shape)])
    return any(secret[at : at + _PART] in shown for at in range(len(secret) - _PART + 1))


def test_the_corpus_is_large() -> None:
    assert len(set(with_secrets())) >= 150
    assert len(set(without_secrets())) >= 1000


@pytest.mark.parametrize("shape", with_secrets())
def test_no_ordinary_secret_is_shown(shape: str) -> None:
    assert [secret for secret in SECRETS if _shows(shape, secret)] == []


@pytest.mark.parametrize(
    "shape", [shape for shape in with_secrets() if " --" in shape.rpartition("§")[0].rpartition(" ")[0]]
)
def test_a_secret_may_begin_with_a_dash(shape: str) -> None:
    assert [secret for secret in _DASHED if _shows(shape, secret)] == []


def test_what_is_no_secret_stays_readable() -> None:
    lines = [shlex.split(line) for line in without_secrets()]
    changed = [mask(line) for line in lines if mask(line) != " ".join(line)]
    assert len(changed) <= 0.02 * len(lines), changed


def test_a_key_is_masked_between_its_lines() -> None:
    key = "-----BEGIN PRIVATE KEY-----\nMIIBVgIBADANBg\n-----END PRIVATE KEY-----"
    assert mask(["sh", "-c", f"echo '{key}' > k"]) == (
        f"sh -c echo '-----BEGIN PRIVATE KEY-----{MASK}-----END PRIVATE KEY-----' > k"
    )


def test_what_stands_around_a_secret_stays_readable() -> None:
    assert mask(["bash", "-c", "cd /a; curl -u bob:X1 h | tar x"]) == "bash -c cd /a; curl -u bob:*** h | tar x"
    assert mask(["mysql", "-u", "root", "-pX1", "db"]) == "mysql -u root -p*** db"
    assert mask(["sshpass", "-p", "X1", "ssh", "-p", "22", "h"]) == "sshpass -p *** ssh -p 22 h"


@given(
    st.lists(
        st.text(st.characters(codec="utf-8") | st.sampled_from("'\"\\`=:;|&()<>-[]{},@ \n"), max_size=60), max_size=6
    )
)
def test_any_text_is_a_command_line(arguments: list[str]) -> None:
    assert isinstance(mask(arguments), str)


@given(st.lists(st.text("abcdefgh _'\"\\;|&()[]{},\n", max_size=40), min_size=1, max_size=5))
def test_text_without_a_sign_is_shown_as_it_is(arguments: list[str]) -> None:
    assert mask(arguments) == " ".join(arguments)
