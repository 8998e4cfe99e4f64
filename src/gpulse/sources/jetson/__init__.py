"""NVIDIA Jetson boards: load, clocks, heat and power rails from the kernel, where NVML answers little or is not there.

May import: sources.base, sources.drm, model. Never here: NVML, tegrastats.
"""
