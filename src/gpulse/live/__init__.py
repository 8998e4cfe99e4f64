"""A machine watched live for any number of clients: one sampler, its samples as bytes, and questions about now and the past.

hub (threads: snapshots → bytes), wire (what is sent), api, past (worker threads: questions → JSON), room (all of it for one machine).
May import: everything below. Never here: a web framework; the surfaces that serve this to people bring their own.
"""
