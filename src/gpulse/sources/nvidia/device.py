"""One NVIDIA GPU: which calls provide which metrics; a call is made only if its metrics are wanted."""

from __future__ import annotations

import time
from ctypes import byref, c_uint, c_void_p

from ...model.catalog import EVIDENCE, GPU_METRICS, LINK_TRAFFIC, TIMED_POWER, TRACES
from ..base import Device, DeviceSample, Listing, cached_attribute
from . import board, gpm
from .gpm import Links, has_nvlink
from .nvlink import NVLINK_TOTALS, PLACE
from .nvml import FUNCTION_NOT_FOUND, GPU_IS_LOST, RESET_REQUIRED, SUCCESS, UNINITIALIZED, error_name, gap_of
from .processes import SHARE_KEYS, ProcessLists, ProcessShares
from .readers import IDENTITY_KEYS, MEMORY, READERS, identify
from .unified import drop_placeholder_link, fill_from_kernel, is_integrated, is_jetson, share_memory

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...model.metric import Gap, Value
    from ..base import Key
    from ..jetson import JetsonDevice
    from .nvml import Bound, Nvml, Reader
    from .source import XidWatch

_USUAL = (*READERS, *NVLINK_TOTALS, *PLACE)
_DETAILS = frozenset(key for key, metric in GPU_METRICS.items() if metric.group == "details")
# Every GPU metric that this source can provide; used by `gpulse metrics` and by a test.
KEYS = (
    frozenset(key for reader in _USUAL for key in reader.keys)
    | gpm.KEYS
    | IDENTITY_KEYS
    | _DETAILS
    | {"memory_unified", "xid_last", "xids", "gpu_instance", "compute_instance"}
)
_XIDS = frozenset({"xid_last", "xids"})
_NVLINK = frozenset({"nvlink_rx", "nvlink_tx"})
_BY_INDEX = ("nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex")
_BY_SLOT = ("nvmlDeviceGetHandleByPciBusId_v2", "nvmlDeviceGetHandleByPciBusId")
_LOST = (GPU_IS_LOST, RESET_REQUIRED)
_PASSING = ("failed", "lost", "timeout")  # gaps of an identity that may be read later
# seconds after which MIG instances are listed again, on a GPU that has some, and on one that has none
_INSTANCES_EVERY = (5.0, 60.0)
_FEW = 3  # calls; if no more were made and all failed, the driver may still answer others


