"""The options of a subcommand: flags with values, as nvidia-smi reads them after dmon, pmon, topo, nvlink and mig."""

from __future__ import annotations

from .failure import INVALID, SmiExit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SWITCHES = frozenset({"--help"})


class Options:
    """The options given to a subcommand, by their long names."""

    def __init__(
        self,
        command: str,
        flags: Mapping[str, str],
        words: Sequence[str],
        switches: frozenset[str] = _SWITCHES,
        *,
        strict: bool = False,
    ) -> None:
        """Read the words; `flags` takes short names to long ones, `switches` are those without a value.

        Raises SmiExit for -h and for a word that is no option: with the usage and exit code 0, or with `strict`, as
        topo, nvlink and mig do, with exit code 2.
        """
        self._strict = strict
        self._command = command
        self._flags = flags
        self._switches = switches | _SWITCHES
        self._given: dict[str, str] = {}
        at = 0
        while at < len(words):
            at = self._take(words, at)
        if "--help" in self._given:
            raise SmiExit(self.usage(), 0)

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def get(self, name: str) -> str | None:
        """Return the value of an option, or None where it was not given."""
        return self._given.get(name)

    @property
    def ids(self) -> list[str] | None:
        """The words after -i, or None for every GPU."""
        text = self.get("--id")
        return None if text is None else [word.strip() for word in text.split(",") if word.strip()]

    def complain(self, text: str) -> SmiExit:
        """Return the failure for a wrong value: the sentence and the usage; nvidia-smi's exit code for it is 0."""
        return SmiExit(f"{text}\n{self.usage()}", 0)

    def usage(self) -> str:
        """Return the options in one list."""
        lines = [f"\n    Usage: nvidia-smi {self._command} [options]\n", "    Options include:"]
        lines += [f"    [{short} | {long}]" for short, long in self._flags.items()]
        return "\n".join([*lines, ""])

    def _take(self, words: Sequence[str], at: int) -> int:
        flag, equals, value = words[at].partition("=")
        name = self._flags.get(flag, flag)
        if name not in self._flags.values():
            if self._strict:
                raise SmiExit(f'Option "{words[at]}" is not recognized.', INVALID)
            raise self.complain(f'Option "{words[at]}" is not recognized.')
        if name not in self._switches and not equals:
            if at + 1 == len(words):
                raise self.complain(f'Option "{words[at]}" is missing its value.')
            value, at = words[at + 1], at + 1
        self._given[name] = value
        return at + 1
