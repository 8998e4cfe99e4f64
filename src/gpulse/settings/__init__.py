"""Settings: every one declared once, with type, default, help and environment variable; read by the verbs that use them.

May import: present, analysis, store and below. Never here: what a verb does with a setting.
"""
