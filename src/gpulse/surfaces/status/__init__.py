"""The one-glance view: a line or a card for every GPU, and who uses it.

May import: present, model, units. Never here: sampling, the terminal's state (that is watch.py's alone).
"""
