"""nvidia-smi's XML: for machines where only that program may be run, for files from elsewhere and for ssh.

May import: sources.base, model. Never here: NVML.
"""
