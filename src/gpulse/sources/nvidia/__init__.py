"""NVIDIA GPUs through NVML: the library, its structures, one reader line per metric, and the source itself.

May import sources.base, .files, .host, and below. Contains no threads, no rates, and no texts except causes of failure.
"""
