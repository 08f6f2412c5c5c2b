"""A bank of protocols and devices: small models after public specifications.

They are written as rules over hidden variables, not copied from anybody's learned models, and
have what real systems have: sinks that swallow most of a random walk, states that are hardly
ever visited, and inputs that do nothing in most states. Tests and benchmarks share them, as
they share `worlds.py`.

>>> BANK["lcp"].machine.states, len(BANK["lcp"].inputs)
(18, 15)
"""

from protocols import cards, devices, handshakes, links, mail, media, remote_login, transport
from protocols.rules import BANK, Model

__all__ = ["BANK", "Model"]

_ROOMS = (cards, devices, handshakes, links, mail, media, remote_login, transport)
