"""Mask secrets in command lines where they are read, so that no surface can forget it."""

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
    """Join a command line; mask the values of options that name a secret, known key formats, and passwords in URLs."""
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
    # these are not secrets: --max-tokens, --tokenizer, --author
    return any(word in lowered for word in _WORDS) and not any(
        word in lowered for word in ("tokens", "tokeniz", "author", "num_token")
    )


def _mask_value(argument: str) -> str:
    name, equals, value = argument.partition("=")
    if argument.startswith(_PREFIXES):
        return MASK
    if equals and value.startswith(_PREFIXES):
        return f"{name}={MASK}"
    lowered = argument.lower()
    for word in ("authorization:", "bearer "):
        if word in lowered:
            return argument[: lowered.index(word) + len(word)].rstrip() + f" {MASK}"
    return _mask_url(argument)


def _mask_url(argument: str) -> str:
    before, scheme, rest = argument.partition("://")
    place, slash, path = rest.partition("/")
    credentials, at, host = place.rpartition("@")
    if not scheme or not at:
        return argument
    user, colon, _ = credentials.partition(":")
    return f"{before}://{user}:{MASK}@{host}{slash}{path}" if colon else f"{before}://{MASK}@{host}{slash}{path}"
