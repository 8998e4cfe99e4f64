"""nvlink: the state, errors, capabilities and traffic of each link, in nvidia-smi's layout."""

from __future__ import annotations

from ....model.select import Wanted
from ....present.text import clean
from ..scroll import gpu_index
from ..views import View
from .failure import SmiExit
from .options import Options
from .refusal import NVLINK_CHANGES, changes_state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from ....model.catalog import Gpu
    from ....model.snapshot import Snapshot

_FLAGS = {
    "-h": "--help", "-i": "--id", "-l": "--link", "-s": "--status", "-c": "--capabilities", "-p": "--pcibusid",
    "-R": "--remotelinkinfo", "-e": "--errorcounters", "-gt": "--getthroughput",
}  # fmt: skip
_SWITCHES = frozenset({"--status", "--capabilities", "--pcibusid", "--remotelinkinfo", "--errorcounters"})
_CAPABILITIES = (
    "P2P is supported", "Access to system memory supported", "P2P atomics supported", "System memory atomics supported",
    "SLI is supported", "Link is supported",
)  # fmt: skip
_ERRORS = (("Replay", "nvlink_replay_links"), ("Recovery", "nvlink_recovery_links"), ("CRC", "nvlink_crc_links"))
_TRAFFIC = (("Data Tx", "nvlink_tx_links"), ("Data Rx", "nvlink_rx_links"))
_KEYS = frozenset({
    "index", "uuid", "name", "nvlink_states", "nvlink_speeds", "nvlink_capabilities", "nvlink_remotes",
    *(key for _, key in (*_ERRORS, *_TRAFFIC)),
})  # fmt: skip


class LinkView(View):
    """The answer to one nvlink command."""

    def __init__(self, words: Sequence[str]) -> None:
        """Read the options; raise SmiExit as nvidia-smi would end."""
        if any(word.partition("=")[0] in NVLINK_CHANGES for word in words):
            raise changes_state(["nvlink", *words])
        self._options = options = Options("nvlink", _FLAGS, words, _SWITCHES, strict=True)
        self.ids = options.ids
        if not any(name in options for name in (*_SWITCHES, "--getthroughput")):
            raise SmiExit(options.usage(), 0)
        self.wanted = Wanted(_KEYS)

    def lines(self, snapshot: Snapshot) -> list[str]:
        """Return the lines of one snapshot; a GPU without NVLink has none, as with nvidia-smi."""
        lines = []
        for gpu in snapshot.gpus:
            if gpu.nvlink_states:
                lines.append(f"GPU {gpu_index(gpu)}: {clean(gpu.name or 'Unknown')} (UUID: {clean(gpu.uuid or 'N/A')})")
                lines += self._links(gpu, len(gpu.nvlink_states))
        return lines

    def _links(self, gpu: Gpu, count: int) -> list[str]:
        lines: list[str] = []
        for link in range(count):
            if (self._options.get("--link") or str(link)) == str(link):
                lines += [f"\t Link {link}{text}" if text else "" for text in self._texts(gpu, link)]
        return lines

    def _texts(self, gpu: Gpu, link: int) -> list[str]:
        options = self._options
        if "--capabilities" in options:
            digits = (gpu.nvlink_capabilities or ())[link : link + 1] or ("??????",)
            words = {"0": "false", "1": "true"}
            return [f", {name}: {words.get(one, 'N/A')}" for name, one in zip(_CAPABILITIES, digits[0], strict=False)]
        if "--errorcounters" in options:
            return [*(f": {name} Errors: {_at(gpu, key, link)}" for name, key in _ERRORS), ""]
        if "--getthroughput" in options:
            return [f": {name}: {_kibibytes(gpu, key, link)}" for name, key in _TRAFFIC]
        if "--pcibusid" in options or "--remotelinkinfo" in options:
            return [f": {clean(((gpu.nvlink_remotes or ())[link : link + 1] or ('',))[0]) or 'N/A'}"]
        return [f": {_speed(gpu, link)}"]


def _value(gpu: Gpu, key: str, link: int) -> float | None:
    values = gpu.get(key)
    found = values[link] if isinstance(values, tuple) and link < len(values) else None
    return found if isinstance(found, (int, float)) else None


def _at(gpu: Gpu, key: str, link: int) -> str:
    value = _value(gpu, key, link)
    return "N/A" if value is None else f"{value:.0f}"


def _kibibytes(gpu: Gpu, key: str, link: int) -> str:
    value = _value(gpu, key, link)
    return "N/A" if value is None else f"{value // 1024:.0f} KiB"


def _speed(gpu: Gpu, link: int) -> str:
    if not _value(gpu, "nvlink_states", link):
        return "<inactive>"
    value = _value(gpu, "nvlink_speeds", link)
    return "N/A" if value is None else f"{value / 1e9:.3f}".rstrip("0").rstrip(".") + " GB/s"
