"""Live data for any number of clients: one sampler, its samples as bytes, and requests about the present and the past.

hub (threads: snapshots → bytes), clients (event loops: bytes → clients), wire (payloads), api and past (worker
threads: requests → JSON), machine (all of it for one machine), origin (requests of other servers'
pages), static (what web/ builds: pages, charts, styles).
May import: everything below. Never here: a web framework; the surfaces `web` and `jupyter` bring their own.
"""

import os

STATIC = os.path.join(os.path.dirname(__file__), "static")
