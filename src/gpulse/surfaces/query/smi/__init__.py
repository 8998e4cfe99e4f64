"""nvidia-smi's own command line, text and exit codes, on the fields and logs that `gpulse query` uses too."""
