"""What the kernel's graphics drivers have in common: cards, sensors, PCIe links and the clients of a GPU.

Used by the AMD, Intel and Jetson sources. May import: sources.base, sources.files, model. Never here: one vendor's own files.
"""
