"""The server of `gpulse serve`: a page, JSON, a stream of samples and Prometheus' text, all from one sampler.

streams (the event loop: bytes → clients), server (paths → answers in worker threads), gate (who is let in); what is served is live's.
May import: everything below surfaces, starlette, uvicorn, asyncio. Never here: another surface; cli/commands/serve.py composes them.
"""
