"""Looking back: what the GPUs of this machine did, who used them, what happened; as tables, plots or data."""
