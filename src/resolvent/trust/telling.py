"""How far gathering evidence is → whoever listens."""

from collections.abc import Callable

Listener = Callable[[str, float], None]
"""Told now and then what is being done, and how much of that is done: 0 to 1."""

CoreListener = Callable[[int, int, int, int], None]
"""What the core tells; how much is done and of how much are the last two."""


class Teller:
    """Tells a listener, if there is one, how far each stage is."""

    def __init__(self, listener: Listener | None, about: str = "") -> None:
        self._listener, self._about = listener, about

    def of(self, about: str) -> "Teller":
        """Return one that puts what it is about before each stage."""
        return Teller(self._listener, f"{about}: ")

    def begin(self, stage: str) -> CoreListener | None:
        """Say that a stage begins; return what the core tells how far it is."""
        listener, text = self._listener, self._about + stage
        if listener is None:
            return None
        listener(text, 0.0)
        return lambda _red, _blue, done, total: listener(text, done / max(total, 1))
