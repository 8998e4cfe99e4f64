"""Masking secrets in command lines, done where they are read so that no surface can forget it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MASK = "***"
_WORDS = (
    "password",
    "passwd",
    "secret",
    "token",
    "api-key",
    "api_key",
    "apikey",
    "access-key",
    "access_key",
    "auth",
    "credential",
    "private-key",
    "private_key",
)
_PREFIXES = ("sk-", "hf_", "ghp_", "gho_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "AKIA", "wandb_v1_")


def mask(arguments: Sequence[str]) -> str:
    """Join a command line, with the values of options that name a secret, known key shapes and passwords in URLs replaced."""
    shown: list[str] = []
    hide_next = False
    for argument in arguments:
        if hide_next and not argument.startswith("-"):
            shown.append(MASK)
            hide_next = False
            continue
        name, equals, value = argument.partition("=")
        hide_next = not equals and argument.startswith("-") and _names_a_secret(name)
        shown.append(f"{name}={MASK}" if equals and value and _names_a_secret(name) else _mask_value(argument))
    return " ".join(shown)


def _names_a_secret(name: str) -> bool:
    lowered = name.lower()
    # counts and paths of tokens are not secrets: --max-tokens, --tokenizer, --author
    return any(word in lowered for word in _WORDS) and not any(
        word in lowered for word in ("tokens", "tokeniz", "author", "num_token")
    )


def _mask_value(argument: str) -> str:
    if argument.startswith(_PREFIXES):
        return MASK
    before, scheme, rest = argument.partition("://")
    credentials, at, host = rest.partition("@")
    if scheme and at and "/" not in credentials:
        user, colon, _ = credentials.partition(":")
        return f"{before}://{user}:{MASK}@{host}" if colon else f"{before}://{MASK}@{host}"
    return argument
