"""An environment → a way to act with a proof, or what is still open: exploring on purpose.

Everything else here works from traces that somebody collected. This room collects them
itself: it goes where something is worth knowing, repairs the machines when the world
surprises them, and says why it stops.
"""

__all__: list[str] = []
