"""The version, as a constant: reading it from package metadata would cost 35 ms at start."""

__version__ = "0.1.0"
