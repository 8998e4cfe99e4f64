"""AMD GPUs: amdgpu's files in sysfs, hwmon and KFD, and the clients in /proc. No library, no root, no fork.

May import: sources.base, sources.drm, model. Never here: rates over time that the sampler can make, formatting.
"""
