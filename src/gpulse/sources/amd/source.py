"""The AMD source: the cards of amdgpu and radeon with their KFD nodes; a card is never read while it sleeps."""

from __future__ import annotations

import os

from ...model.catalog import PCIE_LINK
from ..base import DeviceSample, cached_attribute
from ..drm.cards import Card, read_link, slot_link
from ..drm.source import CardDevice, CardReading, CardSource
from .identity import (
    IDENTITY_KEYS,
    MEMORY_KEYS,
    driver_version,
    find_nodes,
    has_display,
    identify,
    is_apu,
    read_processes,
)
from .metrics import Throttle, parse_table
from .readers import READERS, AmdReading, current_link, highest_link, link_of_table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from ...model.metric import Value
    from ...model.snapshot import Check
    from ..base import Facts, Key
    from ..drm.clients import Clients
    from .identity import Node
    from .metrics import MetricsTable

DRIVERS = ("amdgpu", "radeon")
# Every GPU metric that this source can have; `gpulse metrics` and the drift test read it.
KEYS = (
    frozenset(key for keys, _ in READERS for key in keys)
    | IDENTITY_KEYS
    | {*PCIE_LINK}
    | {"memory_unified", "throttle_reasons", "display_active", "gpu_instance"}
)


class AmdDevice(CardDevice):
    """One card of amdgpu or radeon; `nodes` are its KFD nodes, several where it is partitioned."""

    drivers = DRIVERS

    def __init__(self, card: Card, index: int, nodes: Sequence[Node], clients: Clients, root: str = "") -> None:
        super().__init__(card, clients, root, card.device, identify(card, index, nodes[0] if nodes else None, root))
        self._nodes = nodes
        self._throttle = Throttle()
        self._plans: dict[Key, list[Callable[[AmdReading], None]]] = {}

    def parts(self) -> list[Mapping[str, Value]]:
        return [partition.identity for partition in self._partitions]

    def _read_awake(self, sample: DeviceSample, keys: Key, process_keys: Key | None) -> None:
        reading = AmdReading(sample, keys, self._files, self._sensors, self._apu)
        for read in self._plan(keys):
            read(reading)
        self._read_rest(reading)
        if process_keys is not None:
            self._read_processes(reading, process_keys)
        elif self._partitions:
            sample.instances = [part.read(keys, reading.table, {}) for part in self._partitions]
        if len(self._nodes) == 1 and "memory_total" in sample.gaps and not self._apu:
            self._read_node_memory(reading)

    def _plan(self, keys: Key) -> list[Callable[[AmdReading], None]]:
        if keys not in self._plans:
            self._plans[keys] = [read for own, read in READERS if not keys.isdisjoint(own)]
        return self._plans[keys]

    def _read_rest(self, reading: AmdReading) -> None:
        """Read what needs more than the files of one sample: links, what holds the clocks, the display."""
        keys = reading.keys
        reading.put("memory_unified", self._apu)
        for suffix, link in (("", self._link), ("_max", self._highest_link)):
            if keys & {f"pcie_gen{suffix}", f"pcie_width{suffix}"}:
                gen, width = link(reading)
                reading.put(f"pcie_gen{suffix}", gen)
                reading.put(f"pcie_width{suffix}", width)
        if "throttle_reasons" in keys:
            self._read_throttle(reading)
        if "display_active" in keys:
            reading.put("display_active", has_display(self.card))

    def _read_node_memory(self, reading: AmdReading) -> None:
        """Read memory from the compute driver, where the graphics driver's files are not there."""
        for key, value in self._nodes[0].memory().items():
            if value is not None and key in reading.sample.gaps:
                del reading.sample.gaps[key]
                reading.put(key, value)

    def _read_throttle(self, reading: AmdReading) -> None:
        if reading.table is None:
            reading.put("throttle_reasons", None, reading.files.gap("gpu_metrics"))
            return
        busy = reading.files.number("gpu_busy_percent")
        words = self._throttle.words(reading.table, busy)
        reading.put("throttle_reasons", words, "pending" if self._throttle.counts(reading.table) else "unsupported")

    def _link(self, reading: AmdReading) -> tuple[int | None, int | None]:
        """Return the link of the slot: from the card's upstream port, the firmware, the driver's levels, then the function itself."""
        slot = read_link(self._slot, "current") if self._slot != self.card.device else (None, None)
        own = read_link(self.card.device, "current")
        return _first(slot, link_of_table(reading), current_link(reading.files.text("pp_dpm_pcie")), own)

    def _highest_link(self, reading: AmdReading) -> tuple[int | None, int | None]:
        return _first(read_link(self._slot, "max"), highest_link(reading.files.text("pp_dpm_pcie")))

    def _read_processes(self, reading: AmdReading, process_keys: Key) -> None:
        uses = self._clients.of_slot(self.card.slot)
        sample = reading.sample
        if not self._clients.readable:
            sample.gaps["processes"] = "unsupported"
        if not self._partitions:
            ids = [node.gpu_id for node in self._nodes]
            sample.processes = read_processes(uses, self._root, ids, self._apu, process_keys)
            return
        placed: set[int] = set()
        for part in self._partitions:
            own: dict[int, Facts] = read_processes((), self._root, [part.node.gpu_id], self._apu, process_keys)
            placed |= own.keys()
            sample.instances.append(part.read(reading.keys, reading.table, own))
        others = [use for use in uses if use.pid not in placed]
        sample.processes = read_processes(others, self._root, (), self._apu, process_keys)

    # What follows is found out once, by the thread that first needs it and only while the GPU is awake.

    @cached_attribute
    def _apu(self) -> bool:
        table = parse_table(self._files.content("gpu_metrics"))
        return is_apu(self.card, None if table is None else table.version[0], self._nodes[0] if self._nodes else None)

    @cached_attribute
    def _slot(self) -> str:
        return slot_link(self.card.device, "0x1002")

    @cached_attribute
    def _partitions(self) -> list[Partition]:
        if len(self._nodes) < 2:
            return []
        numbers = [node.partition for node in self._nodes]
        if len(set(numbers)) < len(numbers):  # kernels that do not number the partitions
            numbers = list(range(len(self._nodes)))
        return [Partition(node, number, self.identity) for node, number in zip(self._nodes, numbers, strict=True)]


