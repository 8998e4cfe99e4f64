"""Run a command unchanged, sample its GPUs, and summarize its usage at the end."""
