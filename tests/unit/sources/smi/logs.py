"""nvidia-smi's XML in small: one GPU of schema v12, with parts replaced."""

from __future__ import annotations

GPU = {
    "product_name": "NVIDIA Thing", "product_architecture": "Ampere", "uuid": "GPU-11111111-2222", "serial": "N/A", "vbios_version": "94.0",
    "pci": "<pci_bus_id>00000000:04:00.0</pci_bus_id><pci_gpu_link_info><pcie_gen><max_link_gen>4</max_link_gen>"
    "<current_link_gen>1</current_link_gen></pcie_gen><link_widths><max_link_width>16x</max_link_width>"
    "<current_link_width>8x</current_link_width></link_widths></pci_gpu_link_info><tx_util>1000 KB/s</tx_util><rx_util>6000 KB/s</rx_util>",
    "fan_speed": "30 %", "performance_state": "P2", "compute_mode": "Exclusive_Process", "persistence_mode": "Enabled",
    "clocks_event_reasons": "<clocks_event_reason_sw_power_cap>Active</clocks_event_reason_sw_power_cap>"
    "<clocks_event_reason_display_clocks_setting>Active</clocks_event_reason_display_clocks_setting>"
    "<clocks_event_reason_gpu_idle>Not Active</clocks_event_reason_gpu_idle>",
    "fb_memory_usage": "<total>10240 MiB</total><reserved>173 MiB</reserved><used>1128 MiB</used><free>8938 MiB</free>",
    "utilization": "<gpu_util>97 %</gpu_util><memory_util>37 %</memory_util><encoder_util>N/A</encoder_util>",
    "ecc_errors": "<volatile><sram_correctable>1</sram_correctable><sram_uncorrectable_parity>2</sram_uncorrectable_parity>"
    "<dram_correctable>40</dram_correctable><dram_uncorrectable>0</dram_uncorrectable></volatile>",
    "temperature": "<gpu_temp>61 C</gpu_temp><gpu_temp_slow_threshold>95 C</gpu_temp_slow_threshold><memory_temp>N/A</memory_temp>",
    "gpu_power_readings": "<power_draw>122.78 W</power_draw><current_power_limit>336.00 W</current_power_limit>",
    "clocks": "<graphics_clock>1710 MHz</graphics_clock><sm_clock>1710 MHz</sm_clock><mem_clock>9501 MHz</mem_clock>",
    "processes": "<process_info><gpu_instance_id>N/A</gpu_instance_id><pid>42</pid><type>C</type>"
    "<process_name>C:\\tools\\python.exe</process_name><used_memory>1005 MiB</used_memory></process_info>",
}  # fmt: skip


def log(*gpus: dict[str, str], schema: int = 12) -> str:
    """Return a whole log; without a GPU given, one like the above."""
    found = gpus or ({},)
    parts = ["".join(f"<{tag}>{text}</{tag}>" for tag, text in {**GPU, **changes}.items() if text) for changes in found]
    body = "".join(f'<gpu id="00000000:{at + 4:02X}:00.0">{part}</gpu>' for at, part in enumerate(parts))
    return (
        f'<?xml version="1.0" ?>\n<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v{schema}.dtd">\n<nvidia_smi_log>'
        f"<driver_version>536.40</driver_version><cuda_version>12.2</cuda_version>{body}</nvidia_smi_log>\n"
    )
