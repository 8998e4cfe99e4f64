"""The options of a subcommand: flags with values, as nvidia-smi reads them after dmon, pmon, topo, nvlink and mig."""

from __future__ import annotations

from .failure import INVALID, SmiExit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

_SWITCHES = frozenset({"--help"})
_ABOUT = {
    "boost-slider": "List the boost sliders.",
    "clocks": "Query clock information.",
    "compute-policy": "List the compute policies.",
    "conf-compute": "Display the state of confidential computing.",
    "dmon": "Display GPU statistics in scrolling columns.",
    "encodersessions": "Display the video encoder sessions.",
    "mig": "List MIG profiles and instances.",
    "nvlink": "Display NVLink information.",
    "pmon": "Display process statistics in scrolling columns.",
    "topo": "Display how GPUs, CPUs and network devices are connected.",
}
# What an option does, under every command that has it.
_MEANINGS = {
    "--help": "Display help information",
    "--id": "GPUs to use: index, UUID or PCI bus ID, separated by commas",
    "--list": "List the current values",
    "--loop": "Seconds between updates, until Ctrl-C is pressed",
    "--delay": "Seconds between samples, from 1 to 600 (default: 1)",
    "--count": "Number of samples (default: until Ctrl-C is pressed)",
    "--select": "Groups of columns to display",
    "--options": "Add the date (D) or the time (T) to each line",
    "--filename": "File to write to",
    "--format": "csv, nounit, noheader",
    "--gpm-metrics": "Not available here; see gpulse query --scroll=a",
    "--gpm-options": "Not available here; see gpulse query --scroll=a",
    "--matrix": "Display how all devices are connected",
    "--matrix_pci": "Display how all devices are connected over PCIe",
    "--cpu": "Display the GPUs near a CPU",
    "--nearest_gpus": "Display the GPUs that are near the one given with -i, by level: 0 (same board) to 5 (other NUMA node)",
    "--gpu_path": "Display the path between the two GPUs given with -i",
    "--p2pstatus": "Display peer access: r (read), w (write), n (NVLink), a (atomics) or p (PCIe)",
    "--get-numa-id-of-nearby-cpu": "Display the NUMA node of the CPU nearest to the GPU given with -i",
    "--get-numa-id-of-nearby-mem": "Display the NUMA node of the memory nearest to the GPU given with -i",
    "--gpu-numa-id": "Display the NUMA node of the memory of the GPU given with -i",
    "--link": "Display only this link",
    "--status": "Display the state and speed of each link",
    "--capabilities": "Display what each link can do",
    "--pcibusid": "Display the PCI bus ID at the other end of each link",
    "--remotelinkinfo": "Display the device and link at the other end of each link",
    "--errorcounters": "Display the error counters of each link",
    "--getthroughput": "Display the data moved over each link: d (payload) or r (with protocol)",
    "--gpu-instance-id": "GPU instances to use, separated by commas",
    "--compute-instance-id": "Compute instances to use, separated by commas",
    "--list-gpu-instance-profiles": "List the profiles of GPU instances",
    "--list-gpu-instances": "List the GPU instances",
    "--list-compute-instances": "List the compute instances",
    "--get-cpu-caps": "Display what the CPU can do",
    "--get-gpus-caps": "Display whether the GPUs are capable of it",
    "--get-devtools-mode": "Display whether developer tools are allowed",
    "--get-environment": "Display the environment",
    "--get-cc-feature": "Display whether it is on",
    "--get-mem-size-info": "Display the protected and unprotected memory of each GPU",
    "--get-key-rotation-threshold-info": "Display when keys are changed",
    "--get-multigpu-mode": "Display how several GPUs are protected",
    "--get-gpus-ready-state": "Display whether the GPUs accept work",
    "--query-conf-compute": "Display all of this",
}


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
        lines = [f"\n    {self._command} -- {_ABOUT[self._command]}\n"]
        lines += [f"    Usage: nvidia-smi {self._command} [options]\n", "    Options include:"]
        for short, long in self._flags.items():
            lines.append(f"    [{short if short != long else ''} | {long}]: {_MEANINGS[long]}")
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
