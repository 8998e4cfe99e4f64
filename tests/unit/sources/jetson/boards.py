"""Jetson boards as trees of files."""

from __future__ import annotations

from tests.unit.sources.trees import under

ORIN: dict[str, str | bytes] = {
    "proc/device-tree/model": "NVIDIA Jetson AGX Orin Developer Kit\0",
    "proc/device-tree/compatible": "nvidia,p3737\0nvidia,tegra234\0",
    "proc/device-tree/serial-number": "1421523041234\0",
    "etc/nv_tegra_release": "# R35 (release), REVISION: 4.1, GCID: 33958178, BOARD: t186ref\n",
    "proc/meminfo": "MemTotal: 64000 kB\nMemFree: 100 kB\nMemAvailable: 40000 kB\n",
    "sys/devices/platform/gpu.0/load": "437\n",
    **under("sys/class/devfreq/17000000.ga10b", {"cur_freq": "930750000\n", "max_freq": "1300500000\n"}),
    **under("sys/class/thermal/thermal_zone0", {"type": "cpu-thermal\n", "temp": "70000\n"}),
    **under("sys/class/thermal/thermal_zone1", {"type": "gpu-thermal\n", "temp": "48500\n", "trip_point_0_type": "critical\n",
                                                "trip_point_0_temp": "104500\n",
                                                "trip_point_1_type": "passive\n", "trip_point_1_temp": "99000\n"}),
    **under("sys/bus/i2c/drivers/ina3221/1-0040/hwmon/hwmon5", {
        "in1_label": "VDD_GPU_SOC\n", "in1_input": "19000\n", "curr1_input": "412\n", "in2_label": "VDD_CPU_CV\n", "in2_input": "19000\n",
        "curr2_input": "90\n", "in7_label": "sum of shunt voltages\n", "in7_input": "5\n",
    }),
    **under("sys/class/hwmon/hwmon9", {"name": "pwmfan\n", "pwm1": "51\n"}),
}  # fmt: skip
