"""Intel cards as trees of files."""

from __future__ import annotations

from pathlib import Path

from tests.unit.sources.trees import card, under, write_tree

SLOT = "0000:09:00.0"
GT = {
    "gtidle/name": "gt0-rc\n", "gtidle/idle_residency_ms": "1000\n", "freq0/act_freq": "2400\n", "freq0/cur_freq": "2450\n",
    "freq0/max_freq": "2800\n", "freq0/rp0_freq": "2850\n", "freq0/throttle/status": "0\n", "freq0/throttle/reason_pl1": "0\n",
    "freq0/throttle/reason_thermal": "0\n", "freq0/throttle/reason_new": "0\n",
}  # fmt: skip
XE = {
    **under("tile0/gt0", GT),
    **under("tile0/gt1", {**GT, "gtidle/name": "gt1-mc\n", "freq0/act_freq": "1200\n"}),
    **under("hwmon/hwmon12", {
        "name": "xe\n", "energy1_input": "0\n", "energy1_label": "card\n", "energy2_input": "5000000\n", "energy2_label": "pkg\n",
        "fan1_input": "0\n", "fan1_max": "2000\n", "fan2_input": "1000\n", "fan2_max": "2000\n", "power1_cap": "190000000\n",
        "power1_label": "card\n", "power1_crit": "380000000\n", "temp2_input": "54000\n", "temp2_label": "pkg\n", "temp2_crit": "100000\n",
        "temp3_input": "56000\n", "temp3_label": "vram\n",
    }),
    "vendor": "0x8086\n", "power/runtime_status": "active\n", "current_link_speed": "2.5 GT/s PCIe\n", "current_link_width": "1\n",
}  # fmt: skip
I915 = {
    "gt/gt0/rc6_residency_ms": "6534\n", "gt/gt0/rps_act_freq_mhz": "600\n", "gt/gt0/rps_RP0_freq_mhz": "2450\n",
    "gt/gt0/throttle_reason_status": "1\n", "gt/gt0/throttle_reason_pl1": "1\n", "gt/gt0/throttle_reason_prochot": "1\n",
    "gt/gt0/throttle_reason_thermal": "0\n",
}  # fmt: skip


def arc(root: Path, **changes: str | bytes | None) -> Path:
    """Write an Arc of xe; a change replaces a file of the device, None takes it out. Double underscores are slashes."""
    files: dict[str, str | bytes] = {**card("xe", "8086:E20B", SLOT), **XE}
    for name, content in changes.items():
        path = name.replace("__", "/")
        if content is None:
            del files[path]
        else:
            files[path] = content
    return write_tree(root, under("sys/class/drm/card1/device", files))


def old_arc(root: Path, slot: str = SLOT, pci_id: str = "8086:56A5") -> Path:
    """Write an Arc of i915."""
    write_tree(root, under("sys/class/drm/card0", {**I915, **under("device", card("i915", pci_id, slot))}))
    return write_tree(root, under("sys/class/drm/card0/device/hwmon/hwmon1", {
        "name": "i915\n", "energy1_input": "59500000000\n", "temp1_input": "55000\n", "power1_max": "55000000\n",
        "power1_rated_max": "0\n", "fan1_input": "700\n",
    }))  # fmt: skip


def client(pid: int, number: int, **lines: str) -> dict[str, str | bytes]:
    """Return the files of a process with one descriptor of the GPU."""
    text = "".join(f"{word.replace('_', '-')}:\t{value}\n" for word, value in lines.items())
    return {
        f"proc/{pid}/fd/{number}": "->/dev/dri/renderD128",
        f"proc/{pid}/fdinfo/{number}": f"pos:\t0\nflags:\t02\n{text}",
    }