class NvidiaDevice(Device):
    """One GPU, found by its index, or by its PCI slot if using the index would wake another GPU.

    `answered`: the driver responded to at least one call of the last sample, even if only with an error for that value;
    `lost`: the GPU fell off the bus.
    """

    def __init__(self, nvml: Nvml, index: int, root: str = "", slot: str = "") -> None:
        self.handle = c_void_p()
        self.identity = {"index": index, "vendor": "nvidia"}
        self.answered = True
        self.lost = False
        self._watch: XidWatch | None = None
        self._nvml = nvml
        self._index = index
        self._root = root
        self._slot = slot
        self._closed = UNINITIALIZED
        self._looking_up = False
        self._identity_gaps: dict[str, Gap] = {}
        self._plans: dict[Key, list[Bound]] = {}
        self._found_gpm: gpm.Gpm | bool | None = None
        self._found_nvlink: bool | None = None
        self._found_instances: list[board.MigInstance] | None = None
        self._look_again = float("inf")  # when instances may have come or gone

    def attach(self) -> None:
        if self._looking_up:
            return  # `prime_early` hangs in it
        if self._closed:
            self._find_handle()
        self.trouble = f"GPU {self._index} cannot be opened ({error_name(self._closed)})." if self._closed else ""
        if not self._closed:
            if self._slot:
                code, index = self._nvml.number("nvmlDeviceGetIndex", self.handle)
                self._index = self._index if code else index
            self._identify()
            self._nvml.opened[self._index] = (self.handle, str(self.identity.get("pci_bus_id", "")).lower())
            if self._watch is not None:
                self._watch.add(self.handle)

    def _find_handle(self) -> None:
        find = self._nvml.function(*(_BY_SLOT if self._slot else _BY_INDEX))
        name = self._slot.encode() if self._slot else self._index
        self._looking_up = True
        self._closed = FUNCTION_NOT_FOUND if find is None else find(name, byref(self.handle))
        self._looking_up = False

    def note_faults(self, watch: XidWatch) -> None:
        """Record this GPU's faults, now or as soon as it can be opened."""
        self._watch = watch
        if not self._closed:
            watch.add(self.handle)

    def _identify(self) -> None:
        values, self._identity_gaps = identify(self._nvml, self.handle, self._index)
        if version := self._nvml.versions.get("version"):
            values["driver_version"] = version
        else:  # the call that tells it may hang
            self._identity_gaps["driver_version"] = "timeout" if version is None else "unsupported"
        missing = [key for key, gap in self._identity_gaps.items() if gap in _PASSING]
        self.identity = {**{key: self.identity[key] for key in missing if key in self.identity}, **values}

    def resemble(self, before: Device) -> None:
        """Take over the identity that the GPU of this index had before the driver was reopened, until it can be read again."""
        self.identity = {**before.identity, **self.identity}

    def prime_early(self, keys: Key) -> None:
        """Take the first GPM sample, 0.05 ms per GPU; whether the GPU has MIG instances takes 0.13 ms to know, and is left to `prime`."""
        self._find_handle()
        if not self._closed and keys & gpm.KEYS and self._gpm is not None:
            self._gpm.prime()

    def prime(self, keys: Key) -> None:
        if self._closed or not keys & gpm.KEYS:
            return
        for instance in self._instances:
            instance.prime()
        if self._gpm is not None and not self._instances:
            self._gpm.prime()
        elif not keys.isdisjoint(LINK_TRAFFIC):
            self._links.prime()

    def settled(self) -> bool:
        if self._closed:
            return True
        if self._gpm is not None and not self._instances and not self._gpm.settled():
            return False
        return all(instance.settled() for instance in self._instances)

    def read(self, keys: Key, process_keys: Key | None) -> DeviceSample:
        sample = DeviceSample()
        if self._closed:
            self.attach()
        if self._closed:
            return _closed(sample, keys - self.identity.keys(), self._closed)
        if any(gap in _PASSING for gap in self._identity_gaps.values()):
            self._identify()
        sample.gaps.update(self._identity_gaps)
        if time.monotonic() >= self._look_again:
            self._find_instances()
        codes = []
        if not keys.isdisjoint(TRACES):  # first, since they end now: the time of a sample is that of its start
            codes += [trace.read(sample, keys) for trace in self._traces if not keys.isdisjoint(trace.keys)]
        codes += [read(sample) for read in self._plan(keys)]
        self._read_activity(sample, keys)
        sample.instances = [self._instance(instance.read(keys, {})) for instance in self._instances]
        shared = self._integrated and not keys.isdisjoint(MEMORY.keys) and not self._instances
        if process_keys is not None or shared:
            code, listing = self._list(process_keys or frozenset())
            codes.append(code)
            if process_keys is not None or code:
                listing.add_to(sample)
            if shared:
                share_memory(sample, None if code else listing.processes, self._root)
        if self._integrated:
            drop_placeholder_link(sample)
        if self._board is not None:
            fill_from_kernel(sample, self._board)
        sample.values.setdefault("memory_unified", False)
        sample.gaps.update(dict.fromkeys(keys.difference(sample.values, sample.gaps, sample.counters), "unsupported"))
        self.answered = SUCCESS in codes or all(gap_of(code) == "unsupported" for code in codes)
        self.lost = not self.answered and any(code in _LOST for code in codes)
        if self.lost:
            _lose(sample, keys)
        elif not self.answered and self._is_silent(codes):
            sample.state = "timeout"
        self._read_xid(sample, keys)
        return sample

    def _is_silent(self, codes: list[int]) -> bool:
        """Return whether the driver answers nothing at all; a few calls may fail or be denied on a GPU that is well."""
        if all(gap_of(code) in ("unsupported", "denied") for code in codes):
            return False
        return len(codes) > _FEW or self._nvml.text("nvmlDeviceGetUUID", self.handle)[0] != SUCCESS

    def parts(self) -> list[Mapping[str, Value]]:
        return [] if self._closed else [instance.identity for instance in self._instances]

    def _plan(self, keys: Key) -> list[Bound]:
        if keys not in self._plans:
            wanted = [reader for reader in self._readers(keys) if not keys.isdisjoint(reader.keys)]
            self._plans[keys] = [reader.bind(self._nvml, self.handle) for reader in wanted]
        return self._plans[keys]

    @staticmethod
    def _readers(keys: Key) -> tuple[Reader, ...]:
        if keys.isdisjoint(_DETAILS - TRACES):
            return _USUAL
        from .details import DETAILS  # read only if requested by name

        return _USUAL + DETAILS

    def _read_activity(self, sample: DeviceSample, keys: Key) -> None:
        asked = keys & gpm.KEYS
        if not asked:
            return
        if asked & _NVLINK and not self._has_nvlink:
            asked -= _NVLINK
            sample.gaps.update(dict.fromkeys(keys & _NVLINK, "unsupported"))
        if self._gpm is not None and not self._instances:
            self._gpm.read(sample, asked)
        elif not asked.isdisjoint(LINK_TRAFFIC):
            self._links.read(sample, asked)

    @property
    def lists_apart(self) -> bool:  # type: ignore[override]
        """Whether metrics and processes are independent; an integrated GPU computes its memory from the processes."""
        return not self._closed and not self._integrated

    def list_processes(self, process_keys: Key) -> Listing:
        return self._list(process_keys)[1]

    def _list(self, process_keys: Key) -> tuple[int, Listing]:
        listing = Listing()
        code, processes, placed = self._lists.read()
        if code:
            listing.gap = gap_of(code)
        if processes and process_keys & SHARE_KEYS:
            self._shares.read(processes, process_keys)
        places = {instance.place for instance in self._instances}
        for pid, facts in processes.items():
            place = placed.get(pid, ())
            home = listing.of_instances.setdefault(place, {}) if place in places else listing.processes
            home[pid] = facts
        return code, listing

    def _instance(self, sample: DeviceSample) -> DeviceSample:
        for key in ("pci_bus_id", "architecture"):
            if key in self.identity:
                sample.values.setdefault(key, self.identity[key])
        return sample

    def _read_xid(self, sample: DeviceSample, keys: Key) -> None:
        asked = keys & _XIDS
        if not asked:
            return
        last, new = (None, None) if self._watch is None else self._watch.read(self.handle)
        for key, value in (("xid_last", last), ("xids", new)):
            if key in asked:
                sample.gaps[key] = "pending"
                if value is not None:
                    sample.values[key] = value
                    del sample.gaps[key]

    def close(self) -> None:
        """Free the GPM samples."""
        if isinstance(self._found_gpm, gpm.Gpm):
            self._found_gpm.close()
        for instance in self._found_instances or ():
            instance.close()

    # The following is determined once, by the thread that first needs it; if the driver cannot tell, it is asked again.

    @property
    def _gpm(self) -> gpm.Gpm | None:
        if self._found_gpm is None:
            known = gpm.supported(self._nvml, self.handle)
            self._found_gpm = gpm.Gpm(self._nvml, self.handle) if known else known
        return self._found_gpm if isinstance(self._found_gpm, gpm.Gpm) else None

    @property
    def _has_nvlink(self) -> bool:
        if self._found_nvlink is None:
            self._found_nvlink = has_nvlink(self._nvml, self.handle)
        return bool(self._found_nvlink)

    @cached_attribute
    def _links(self) -> Links:
        return Links(self._nvml, self.handle)

    @cached_attribute
    def _lists(self) -> ProcessLists:
        return ProcessLists(self._nvml, self.handle)

    @cached_attribute
    def _shares(self) -> ProcessShares:
        return ProcessShares(self._nvml, self.handle)

    @cached_attribute
    def _traces(self) -> list[gpm.DriverTrace]:
        return [gpm.DriverTrace(self._nvml, self.handle, keys) for keys in (TIMED_POWER, EVIDENCE)]

    @property
    def _instances(self) -> list[board.MigInstance]:
        if self._found_instances is None:
            self._find_instances()
        return self._found_instances or []

    def _find_instances(self) -> None:
        """Find the MIG instances, which come and go; those known stay if the driver cannot tell."""
        current, pending = c_uint(), c_uint()
        code = self._nvml.call("nvmlDeviceGetMigMode", self.handle, byref(current), byref(pending))
        if code and gap_of(code) != "unsupported":
            return
        known = self._found_instances or []
        divided = code == SUCCESS and current.value == 1
        if divided or known:
            known = board.find_instances(self._nvml, self.handle, self._gpm is not None, known)
        self._found_instances = known
        self._look_again = float("inf") if code else time.monotonic() + _INSTANCES_EVERY[not known]

    @cached_attribute
    def _integrated(self) -> bool:
        return is_integrated(self._nvml, self.handle, str(self.identity.get("name", "")))

    @cached_attribute
    def _board(self) -> JetsonDevice | None:
        """What the kernel says of the GPU if it is part of a Jetson."""
        if not is_jetson(str(self.identity.get("name", ""))):
            return None
        from ..jetson import JetsonDevice  # only there

        return JetsonDevice(self._root)


def _closed(sample: DeviceSample, keys: Key, code: int) -> DeviceSample:
    """Return the reading of a GPU that the driver lists but cannot open: it stays in the list, with the reason."""
    gap = gap_of(code)
    sample.state = "lost" if gap == "lost" else "ok" if gap == "denied" else "timeout"
    sample.gaps.update(dict.fromkeys((*keys, *IDENTITY_KEYS, "processes"), "failed" if gap == "unsupported" else gap))
    return sample


def _lose(sample: DeviceSample, keys: Key) -> None:
    """Turn a reading without any answer into that of a lost GPU: its earlier values are no longer valid."""
    gap: Gap = "lost"
    sample.state = "lost"
    sample.values.clear()
    sample.counters.clear()
    sample.gaps = dict.fromkeys(keys, gap)
    sample.processes, sample.instances = {}, []
