"""nvidia-smi's own words: its fields, headers, values, logs and scrolling columns, from any snapshot.

May import: present, model, units. Never here: sampling, files, the command line.
"""
