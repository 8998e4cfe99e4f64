"""AMD cards as trees of files."""

from __future__ import annotations

from pathlib import Path

from tests.unit.sources.trees import card, under, write_tree

SLOT = "0000:03:00.0"
HWMON = {
    "name": "amdgpu\n",
    "temp1_input": "45000\n", "temp1_label": "edge\n", "temp1_crit": "100000\n",
    "temp2_input": "52000\n", "temp2_label": "junction\n", "temp2_crit": "110000\n",
    "temp3_input": "48000\n", "temp3_label": "mem\n",
    "power1_average": "96500000\n", "power1_cap": "250000000\n", "power1_cap_default": "240000000\n",
    "freq1_input": "2100000000\n", "freq1_label": "sclk\n", "freq2_input": "1000000000\n", "freq2_label": "mclk\n",
    "fan1_input": "1200\n", "pwm1": "51\n", "pwm1_max": "255\n",
}  # fmt: skip
DEVICE = {
    "vendor": "0x1002\n", "device": "0x73bf\n", "revision": "0xc0\n", "unique_id": "946d7e1ef9b172dd\n",
    "vbios_version": "113-D4121EXT-CO1\n", "gpu_busy_percent": "97\n", "mem_busy_percent": "31\n",
    "mem_info_vram_used": "8000000000\n", "mem_info_vram_total": "17163091968\n",
    "mem_info_gtt_used": "62369792\n", "mem_info_gtt_total": "16786171904\n",
    "mem_info_vis_vram_used": "8000000000\n", "mem_info_vis_vram_total": "17163091968\n",
    "current_link_speed": "16.0 GT/s PCIe\n", "current_link_width": "16\n",
    "max_link_speed": "16.0 GT/s PCIe\n", "max_link_width": "16\n",
    "pp_dpm_sclk": "0: 500Mhz \n1: 2660Mhz *\n", "pp_dpm_mclk": "0: 96Mhz \n1: 1000Mhz *\n",
    "pcie_replay_count": "2\n", "power/runtime_status": "active\n",
}  # fmt: skip


def radeon(
    root: Path, number: int = 0, slot: str = SLOT, pci_id: str = "1002:73BF", **changes: str | bytes | None
) -> Path:
    """Write a discrete card; a change replaces a file of the device, None takes it out. Double underscores are slashes."""
    files: dict[str, str | bytes] = {**card("amdgpu", pci_id, slot), **DEVICE, **under("hwmon/hwmon11", HWMON)}
    for name, content in changes.items():
        path = name.replace("__", "/")
        if content is None:
            del files[path]
        else:
            files[path] = content
    return write_tree(root, under(f"sys/class/drm/card{number}/device", files))


def kfd_node(number: int, gpu_id: int, location: int, **properties: int) -> dict[str, str | bytes]:
    """Return the files of one KFD node; gpu_id 0 is a CPU."""
    known = {
        "simd_count": 256 if gpu_id else 0,
        "cpu_cores_count": 0 if gpu_id else 16,
        "location_id": location,
        "domain": 0,
    }
    lines = "".join(f"{word} {value}\n" for word, value in {**known, **properties}.items())
    return under(f"sys/class/kfd/kfd/topology/nodes/{number}", {"gpu_id": f"{gpu_id}\n", "properties": lines})