def _first(*links: tuple[int | None, int | None]) -> tuple[int | None, int | None]:
    """Return the first link that is known in full, else the first of which anything is known."""
    whole = next((link for link in links if None not in link), None)
    return whole or next((link for link in links if link != (None, None)), (None, None))


class Partition:
    """One partition: a KFD node. Power, heat and clocks belong to the whole GPU and are not reported here."""

    def __init__(self, node: Node, position: int, parent: Mapping[str, Value]) -> None:
        """Take the partition's number on the GPU, which has gaps where a partition is missing."""
        self.node = node
        self._position = position
        self.identity: dict[str, Value] = {
            "index": position,
            "vendor": "amd",
            "name": f"partition {position}",
            "uuid": f"{parent['uuid']}-{position}",
            "gpu_instance": position,
            "ordinal": node.position,
        }
        for key in ("pci_bus_id", "architecture"):
            if key in parent:
                self.identity[key] = parent[key]

    def read(self, keys: Key, table: MetricsTable | None, processes: dict[int, Facts]) -> DeviceSample:
        """Read what a partition has of these metrics."""
        sample = DeviceSample()
        sample.values.update(self.identity)
        sample.processes = processes
        reading = CardReading(sample, keys)
        if keys & MEMORY_KEYS:
            for key, value in self.node.memory().items():
                reading.put(key, value)
        if "utilization" in keys:
            parts = [] if table is None else table.partitions()
            busy = parts[self._position]["gfx_busy_inst"] if self._position < len(parts) else []
            reading.put("utilization", round(sum(busy) / len(busy), 1) if busy else None)
        return sample


__all__ = ["KEYS", "AmdSource"]


class AmdSource(CardSource):
    """All AMD GPUs of a machine; `root` is prefixed to /proc and /sys: the folder of a recorded machine, or empty."""

    name = "amd"
    devices: list[AmdDevice]
    vendor, vendor_id, drivers = "AMD", 0x1002, DRIVERS
    hidden_remedy = "Compute processes are complete anyway; for graphics of other users, run as root."

    def _found(self, cards: list[Card]) -> list[AmdDevice]:
        nodes = find_nodes(self._root)
        cards = cards or self._without_cards(nodes)
        owned = {card.slot: [node for node in nodes if card.slot.startswith(f"{node.place}.")] for card in cards}
        # HIP counts in KFD's order; cards without compute come last, by slot
        cards.sort(key=lambda card: (owned[card.slot][0].position if owned[card.slot] else 1 << 30, card.slot))
        version = driver_version(self._root, cards[0].driver) if cards else ""
        self.driver = {"amdgpu": version} if version else {}
        return [AmdDevice(card, index, owned[card.slot], self._clients, self._root) for index, card in enumerate(cards)]

    def _without_cards(self, nodes: list[Node]) -> list[Card]:
        """Return a card for each GPU that only the compute driver lists, as in a container or a recording without graphics."""
        cards: dict[str, Card] = {}
        for node in nodes:
            card = Card(f"{self._root}/sys/class/drm/none")
            card.slot, card.driver, card.vendor_id = f"{node.place}.0", DRIVERS[0], self.vendor_id
            card.device_id = node.properties.get("device_id", 0)
            cards.setdefault(card.slot, card)
        return list(cards.values())

    def _checks(self, awake: Sequence[Card]) -> list[Check]:
        from ...model.snapshot import Check

        if os.path.isdir(f"{self._root}/sys/class/kfd"):
            return []
        return [Check("note", "compute", "KFD is not loaded, so ROCm cannot run here.")]
